"""Show a run of the pipeline while it runs: the current step, the agents at work, and the decisions.

The plan gate, the task gate and the checks are shown by the views of their own commands, under a heading on the same
console. A console can show the rows of one view only, so the rows of this view are removed before a part begins. There
is no event for the end of a part; the next event of any kind ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofstone.check.context import Progress
from proofstone.cli.render.check import LiveChecks
from proofstone.cli.render.live_agents import LiveAgents
from proofstone.cli.render.live_gate import LiveGate
from proofstone.cli.render.pipeline import format_approval, format_final_checks
from proofstone.cli.render.plan_gate import LivePlanGate
from proofstone.cli.render.solve_text import describe_agents, shorten_visibly
from proofstone.common.models import Lane
from proofstone.documents.markdown import make_visible
from proofstone.gate.request import GateObserver
from proofstone.pipeline.models.run import ApprovalEntry, FinalChecks, PipelineRunConfig
from proofstone.pipeline.rules.planning import LANE_DEPTHS
from proofstone.plan_gate.run import PlanGateObserver

if TYPE_CHECKING:
    from rich.console import RenderableType


_STEPS: Final[Mapping[str, str]] = {
    "researcher": "research",
    "specifier": "specification",
    "designer": "design",
    "planner": "plan",
    "knowledge": "knowledge",
}
"""The step at which an agent works. A reviewer works at two."""
_NOTES: Final[Mapping[str, tuple[str, str]]] = {
    "concern": ("! concern", "yellow"),
    "unheard": ("! not heard", "yellow"),
    "not-taken": ("! not taken", "yellow"),
    "mended": ("· mended", "yellow"),
    "review-gate": ("review gate", "bold"),
    "plan-gate": ("plan gate", "bold"),
    "direction": ("direction", "bold yellow"),
}
"""The beginning of a note and its style, by its kind. Other notes begin with their kind."""
_MAX_TEXT: Final = 400
_BEFORE, _AFTER = 2, 4
"""How many steps are shown before and after the current one, below the rows."""
_HASH_LENGTH: Final = 12


@dataclass
class LivePipeline(LiveAgents):
    """Show a run of the pipeline. Implements `pipeline.journal.Watching` for one console."""

    can_ask_here: bool = False
    """Whether a person can be asked on this terminal."""
    gate_view_class: type[LiveGate] = LiveGate
    """The view of the tasks."""
    _lane: Lane = Lane.STANDARD
    _step_index: int = -1
    """The index of the current step in the lane; -1 before the first."""
    _current: str = ""
    _visited: set[str] = field(default_factory=set)
    _is_built: bool = False
    """Whether a plan is being implemented: reviews are then code reviews."""
    _part: ExitStack = field(default_factory=ExitStack)
    """The view of the current part."""

    def on_run_started(self, run_id: str, setup: PipelineRunConfig, *, resumed: bool) -> None:
        with self._print_lock:
            self._note_backends(spec for specs in setup.agents.values() for spec in specs)
            self._lane = setup.lane
            self._print(shorten_visibly(setup.request), "bold")
            self._print(f"run {run_id}{', resumed' if resumed else ''}", "dim")
            self._print(
                f"onto {make_visible(setup.branch)}, from {setup.base_commit[:_HASH_LENGTH]}, {setup.mode}", "dim"
            )
            if self.verbose:
                self._print(_describe_team(setup.agents), "dim")
            for note in setup.notes:
                self._print(f"note: {make_visible(note)}", "dim")

    def on_agent_started(self, agent: str, about: str = "") -> None:
        with self._print_lock:
            self._end_part()
            self._reach(self._step_of(agent))
        super().on_agent_started(agent, about)

    def on_note(self, kind: str, text: str) -> None:
        with self._print_lock:
            self._end_part()
            self._is_built = self._is_built or kind == "plan"
            prefix, style = _NOTES.get(kind, (make_visible(kind), "dim"))
            if self.verbose or kind in _NOTES:
                self._print(f"  {prefix}: {shorten_visibly(text, _MAX_TEXT)}", style)
            if kind == "lane":
                self._lane = next((lane for lane in Lane if text.startswith(f"{lane}:")), self._lane)
                if self.verbose:
                    self._print(f"  {' → '.join(self._steps)}", "dim")

    def on_approval(self, entry: ApprovalEntry) -> None:
        with self._print_lock:
            self._end_part()
            self._reach("approval", heading=False)
            self._print(f"  ✓ {format_approval(entry)}", "dim" if entry.auto_selected else "green")

    def on_checks_started(self) -> Progress:
        with self._print_lock:
            self._begin_part("whole cascade")
            live = LiveChecks(self.console, self.interactive, self.verbose)
            self._part.enter_context(live.show_live())
            return live

    def on_checks_ended(self, checks: FinalChecks) -> None:
        with self._print_lock:
            self._end_part()
            self._print(f"  {format_final_checks(checks)}", "green" if checks.passed else "red")

    def on_plan_gate_started(self, iteration: int) -> PlanGateObserver:
        with self._print_lock:
            self._begin_part("plan gate")
            live = LivePlanGate(self.console, self.interactive)
            self._part.enter_context(live.show_live())
            return live

    def on_task_gate_started(self, iteration: int) -> GateObserver:
        with self._print_lock:
            self._begin_part("task")
            live = self.gate_view_class(self.console, self.interactive, self.can_ask_here, verbose=self.verbose)
            self._part.enter_context(live.show_live())
            return live

    def on_commit(self, commit: str, branch: str) -> None:
        with self._print_lock:
            self._end_part()
            self._reach("commit")
            self._print(f"  ✓ committed {commit[:_HASH_LENGTH]} onto {make_visible(branch)}", "bold green")

    @contextmanager
    def show_live(self) -> Iterator[None]:
        with super().show_live():
            try:
                yield
            finally:
                self.clear_rows()

    def clear_rows(self) -> None:
        """Remove all rows: a person is asked, or the run is over."""
        with self._print_lock:
            self._end_part()
            self._remove_rows()

    # Steps and parts. The caller holds the print lock.

    @property
    def _steps(self) -> Sequence[str]:
        return LANE_DEPTHS[self._lane].steps

    def _begin_part(self, step: str) -> None:
        self._end_part()
        self._remove_rows()
        self._is_built = self._is_built or step != "plan gate"
        self._reach(step)

    def _end_part(self) -> None:
        self._part.close()

    def _step_of(self, agent: str) -> str:
        role = agent.partition(":")[0]
        if role != "reviewer":
            return _STEPS.get(role, role)
        has_design = any(_is_step(step, "design review") for step in self._steps)
        return "design review" if has_design and not self._is_built else "code review"

    def _reach(self, step: str, *, heading: bool = True) -> None:
        if step == self._current:
            return
        self._is_built = self._is_built and step != "research"  # everything starts again from there
        with self._lock:
            self._current, self._step_index = step, self._position(step)
        if heading:
            self._print(self._heading(step), "bold")
        self._visited.add(step)

    def _position(self, step: str) -> int:
        """Return the index of a step. If it occurs twice, return the one ahead."""
        indices = [at for at, name in enumerate(self._steps) if _is_step(name, step)]
        return next((at for at in indices if at > self._step_index), indices[0] if indices else -1)

    def _heading(self, step: str) -> str:
        again = ", again" if step in self._visited else ""
        if self._step_index < 0:
            return f"{make_visible(step)}{again}"
        return f"step {self._step_index + 1} of {len(self._steps)}: {self._steps[self._step_index]}{again}"

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            steps, reached = self._steps, self._step_index
        text = Text("  ", style="dim")
        first, end = max(0, reached - _BEFORE), reached + _AFTER + 1
        shown = [(step, at == reached) for at, step in enumerate(steps)][first:end]
        text.append("… → " if first else "")
        for number, (step, is_reached) in enumerate(shown):
            text.append(" → " if number else "")
            text.append(step, style="not dim bold cyan" if is_reached else "")
        text.append(" → …" if end < len(steps) else "")
        return Group(super()._render(), text)


def _is_step(shown: str, step: str) -> bool:
    """Return whether a name in the lane is this step: `research ×4` is `research`, and `tasks` is `task`."""
    return shown.partition(" ×")[0] in (step, f"{step}s")


def _describe_team(agents: Mapping[str, tuple[str, ...]]) -> str:
    """Describe which backends serve the agents. Combine agents and roles with the same backends."""
    specs_by_agent = {agent: " or ".join(specs) for agent, specs in agents.items()}
    if len(set(specs_by_agent.values())) == 1:
        return f"all agents: {make_visible(next(iter(specs_by_agent.values())))}"
    specs_by_role: dict[str, set[str]] = {}
    for agent, spec in specs_by_agent.items():
        specs_by_role.setdefault(_role_of(agent), set()).add(spec)
    return describe_agents(
        {
            agent if len(specs_by_role[_role_of(agent)]) > 1 else _role_of(agent): spec
            for agent, spec in specs_by_agent.items()
        }
    )


def _role_of(agent: str) -> str:
    return agent.partition(":")[0]
