"""The position of a run and its tasks for people: three steps (executor, verify, architect) and a bar. Pure.

    | state              | executor | verify  | architect |
    |--------------------|----------|---------|-----------|
    | PENDING            | pending  | pending | pending   |
    | EXECUTING          | running  | pending | pending   |
    | VERIFYING          | success  | running | pending   |
    | REVIEWING          | success  | passed  | reviewing |
    | APPROVED           | success  | passed  | approved  |
    | BLOCKED            | blocked  | pending | pending   |
    | FAILED in step 1   | failure  | pending | pending   |
    | FAILED in step 2   | success  | failed  | pending   |
    | FAILED in step 3   | success  | passed  | rejected  |
    | SKIPPED, FORCED    | its claim | skipped | pending  |

A checkpoint that a person confirmed is approved with nothing to verify. An architect that timed out or gave no valid
verdict has not rejected: that step is still pending.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import FailureType, TaskState
from proofstone.gate.models import RunView, TaskRecord, TaskStep, TaskView
from proofstone.gate.rules.state_machine import is_exhausted

S = TaskState
ACTIVE_STATES: Final = (S.EXECUTING, S.VERIFYING, S.REVIEWING)
STEP_COUNT: Final = 3
_BAR_WIDTH: Final = 8
_STEP_NAMES: Final = ("Executor", "Verify", "Architect")
_DONE_WORDS: Final = ("success", "passed", "approved")
_RUNNING_WORDS: Final = ("running", "reviewing")
_FAILED_WORDS: Final = ("failure", "blocked", "failed", "rejected")
_OPENED_BY: Final = ("started", "executed", "checked")
"""The event that begins each step. The next event ends it."""
_ENDED_BY: Final = ("executed", "checked", "approved")


class TaskPosition(NamedTuple):
    """The position of a task in the three steps."""

    step: int
    """1 to 3: the current step, or the one in which the task ended."""
    executor: str
    verify: str
    architect: str

    @property
    def words(self) -> tuple[str, str, str]:
        """The words for the three steps."""
        return self.executor, self.verify, self.architect


_BY_STATE: Final[Mapping[TaskState, TaskPosition]] = {
    S.PENDING: TaskPosition(1, "pending", "pending", "pending"),
    S.EXECUTING: TaskPosition(1, "running", "pending", "pending"),
    S.VERIFYING: TaskPosition(2, "success", "running", "pending"),
    S.REVIEWING: TaskPosition(3, "success", "passed", "reviewing"),
    S.APPROVED: TaskPosition(3, "success", "passed", "approved"),
    S.BLOCKED: TaskPosition(1, "blocked", "pending", "pending"),
}
_FAILED_IN: Final[Mapping[int, TaskPosition]] = {
    1: TaskPosition(1, "failure", "pending", "pending"),
    2: TaskPosition(2, "success", "failed", "pending"),
    3: TaskPosition(3, "success", "passed", "rejected"),
}
_STEP_OF_FAILURE: Final[Mapping[FailureType, int]] = {
    FailureType.EXECUTION_FAILURE: 1,
    FailureType.BLOCKED: 1,
    FailureType.VERIFY_FAILURE: 2,
    FailureType.ARCHITECT_REJECTION: 3,
}
"""Other failures may happen in any step."""
_STEP_OF_STATE: Final[Mapping[TaskState, int]] = {S.EXECUTING: 1, S.VERIFYING: 2, S.REVIEWING: 3, S.APPROVED: 3}


def locate_task(task: TaskView) -> TaskPosition:
    """Return the position of a task."""
    record = task.record
    if record.state is S.FAILED:
        return _locate_failure(task)
    if record.override is not None:
        claim_status = record.claim.status.value if record.claim else "pending"
        return TaskPosition(2, claim_status, "skipped", "pending")
    if record.state is S.APPROVED and record.checkpoint:
        return TaskPosition(3, "success", "skipped", "approved")
    return _BY_STATE[record.state]


def format_bar(task_position: TaskPosition) -> str:
    """Format `[####----]`: a finished step counts fully, a running one half."""
    finished_steps = sum(word in _DONE_WORDS or word == "skipped" for word in task_position.words)
    half = any(word in _RUNNING_WORDS for word in task_position.words)
    filled = round(_BAR_WIDTH * (2 * finished_steps + half) / (2 * STEP_COUNT))
    return f"[{'#' * filled}{'-' * (_BAR_WIDTH - filled)}]"


def format_steps(task: TaskView) -> tuple[str, ...]:
    """Format the three steps, each with its mark, its word and the time."""
    task_position = locate_task(task)
    lines = []
    for number, (name, word) in enumerate(zip(_STEP_NAMES, task_position.words, strict=True), start=1):
        failed_here = task.record.state is S.FAILED and number == task_position.step
        label = word.upper() if word != "pending" or not failed_here else task.record.failures[-1].type.value
        at = _format_clock(task, number, word, failed_here=failed_here)
        lines.append(f"{_choose_mark(word, failed_here=failed_here)} Step {number}: {name:<11} - {label}{at}")
    return tuple(lines)


def find_current_task(view: RunView) -> TaskView | None:
    """Return the most interesting task: in progress, asking, failed, next in turn, or else the last."""
    groups = (
        [task for task in view.tasks if task.record.state in ACTIVE_STATES],
        [task for task in view.tasks if task.asks],
        [task for task in view.tasks if task.record.state in (S.FAILED, S.BLOCKED)],
    )
    for group in groups:
        if group:
            return max(group, key=_last_event)
    waiting = [task for task in view.tasks if task.record.state is S.PENDING]
    if waiting:
        return min(waiting, key=lambda task: len(task.waits_for))
    return max(view.tasks, key=_last_event, default=None)


class TaskStatistics(NamedTuple):
    """Counts of tasks. A skipped or forced task counts only in `total`."""

    total: int
    passed: int
    failed: int
    in_progress: int
    pending: int
    pass_rate: str
    average_attempts: float


def count_tasks(view: RunView) -> TaskStatistics:
    """Count the tasks of a run."""
    records = [task.record for task in view.tasks]
    passed = sum(record.state is S.APPROVED and record.is_finished for record in records)
    failed = sum(is_exhausted(record) for record in records)
    tried = [record.attempt for record in records if record.attempt]
    return TaskStatistics(
        total=len(records),
        passed=passed,
        failed=failed,
        in_progress=sum(_is_in_progress(record) for record in records),
        pending=sum(record.state in (S.PENDING, S.BLOCKED) for record in records),
        pass_rate=_format_rate(passed, failed),
        average_attempts=round(sum(tried) / len(tried), 1) if tried else 0.0,
    )


def describe_status(record: TaskRecord) -> str:
    """Return the state of a task. For a skipped or forced task, say that it was never verified."""
    words = {S.SKIPPED: "complete (unverified)", S.FORCED: "complete (forced)"}
    return words.get(record.state, record.state.value)


def _locate_failure(task: TaskView) -> TaskPosition:
    if not task.record.failures:
        return _FAILED_IN[1]
    last = task.record.failures[-1].type
    step = _STEP_OF_FAILURE.get(last) or _find_last_step(task)
    task_position = _FAILED_IN[step]
    return (
        task_position
        if step < STEP_COUNT or last is FailureType.ARCHITECT_REJECTION
        else task_position._replace(architect="pending")
    )


def _find_last_step(task: TaskView) -> int:
    before = [step.state for step in task.steps if step.kind != "failed" and step.attempt == task.record.attempt]
    return _STEP_OF_STATE.get(before[-1], 1) if before else 1


def _is_in_progress(record: TaskRecord) -> bool:
    """Whether the task is in progress. That includes approved but not committed, and failed but about to be retried."""
    if record.state is S.FAILED:
        return not is_exhausted(record)
    return record.state in ACTIVE_STATES or (record.state is S.APPROVED and not record.is_finished)


def _format_rate(passed: int, failed: int) -> str:
    if not passed + failed:
        return "–"
    rate = round(100 * passed / (passed + failed))
    return f"{min(rate, 99) if failed else rate}%"


def _choose_mark(word: str, *, failed_here: bool) -> str:
    if failed_here or word in _FAILED_WORDS:
        return "[!]"
    if word in _DONE_WORDS:
        return "[x]"
    if word in _RUNNING_WORDS:
        return "[~]"
    return "[-]" if word == "skipped" else "[ ]"


def _format_clock(task: TaskView, number: int, word: str, *, failed_here: bool) -> str:
    """Format the time at which the step got its word, as `(14:02:30)`."""
    kinds: tuple[str, ...] = ()
    if failed_here:
        kinds = ("failed",)
    elif word in _RUNNING_WORDS:
        kinds = (_OPENED_BY[number - 1], "moved")
    elif word in _DONE_WORDS:
        kinds = (_ENDED_BY[number - 1], "confirmed")
    elif word == "blocked":
        kinds = ("blocked",)
    steps = [step for step in task.steps if step.attempt == task.record.attempt and step.kind in kinds]
    return f" ({format_time_of_day(steps[-1].at)})" if steps else ""


def format_time_of_day(at: str) -> str:
    """Return the time of day of a timestamp."""
    return at[11:19]


def _last_event(task: TaskView) -> tuple[int, str]:
    last: TaskStep | None = task.steps[-1] if task.steps else None
    return (last.seq, last.at) if last else (0, "")
