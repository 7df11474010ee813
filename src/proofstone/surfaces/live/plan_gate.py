"""A plan at the gate while it is discussed: what each agent answers, and after each iteration what has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.contracts.plan_gate.record import Challenge, ChallengeStatus, IterationState, PlanSeverity
from proofstone.contracts.plan_gate.report import EventKind, PlanEvent
from proofstone.core.gate.page_text import visible
from proofstone.core.plan_gate.loop import ITERATIONS
from proofstone.core.plan_gate.report_page import by_severity
from proofstone.engine.plan_gate.watching import Beginning
from proofstone.surfaces.live.agents_at_work import AgentsAtWork

SEVERITY_STYLE: Final = {PlanSeverity.BLOCKING: "red", PlanSeverity.SIGNIFICANT: "yellow", PlanSeverity.MINOR: ""}
_SETTLED: Final = {ChallengeStatus.RESOLVED: "green", ChallengeStatus.WITHDRAWN: "green"}


@dataclass
class LivePlanGate(AgentsAtWork):
    """Implements `engine.plan_gate.watching.Watching` for one console."""

    _told: dict[str, ChallengeStatus] = field(default_factory=dict)
    """What was last told of each challenge."""

    def began(self, beginning: Beginning) -> None:
        with self._telling:
            self._served(beginning.agents.values())
            facts = f"{beginning.quality}, complexity {beginning.complexity.total}, {beginning.team_mode} team"
            self._print(f"{visible(beginning.title or beginning.plan_path)}: {facts}", "bold")
            self._print(f"run {beginning.run_id}", "dim")
            self._print(_serving(beginning), "dim")

    def iterating(self, iteration: int) -> None:
        with self._telling:
            self._print(f"iteration {iteration} of {ITERATIONS}", "bold")

    def decided(self, state: IterationState, challenges: Sequence[Challenge], events: Sequence[PlanEvent]) -> None:
        with self._telling:
            for one in sorted(challenges, key=by_severity):
                self._tell(one)
            for event in events:
                is_note = event.kind is EventKind.TEAM
                self._print(
                    f"  {'' if is_note else '! '}{event.kind}: {visible(event.text)}", "dim" if is_note else "yellow"
                )
            self._print(f"  {_open(state)}", "bold")

    def _tell(self, challenge: Challenge) -> None:
        """Only what is new or has changed."""
        before = self._told.get(challenge.id)
        if before is challenge.status:
            return
        self._told[challenge.id] = challenge.status
        became = f"{before} → {challenge.status}" if before else challenge.status.value
        style = (
            SEVERITY_STYLE[challenge.severity] if challenge.status.is_open else _SETTLED.get(challenge.status, "dim")
        )
        self._print(f"  {challenge.id} {challenge.severity} {became}  {visible(challenge.claim)}", style)


def _serving(beginning: Beginning) -> str:
    if not beginning.agents:
        return beginning.note or "nobody is asked: the rules alone"
    return ", ".join(f"{role}: {by}" for role, by in beginning.agents.items())


def _open(state: IterationState) -> str:
    """What is left, and what follows from it."""
    held = state.convergence
    minor = sum(one.severity is PlanSeverity.MINOR and one.status.is_open for one in state.challenges)
    return f"{held.blocking_open} blocking, {held.significant_open} significant, {minor} minor open → {held.status}"
