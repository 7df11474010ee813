"""Show a run of the gate while it runs: a line for each event, and a bar for each task under way.

The bars stay at the bottom of a terminal. If a person is asked on that terminal there are none, because they would
overwrite what the person types.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.rules.budget import summarize_spending
from proofstone.check.context import Progress
from proofstone.check.models import CheckLine
from proofstone.common.models import BudgetUsage, Phase, Verdict
from proofstone.common.text import escape_control
from proofstone.gate.models import RunView, TaskRecord, TaskView
from proofstone.gate.rules.direction import format_figures
from proofstone.gate.rules.progress import ACTIVE_STATES, count_tasks, format_bar, locate_task
from proofstone.gate.rules.state_machine import MAX_ATTEMPTS, is_exhausted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text


_MAX_TEXT: Final = 60
_MAX_BYTES: Final = 2000
_PERSON: Final = "human"


@dataclass
class _ActiveTask:
    """A task under way, with its last output."""

    since: float
    checks: dict[tuple[str, Phase], float] = field(default_factory=dict)
    _output: bytes = b""

    def add_output(self, data: bytes) -> None:
        """Add output, which arrives in pieces of lines and words."""
        self._output = (self._output + data)[-_MAX_BYTES:]

    def begin(self, line: str = "") -> None:
        """Replace the output by a new line."""
        self._output = (
            f"{line}\n".encode("utf-8", "replace") if line else b""
        )  # half a character must not break the view

    @property
    def last_line(self) -> str:
        """The last line that is not empty."""
        lines = self._output.decode("utf-8", "replace").split("\n")
        return next((line for line in map(str.strip, reversed(lines)) if line), "")


@dataclass
class LiveGate:
    """Show a run of the gate. Implements `gate.request.Watching` for one console."""

    console: Console
    interactive: bool
    can_ask_here: bool = False
    """Whether a person who executes or reviews is asked on this terminal."""
    verbose: bool = True
    """Whether every step is printed, with the figures of the controller."""
    view: RunView | None = None
    """The last known state of the run, for the message when it is interrupted."""
    _spent: BudgetUsage = field(default_factory=BudgetUsage)
    _active: dict[str, _ActiveTask] = field(default_factory=dict)
    _steps_shown: dict[str, int] = field(default_factory=dict)
    """How many steps of each task have been printed."""
    _started: float = field(default_factory=time.monotonic)
    _print_lock: threading.Lock = field(default_factory=threading.Lock)
    """Keeps lines in order."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Protects what the bars show. It is never held while printing, because bars are drawn under the console's own
    lock."""
    _bars: ExitStack = field(default_factory=ExitStack)

    def on_run_started(self, view: RunView) -> None:
        with self._print_lock:
            self.view = view
            self._steps_shown = {task.record.id: len(task.steps) for task in view.tasks}
            finished = sum(task.record.is_finished for task in view.tasks)
            before = f", {finished} finished already" if finished else ""
            count = "1 task" if len(view.tasks) == 1 else f"{len(view.tasks)} tasks"
            self._print(f"{view.plan.title}: {count}{before}, onto {view.branch}", "bold")
            self._print(f"run {view.run_id}", "dim")
            self._show_bars(view)

    def on_task_changed(self, view: RunView, task: str) -> None:
        with self._print_lock:
            self.view = view
            task_view = view.get_task(task)
            self._update_active(task_view)
            for step in task_view.steps[self._steps_shown.get(task, 0) :]:
                self._print_step(view, task_view, step.kind)
            self._steps_shown[task] = len(task_view.steps)

    def on_message(self, task: str, line: str) -> None:
        with self._print_lock:
            self._print(f"{task}: {line}", "cyan")

    def on_output(self, task: str, data: bytes) -> None:
        active = self._active.get(task)
        if active is not None:
            active.add_output(data)

    def on_activity(self, task: str, line: str) -> None:
        active = self._active.get(task)
        if active is not None:
            active.begin(line)

    def on_checks_started(self, task: str) -> Progress:
        return _TaskChecks(self, task)

    def on_spending(self, spent: BudgetUsage) -> None:
        self._spent = spent

    @contextmanager
    def show_live(self) -> Iterator[None]:
        """Allow bars within the block."""
        with self._bars:
            yield

    def print_failed_check(self, task: str, line: CheckLine) -> None:
        """Print a check that does not pass. The report has the others."""
        if line.verdict is Verdict.PASS or not self.verbose:
            return
        with self._print_lock:
            reason = f": {line.reason}" if line.reason else ""
            self._print(f"  {task}: {line.name} {line.verdict}{reason}", "dim")

    def note_check(self, task: str, check: str, phase: Phase, *, begins: bool) -> None:
        """Note that a check of a task begins or ends."""
        with self._lock:
            active = self._active.get(task)
            if active is None:
                return
            if begins:
                active.checks[check, phase] = time.monotonic()
            else:
                active.checks.pop((check, phase), None)

    def _update_active(self, task: TaskView) -> None:
        id = task.record.id
        with self._lock:
            if task.record.state in ACTIVE_STATES:
                self._active.setdefault(id, _ActiveTask(time.monotonic())).begin()
            else:
                self._active.pop(id, None)

    def _print_step(self, view: RunView, task: TaskView, kind: str) -> None:
        record = task.record
        head = f"{record.id} {view.plan.get_task(record.id).name}"
        attempt = f"attempt {record.attempt} of {MAX_ATTEMPTS + record.extra_attempts}"
        match kind:
            case "started":
                self._print(f"▶ {head}  {attempt}", "")
                self._print_direction(record)
            case "committed":
                self._print(f"✓ {head}  committed {(record.commit or '')[:12]}", "green")
            case "confirmed":
                self._print(f"✓ {head}  on a person's word", "green")
            case "failed":
                failure = record.failures[-1]
                then = "no attempts left" if is_exhausted(record) else "will be tried again"
                self._print(f"✗ {head}  attempt {failure.attempt}: {failure.type}: {failure.error} ({then})", "red")
            case "blocked":
                self._print(f"✗ {head}  blocked: {record.blocked_by}", "red")
            case "overridden":
                self._print(f"! {head}  {record.state.value.lower()}, unverified", "bold yellow")
            case "moved" if self.verbose:
                self._print(f"↻ {head}  others were committed before it: checked again on top of them", "dim")
            case "executed" | "checked" | "approved" if self.verbose and (not self.interactive or self.can_ask_here):
                words = {"executed": "executed, now the checks", "checked": "verified, now the review"}
                self._print(f"  {head}  {words.get(kind, 'approved')}", "dim")

    def _print_direction(self, record: TaskRecord) -> None:
        """Print how the next attempt must proceed."""
        if self.verbose and record.failures and (direction := record.failures[-1].direction):
            self._print(f"  {record.id}: {format_figures(direction)}: {direction.rationale}", "dim")

    def _print(self, text: str, style: str) -> None:
        self.console.print(escape_control(text), style=style, soft_wrap=True)

    def _show_bars(self, view: RunView) -> None:
        is_person_typing = self.can_ask_here and _PERSON in (view.executor, view.architect)
        if not self.interactive or is_person_typing:
            return
        from rich.live import Live

        bars = Live(get_renderable=self._render, console=self.console, refresh_per_second=8, transient=True)
        self._bars.enter_context(bars)

    def _render(self) -> RenderableType:
        from rich.text import Text

        text = Text()
        with self._lock:
            view = self.view
            if view is None:
                return text
            for id, active in self._active.items():
                self._append_row(text, view.get_task(id), active)
            counts = count_tasks(view)
            elapsed = time.monotonic() - self._started
            spent = f"; {words}" if (words := summarize_spending(self._spent, view.budget.run)) else ""
            line = f"  {counts.passed} of {counts.total} passed, {counts.failed} failed, {elapsed:.0f} s{spent}"
            text.append(line, style="dim")
        return text

    @staticmethod
    def _append_row(text: Text, task: TaskView, active: _ActiveTask) -> None:
        now = time.monotonic()
        text.append(f"  {format_bar(locate_task(task))} {task.record.id} ", style="cyan")
        text.append(f"{task.record.state.value.lower()} {now - active.since:.0f} s  ")
        doing = active.last_line
        if task.record.state is TaskState.VERIFYING and active.checks:
            (check, phase), _ = max(active.checks.items(), key=lambda entry: entry[1])
            doing = f"{check} on the {'base' if phase is Phase.BASELINE else 'change'}"
        shown = escape_control(doing)
        text.append(f"{shown if len(shown) <= _MAX_TEXT else '…' + shown[-_MAX_TEXT:]}\n", style="dim")


@dataclass(frozen=True)
class _TaskChecks:
    """Implements `check.context.Progress` for the checks of one task."""

    live: LiveGate
    task: str

    def on_step(self, text: str) -> None:
        self.live.on_output(self.task, text.encode())

    def on_start(self, check: str, phase: Phase) -> None:
        self.live.note_check(self.task, check, phase, begins=True)

    def on_output(self, check: str, phase: Phase, data: bytes) -> None:
        self.live.on_output(self.task, data)

    def on_end(self, check: str, phase: Phase, *, reused: bool) -> None:
        self.live.note_check(self.task, check, phase, begins=False)

    def on_check_judged(self, line: CheckLine) -> None:
        self.live.print_failed_check(self.task, line)
