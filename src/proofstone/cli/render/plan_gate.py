"""A plan at the gate while it is discussed: what each agent answers, and after each iteration what has changed.

What became of a plan at the gate, as a person reads it: what stands against it, what they are asked, the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofstone.agents.roles.models.plan_gate_records import Challenge, ChallengeStatus, IterationState, PlanSeverity
from proofstone.cli.render.live_agents import AgentsAtWork
from proofstone.common.text import printable
from proofstone.documents.markdown import visible
from proofstone.plan_gate.models import EventKind, OpenQuestion, PlanEvent, PlanReport, PlanVerdict
from proofstone.plan_gate.rules.admission import to_take_in
from proofstone.plan_gate.rules.loop import ITERATIONS
from proofstone.plan_gate.rules.report import (
    STRONGLY,
    answer_command,
    by_severity,
    claim_of,
    headline,
    mitigation,
    standing,
)
from proofstone.plan_gate.run import Beginning

if TYPE_CHECKING:
    from rich.console import Console


SEVERITY_STYLE: Final = {PlanSeverity.BLOCKING: "red", PlanSeverity.SIGNIFICANT: "yellow", PlanSeverity.MINOR: ""}
_SETTLED: Final = {ChallengeStatus.RESOLVED: "green", ChallengeStatus.WITHDRAWN: "green"}


@dataclass
class LivePlanGate(AgentsAtWork):
    """Implements `plan_gate.run.Watching` for one console."""

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
            for challenge in sorted(challenges, key=by_severity):
                self._tell(challenge)
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
    minor = sum(challenge.severity is PlanSeverity.MINOR and challenge.status.is_open for challenge in state.challenges)
    return f"{held.blocking_open} blocking, {held.significant_open} significant, {minor} minor open → {held.status}"


_VERDICT: Final = {
    PlanVerdict.PROCEED: "bold green",
    PlanVerdict.REVISE: "bold yellow",
    PlanVerdict.RETHINK: "bold red",
    None: "bold yellow",
}


def print_report(console: Console, report: PlanReport, written: Path | None = None) -> None:
    """The end of `proofstone verify-plan`. `written`: where the whole report is."""
    if stands := standing(report):
        console.print("what stands against it:", style="bold")
        for challenge in stands:
            _challenge(console, report, challenge)
    if report.verdict is PlanVerdict.PROCEED and (taken_in := to_take_in(report.challenges)):
        console.print("to be taken into the plan:", style="bold")
        for challenge in taken_in:
            _line(console, f"  {challenge.id}  {visible(challenge.mitigation)}")
    if report.questions:
        console.print("\nyou are asked:", style="bold")
        for question in report.questions:
            _question(console, report, question)
    if report.debt_warning:
        _line(console, "\ntechnical debt: five challenges or more were deferred; the report lists them", "yellow")
    _verdict(console, report, written)


def _challenge(console: Console, report: PlanReport, challenge: Challenge) -> None:
    line = report.lines.get(challenge.id)
    where = "" if line is None else f"  {visible(report.plan or report.plan_path)}:{line}"
    head = f"  {challenge.id} {challenge.severity} {challenge.status}{where}  {visible(claim_of(report, challenge))}"
    _line(console, head, SEVERITY_STYLE[challenge.severity])
    _line(console, f"    {visible(challenge.concern)}")
    _line(console, f"    {visible(mitigation(challenge))}", "dim")


def _question(console: Console, report: PlanReport, question: OpenQuestion) -> None:
    _line(console, f"  {visible(question.challenge)}: {visible(question.question)}", "yellow")
    for number, option in enumerate(question.options, start=1):
        _line(console, f"    {number}. {visible(option)}")
    _line(console, f"    {answer_command(report, question.challenge)}")


def _verdict(console: Console, report: PlanReport, written: Path | None) -> None:
    console.print()
    console.print(headline(report), style=_VERDICT[report.verdict], end="")
    _line(console, f"  {visible(report.reason)}".rstrip())
    if report.strong:
        _line(console, f"  {STRONGLY}", "yellow")
    if report.next_step:
        _line(console, f"  next: {visible(report.next_step)}")
    if written is not None:
        _line(console, f"  report: {written}", "dim")
    _line(console, f"  run {report.run_id}; `proofstone ledger show {report.run_id}` shows all of it", "dim")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(printable(text), style=style, soft_wrap=True)
