"""A feature while it goes through the pipeline: the step that is reached, who is at work, and what was decided.

The plan gate, the task gate and the cascade are shown by the views of their own commands, under a heading, on the same
console. A console bears the rows of one view: ours are put away before a part begins, and nobody tells us when it ends;
so whatever we are told next ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofstone.check.context import Progress
from proofstone.cli.render.check import LiveChecks
from proofstone.cli.render.live_agents import AgentsAtWork
from proofstone.cli.render.live_gate import LiveGate
from proofstone.cli.render.pipeline import approval, cascade
from proofstone.cli.render.plan_gate import LivePlanGate
from proofstone.cli.render.solve_words import one_line, serving
from proofstone.common.models import Lane
from proofstone.documents.markdown import visible
from proofstone.gate.request import Watching as GateWatching
from proofstone.pipeline.models.run import ApprovalEntry, FinalChecks, RunSetup
from proofstone.pipeline.rules.planning import DEPTHS
from proofstone.plan_gate.run import Watching as PlanGateWatching

if TYPE_CHECKING:
    from rich.console import RenderableType


_STEPS: Final[Mapping[str, str]] = {
    "researcher": "research",
    "specifier": "specification",
    "designer": "design",
    "planner": "plan",
    "knowledge": "knowledge",
}
"""Where an agent works; a reviewer works at two."""
_NOTES: Final[Mapping[str, tuple[str, str]]] = {
    "concern": ("! concern", "yellow"),
    "unheard": ("! not heard", "yellow"),
    "not-taken": ("! not taken", "yellow"),
    "review-gate": ("review gate", "bold"),
    "plan-gate": ("plan gate", "bold"),
    "direction": ("direction", "bold yellow"),
}
"""How a note begins, and its style. Any other begins with its kind."""
_LONG: Final = 400
_BEFORE, _AFTER = 2, 4
"""Steps around the one that is reached, in the picture below the rows."""
_SHORT: Final = 12


@dataclass
class LivePipeline(AgentsAtWork):
    """Implements `pipeline.journal.Watching` for one console."""

    asks_here: bool = False
    """A person can be asked on this terminal."""
    gate_view: type[LiveGate] = LiveGate
    """What shows the tasks."""
    _lane: Lane = Lane.STANDARD
    _reached: int = -1
    """The step, in the picture of the lane; -1: none yet."""
    _current: str = ""
    _been: set[str] = field(default_factory=set)
    _is_built: bool = False
    """There is a plan that is carried out: a review is one of code."""
    _part: ExitStack = field(default_factory=ExitStack)
    """What the part that is under way shows."""

    def began(self, run_id: str, setup: RunSetup, *, resumed: bool) -> None:
        with self._telling:
            self._served(spec for specs in setup.agents.values() for spec in specs)
            self._lane = setup.lane
            self._print(one_line(setup.request), "bold")
            self._print(f"run {run_id}{', which goes on' if resumed else ''}", "dim")
            self._print(f"onto {visible(setup.branch)}, from {setup.base_commit[:_SHORT]}, {setup.mode}", "dim")
            self._print(_team(setup.agents), "dim")
            for note in setup.notes:
                self._print(f"note: {visible(note)}", "dim")

    def asked(self, agent: str, about: str = "") -> None:
        with self._telling:
            self._end_part()
            self._reach(self._step_of(agent))
        super().asked(agent, about)

    def noted(self, kind: str, text: str) -> None:
        with self._telling:
            self._end_part()
            self._is_built = self._is_built or kind == "plan"
            begins, style = _NOTES.get(kind, (visible(kind), "dim"))
            self._print(f"  {begins}: {one_line(text, _LONG)}", style)
            if kind == "lane":
                self._lane = next((lane for lane in Lane if text.startswith(f"{lane}:")), self._lane)
                self._print(f"  {' → '.join(self._steps)}", "dim")

    def approved(self, entry: ApprovalEntry) -> None:
        with self._telling:
            self._end_part()
            self._reach("approval", heading=False)
            self._print(f"  ✓ {approval(entry)}", "dim" if entry.auto_selected else "green")

    def checking(self) -> Progress:
        with self._telling:
            self._begin_part("whole cascade")
            live = LiveChecks(self.console, self.interactive)
            self._part.enter_context(live.showing())
            return live

    def checked(self, checks: FinalChecks) -> None:
        with self._telling:
            self._end_part()
            self._print(f"  {cascade(checks)}", "green" if checks.passed else "red")

    def plan_gate(self, iteration: int) -> PlanGateWatching:
        with self._telling:
            self._begin_part("plan gate")
            live = LivePlanGate(self.console, self.interactive)
            self._part.enter_context(live.showing())
            return live

    def gate(self, iteration: int) -> GateWatching:
        with self._telling:
            self._begin_part("task")
            live = self.gate_view(self.console, self.interactive, self.asks_here)
            self._part.enter_context(live.showing())
            return live

    def committed(self, commit: str, branch: str) -> None:
        with self._telling:
            self._end_part()
            self._reach("commit")
            self._print(f"  ✓ committed {commit[:_SHORT]} onto {visible(branch)}", "bold green")

    @contextmanager
    def showing(self) -> Iterator[None]:
        with super().showing():
            try:
                yield
            finally:
                self.clear()

    def clear(self) -> None:
        """No row of anybody: a person is asked, or it is over."""
        with self._telling:
            self._end_part()
            self._put_away()

    # Steps and parts. Whoever calls these tells at the moment.

    @property
    def _steps(self) -> Sequence[str]:
        return DEPTHS[self._lane].steps

    def _begin_part(self, step: str) -> None:
        self._end_part()
        self._put_away()
        self._is_built = self._is_built or step != "plan gate"
        self._reach(step)

    def _end_part(self) -> None:
        self._part.close()

    def _step_of(self, agent: str) -> str:
        role = agent.partition(":")[0]
        if role != "reviewer":
            return _STEPS.get(role, role)
        has_design = any(_is(step, "design review") for step in self._steps)
        return "design review" if has_design and not self._is_built else "code review"

    def _reach(self, step: str, *, heading: bool = True) -> None:
        if step == self._current:
            return
        self._is_built = self._is_built and step != "research"  # from there all begins anew
        with self._lock:
            self._current, self._reached = step, self._position(step)
        if heading:
            self._print(self._heading(step), "bold")
        self._been.add(step)

    def _position(self, step: str) -> int:
        """In the picture. Of a step that comes twice, the one that lies ahead."""
        places = [at for at, one in enumerate(self._steps) if _is(one, step)]
        return next((at for at in places if at > self._reached), places[0] if places else -1)

    def _heading(self, step: str) -> str:
        again = ", again" if step in self._been else ""
        if self._reached < 0:
            return f"{visible(step)}{again}"
        return f"step {self._reached + 1} of {len(self._steps)}: {self._steps[self._reached]}{again}"

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            steps, reached = self._steps, self._reached
        text = Text("  ", style="dim")
        first, end = max(0, reached - _BEFORE), reached + _AFTER + 1
        shown = [(step, at == reached) for at, step in enumerate(steps)][first:end]
        text.append("… → " if first else "")
        for number, (step, is_reached) in enumerate(shown):
            text.append(" → " if number else "")
            text.append(step, style="not dim bold cyan" if is_reached else "")
        text.append(" → …" if end < len(steps) else "")
        return Group(super()._render(), text)


def _is(shown: str, step: str) -> bool:
    """`research ×4` is `research`, and `tasks` are `task`."""
    return shown.partition(" ×")[0] in (step, f"{step}s")


def _team(agents: Mapping[str, tuple[str, ...]]) -> str:
    """Who serves whom. Often one serves them all, or all of a role."""
    served = {agent: " or ".join(specs) for agent, specs in agents.items()}
    if len(set(served.values())) == 1:
        return f"all agents: {visible(next(iter(served.values())))}"
    of_role: dict[str, set[str]] = {}
    for agent, by in served.items():
        of_role.setdefault(_role(agent), set()).add(by)
    return serving({agent if len(of_role[_role(agent)]) > 1 else _role(agent): by for agent, by in served.items()})


def _role(agent: str) -> str:
    return agent.partition(":")[0]
