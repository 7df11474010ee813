"""A plan at the gate while it is discussed: what each agent answers, and after each iteration what has changed.

On a terminal there is a row for each agent at work, and none while nobody works: a person may be asked then, and rows
would wipe away what is being typed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from assay.contracts.budget import Allowance, Spent
from assay.contracts.plan_gate.record import Challenge, ChallengeStatus, IterationState, PlanSeverity
from assay.contracts.plan_gate.report import EventKind, PlanEvent
from assay.core.agent.budget import summary
from assay.core.gate.page_text import visible
from assay.core.plan_gate.loop import ITERATIONS
from assay.core.plan_gate.report_page import by_severity
from assay.engine.plan_gate.watching import Beginning
from assay.surfaces.cli.text import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_SHOWN: Final = 60
_PERSON: Final = "human"
SEVERITY_STYLE: Final = {PlanSeverity.BLOCKING: "red", PlanSeverity.SIGNIFICANT: "yellow", PlanSeverity.MINOR: ""}
_SETTLED: Final = {ChallengeStatus.RESOLVED: "green", ChallengeStatus.WITHDRAWN: "green"}


@dataclass
class _Working:
    """An agent at work."""

    since: float
    doing: str = ""


@dataclass
class LivePlanGate:
    """Implements `engine.plan_gate.watching.Watching` for one console."""

    console: Console
    interactive: bool
    allowance: Allowance = field(default_factory=Allowance)
    """What the run may spend, as far as that is limited."""
    _spent: Spent = field(default_factory=Spent)
    _working: dict[str, _Working] = field(default_factory=dict)
    _told: dict[str, ChallengeStatus] = field(default_factory=dict)
    """What was last told of each challenge."""
    _telling: threading.Lock = field(default_factory=threading.Lock)
    """Lines appear in order, and rows are shown and put away one at a time."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Of what the rows show. Never held while printing: rows are drawn under the console's own lock."""
    _rows: Live | None = None

    def began(self, beginning: Beginning) -> None:
        with self._telling:
            if any(_PERSON in by for by in beginning.agents.values()):
                self.interactive = False  # they type here, and rows would wipe it away
            facts = f"{beginning.quality}, complexity {beginning.complexity.total}, {beginning.team_mode} team"
            self._print(f"{visible(beginning.title or beginning.plan_path)}: {facts}", "bold")
            self._print(f"run {beginning.run_id}", "dim")
            self._print(_serving(beginning), "dim")

    def iterating(self, iteration: int) -> None:
        with self._telling:
            self._print(f"iteration {iteration} of {ITERATIONS}", "bold")

    def asked(self, agent: str) -> None:
        with self._telling:
            with self._lock:
                self._working[agent] = _Working(time.monotonic())
            self._show()

    def doing(self, agent: str, line: str) -> None:
        with self._lock:
            if agent in self._working:
                self._working[agent].doing = line

    def said(self, agent: str, line: str) -> None:
        with self._telling:
            self._print(f"  {visible(agent)}: {line}", "cyan")

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        with self._telling:
            with self._lock:
                self._working.pop(agent, None)
                nobody = not self._working
            if nobody:
                self._put_away()
            self._print(f"  {'✗' if failed else '✓'} {visible(agent)}  {visible(said)}", "red" if failed else "")

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

    def spending(self, spent: Spent) -> None:
        with self._lock:
            self._spent = spent

    @contextmanager
    def showing(self) -> Iterator[None]:
        """However this ends, no row is left behind."""
        try:
            yield
        finally:
            with self._telling:
                self._put_away()

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

    def _print(self, text: str, style: str) -> None:
        self.console.print(printable(text), style=style, soft_wrap=True)

    def _show(self) -> None:
        if not self.interactive or self._rows is not None:
            return
        from rich.live import Live

        self._rows = Live(get_renderable=self._render, console=self.console, refresh_per_second=8, transient=True)
        self._rows.start()

    def _put_away(self) -> None:
        if self._rows is not None:
            self._rows.stop()
            self._rows = None

    def _render(self) -> RenderableType:
        from rich.text import Text

        text = Text()
        now = time.monotonic()
        with self._lock:
            for agent, working in self._working.items():
                text.append(f"  {visible(agent)} ", style="cyan")
                text.append(f"{now - working.since:.0f} s  ")
                shown = visible(working.doing)
                text.append(f"{shown if len(shown) <= _SHOWN else '…' + shown[-_SHOWN:]}\n", style="dim")
            text.append(f"  {summary(self._spent, self.allowance)}", style="dim")
        return text


def _serving(beginning: Beginning) -> str:
    if not beginning.agents:
        return beginning.note or "nobody is asked: the rules alone"
    return ", ".join(f"{role}: {by}" for role, by in beginning.agents.items())


def _open(state: IterationState) -> str:
    """What is left, and what follows from it."""
    held = state.convergence
    minor = sum(one.severity is PlanSeverity.MINOR and one.status.is_open for one in state.challenges)
    return f"{held.blocking_open} blocking, {held.significant_open} significant, {minor} minor open → {held.status}"
