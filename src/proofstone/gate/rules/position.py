"""Where a run and its tasks stand, as people see it: three steps (executor, verify, architect) and a bar. Pure.

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

A checkpoint that the person confirmed is approved without anything to verify. An architect who was too late or said
nothing that counts has not rejected: their step is pending still.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import FailureType, TaskState
from proofstone.gate.models import RunView, Step, TaskRecord, TaskView
from proofstone.gate.rules.machine import exhausted

S = TaskState
UNDER_WAY: Final = (S.EXECUTING, S.VERIFYING, S.REVIEWING)
STEPS: Final = 3
_BAR: Final = 8
_NAMES: Final = ("Executor", "Verify", "Architect")
_DONE: Final = ("success", "passed", "approved")
_RUNNING: Final = ("running", "reviewing")
_WRONG: Final = ("failure", "blocked", "failed", "rejected")
_OPENED_BY: Final = ("started", "executed", "checked")
"""The event with which each step begins; the next one ends it."""
_ENDED_BY: Final = ("executed", "checked", "approved")


class Position(NamedTuple):
    step: int
    """1 to 3: the one that it is in, or came to its end in."""
    executor: str
    verify: str
    architect: str

    @property
    def words(self) -> tuple[str, str, str]:
        return self.executor, self.verify, self.architect


_BY_STATE: Final[Mapping[TaskState, Position]] = {
    S.PENDING: Position(1, "pending", "pending", "pending"),
    S.EXECUTING: Position(1, "running", "pending", "pending"),
    S.VERIFYING: Position(2, "success", "running", "pending"),
    S.REVIEWING: Position(3, "success", "passed", "reviewing"),
    S.APPROVED: Position(3, "success", "passed", "approved"),
    S.BLOCKED: Position(1, "blocked", "pending", "pending"),
}
_FAILED_IN: Final[Mapping[int, Position]] = {
    1: Position(1, "failure", "pending", "pending"),
    2: Position(2, "success", "failed", "pending"),
    3: Position(3, "success", "passed", "rejected"),
}
_STEP_OF_FAILURE: Final[Mapping[FailureType, int]] = {
    FailureType.EXECUTION_FAILURE: 1,
    FailureType.BLOCKED: 1,
    FailureType.VERIFY_FAILURE: 2,
    FailureType.ARCHITECT_REJECTION: 3,
}
"""The others may happen in any step."""
_STEP_OF_STATE: Final[Mapping[TaskState, int]] = {S.EXECUTING: 1, S.VERIFYING: 2, S.REVIEWING: 3, S.APPROVED: 3}


def position(task: TaskView) -> Position:
    record = task.record
    if record.state is S.FAILED:
        return _failed(task)
    if record.override is not None:
        claimed = record.claim.status.value if record.claim else "pending"
        return Position(2, claimed, "skipped", "pending")
    if record.state is S.APPROVED and record.checkpoint:
        return Position(3, "success", "skipped", "approved")
    return _BY_STATE[record.state]


def bar(place: Position) -> str:
    """`[####----]`: a step that is done counts whole, one that runs counts half."""
    done = sum(word in _DONE or word == "skipped" for word in place.words)
    half = any(word in _RUNNING for word in place.words)
    filled = round(_BAR * (2 * done + half) / (2 * STEPS))
    return f"[{'#' * filled}{'-' * (_BAR - filled)}]"


def step_lines(task: TaskView) -> tuple[str, ...]:
    """The three steps, each with its mark, its word and when that was so."""
    place = position(task)
    lines = []
    for number, (name, word) in enumerate(zip(_NAMES, place.words, strict=True), start=1):
        failed_here = task.record.state is S.FAILED and number == place.step
        told = word.upper() if word != "pending" or not failed_here else task.record.failures[-1].type.value
        at = _clock(task, number, word, failed_here=failed_here)
        lines.append(f"{_mark(word, failed_here=failed_here)} Step {number}: {name:<11} - {told}{at}")
    return tuple(lines)


def current(view: RunView) -> TaskView | None:
    """The task that a person would look at: under way, asking, in trouble, next in turn, or else the last."""
    groups = (
        [task for task in view.tasks if task.record.state in UNDER_WAY],
        [task for task in view.tasks if task.asks],
        [task for task in view.tasks if task.record.state in (S.FAILED, S.BLOCKED)],
    )
    for group in groups:
        if group:
            return max(group, key=_last)
    waiting = [task for task in view.tasks if task.record.state is S.PENDING]
    if waiting:
        return min(waiting, key=lambda task: len(task.waits_for))
    return max(view.tasks, key=_last, default=None)


class Statistics(NamedTuple):
    """What was skipped or forced is a task, but neither passed nor failed, under way nor pending."""

    total: int
    passed: int
    failed: int
    in_progress: int
    pending: int
    pass_rate: str
    average_attempts: float


def statistics(view: RunView) -> Statistics:
    records = [task.record for task in view.tasks]
    passed = sum(record.state is S.APPROVED and record.finished for record in records)
    failed = sum(exhausted(record) for record in records)
    tried = [record.attempt for record in records if record.attempt]
    return Statistics(
        total=len(records),
        passed=passed,
        failed=failed,
        in_progress=sum(_in_progress(record) for record in records),
        pending=sum(record.state in (S.PENDING, S.BLOCKED) for record in records),
        pass_rate=_rate(passed, failed),
        average_attempts=round(sum(tried) / len(tried), 1) if tried else 0.0,
    )


def status_word(record: TaskRecord) -> str:
    """Its state; of what a person took upon themselves, that it was never verified."""
    words = {S.SKIPPED: "complete (unverified)", S.FORCED: "complete (forced)"}
    return words.get(record.state, record.state.value)


def _failed(task: TaskView) -> Position:
    if not task.record.failures:
        return _FAILED_IN[1]
    last = task.record.failures[-1].type
    step = _STEP_OF_FAILURE.get(last) or _step_before_the_end(task)
    place = _FAILED_IN[step]
    return place if step < STEPS or last is FailureType.ARCHITECT_REJECTION else place._replace(architect="pending")


def _step_before_the_end(task: TaskView) -> int:
    before = [step.state for step in task.steps if step.kind != "failed" and step.attempt == task.record.attempt]
    return _STEP_OF_STATE.get(before[-1], 1) if before else 1


def _in_progress(record: TaskRecord) -> bool:
    """Also: approved and not committed yet, or failed and about to be tried again."""
    if record.state is S.FAILED:
        return not exhausted(record)
    return record.state in UNDER_WAY or (record.state is S.APPROVED and not record.finished)


def _rate(passed: int, failed: int) -> str:
    if not passed + failed:
        return "–"
    rate = round(100 * passed / (passed + failed))
    return f"{min(rate, 99) if failed else rate}%"


def _mark(word: str, *, failed_here: bool) -> str:
    if failed_here or word in _WRONG:
        return "[!]"
    if word in _DONE:
        return "[x]"
    if word in _RUNNING:
        return "[~]"
    return "[-]" if word == "skipped" else "[ ]"


def _clock(task: TaskView, number: int, word: str, *, failed_here: bool) -> str:
    """When the step came to what it is, as `(14:02:30)`."""
    kinds: tuple[str, ...] = ()
    if failed_here:
        kinds = ("failed",)
    elif word in _RUNNING:
        kinds = (_OPENED_BY[number - 1], "moved")
    elif word in _DONE:
        kinds = (_ENDED_BY[number - 1], "confirmed")
    elif word == "blocked":
        kinds = ("blocked",)
    found = [step for step in task.steps if step.attempt == task.record.attempt and step.kind in kinds]
    return f" ({clock(found[-1].at)})" if found else ""


def clock(at: str) -> str:
    """The time of day in a time stamp."""
    return at[11:19]


def _last(task: TaskView) -> tuple[int, str]:
    last: Step | None = task.steps[-1] if task.steps else None
    return (last.seq, last.at) if last else (0, "")
