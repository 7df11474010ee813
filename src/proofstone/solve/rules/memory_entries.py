"""The memory entries of a finished control loop. Pure; the engine sets ids and times.

| event                          | type       | tags                               | author         |
|--------------------------------|------------|------------------------------------|----------------|
| a subtask failed, logically    | procedural | the tools that it used             | planner        |
| a subtask failed, environment  | procedural | the targets that were in its way   | planner        |
| the merged result was rejected | procedural | none                               | planner        |
| the result was accepted        | episodic   | the tools and targets of the round | meta_validator |
| the task was abandoned         | episodic   | none                               | planner        |

A failure is also tagged with its class. A tool or target that worked in another subtask of the same task is not
blamed. A round without a plan teaches nothing about the task. The episode carries the cost of the whole task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.memory.models import CLASS_TAG, TARGET_TAG, TOOL_TAG, MemoryEntry, MemoryType
from proofstone.agents.roles.models.solve_messages import (
    CriterionVerdict,
    FailureClass,
    FinalResult,
    FinalStatus,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)

MAX_FAILURES: Final = 12
"""The maximum number of failures of one task; those of the last rounds are kept."""
_MAX_TAGS: Final = 12
_MAX_TEXT: Final = 300


@dataclass(frozen=True)
class FinishedTask:
    """A control loop that has ended."""

    run_id: str
    at: str
    task: TaskSpec
    result: FinalResult
    rounds: tuple[ReplanRequest | OutcomeSummary, ...]
    """The reports of the meta-validator to the controller, in order."""
    subtasks: tuple[SubTask, ...]
    """The subtasks of all rounds."""
    directives: tuple[PlanDirective, ...] = ()
    cost: float = 0.0


@dataclass(frozen=True)
class _Failure:
    content: str
    tags: tuple[str, ...]


def build_memory_entries(finished: FinishedTask) -> tuple[MemoryEntry, ...]:
    """Return the memory entries of the task, the failures first."""
    failures = list(dict.fromkeys(_find_failures(finished)))[-MAX_FAILURES:]
    return (
        *(_failure_entry(finished, number, failure) for number, failure in enumerate(failures, start=1)),
        _episode_entry(finished),
    )


# Failures.


def _failure_entry(finished: FinishedTask, number: int, failure: _Failure) -> MemoryEntry:
    return MemoryEntry(
        entry_id=f"{finished.run_id}-f{number:02}",
        task_id=finished.task.task_id,
        type=MemoryType.PROCEDURAL,
        content=failure.content,
        criteria_met=False,
        timestamp=finished.at,
        tags=failure.tags,
        run_id=finished.run_id,
        request=finished.task.raw_input,
        role="planner",
    )


def _find_failures(finished: FinishedTask) -> Iterator[_Failure]:
    subtasks = {subtask.subtask_id: subtask for subtask in finished.subtasks}
    matched = [outcome for report in finished.rounds for outcome in report.outcomes if outcome.is_matched]
    for report in finished.rounds:
        for outcome in report.outcomes:
            if not outcome.is_matched and outcome.subtask_id in subtasks:
                yield from _subtask_failures(finished.task, subtasks[outcome.subtask_id], outcome, matched)
        for failure_class, reasons in _group_by_class(report.merged_verdicts):
            yield _Failure(
                _failure_text(finished.task, "merged result", failure_class, reasons), _class_tag(failure_class)
            )


def _subtask_failures(
    task: TaskSpec, subtask: SubTask, outcome: SubTaskOutcome, worked: Sequence[SubTaskOutcome]
) -> Iterator[_Failure]:
    groups = list(_group_by_class(outcome.criteria_verdicts))
    if not groups:  # a failure without a failed criterion is environmental
        groups = [(FailureClass.ENVIRONMENTAL, [_shorten(outcome.failure_reason or "no reason was given")])]
    for failure_class, reasons in groups:
        blamed = _blamed_tags(failure_class, outcome, worked)
        yield _Failure(
            _failure_text(task, subtask.intent, failure_class, reasons), (*blamed, *_class_tag(failure_class))
        )


def _group_by_class(verdicts: Iterable[CriterionVerdict]) -> Iterator[tuple[FailureClass, list[str]]]:
    verdicts = tuple(verdicts)
    for failure_class in FailureClass:
        reasons = [_verdict_text(verdict) for verdict in verdicts if verdict.failure_class is failure_class]
        if reasons:
            yield failure_class, reasons


def _blamed_tags(failure_class: FailureClass, outcome: SubTaskOutcome, worked: Sequence[SubTaskOutcome]) -> list[str]:
    """Return the tags to blame: the tools for a wrong approach, the targets for an obstacle."""
    if failure_class is FailureClass.LOGICAL:
        innocent = {tool for matched in worked for tool in matched.tools}
        return _make_tags(TOOL_TAG, (tool for tool in outcome.tools if tool not in innocent))
    if failure_class is FailureClass.ENVIRONMENTAL:
        innocent = {path for matched in worked for path in matched.targets}
        return _make_tags(TARGET_TAG, (path for path in outcome.obstacles if path not in innocent))
    return []


def _class_tag(failure_class: FailureClass) -> tuple[str, ...]:
    return (f"{CLASS_TAG}{failure_class}",)


def _failure_text(task: TaskSpec, subject: str, failure_class: FailureClass, reasons: Sequence[str]) -> str:
    return f"{_shorten(task.intent)}: {_shorten(subject)}: failed ({failure_class}): {_join_first(reasons)}"


def _verdict_text(verdict: CriterionVerdict) -> str:
    return " – ".join(_shorten(part) for part in (verdict.criterion, verdict.evidence) if part)


# The episode.


def _episode_entry(finished: FinishedTask) -> MemoryEntry:
    is_accepted = finished.result.status is FinalStatus.ACCEPTED
    return MemoryEntry(
        entry_id=f"{finished.run_id}-e",
        task_id=finished.task.task_id,
        type=MemoryType.EPISODIC,
        content=_describe_success(finished) if is_accepted else _describe_attempts(finished),
        criteria_met=is_accepted,
        timestamp=finished.at,
        tags=_last_round_tags(finished) if is_accepted else (),
        cost=finished.cost,
        run_id=finished.run_id,
        request=finished.task.raw_input,
        role="meta_validator" if is_accepted else "planner",
    )


def _describe_success(finished: FinishedTask) -> str:
    last = {outcome.subtask_id for outcome in finished.rounds[-1].outcomes} if finished.rounds else set()
    steps = [_shorten(subtask.intent) for subtask in finished.subtasks if subtask.subtask_id in last]
    return f"{_shorten(finished.task.intent)}: accepted after {_format_replans(finished.result)}: {_join_first(steps)}"


def _describe_attempts(finished: FinishedTask) -> str:
    tried = " → ".join(directive.directive for directive in finished.directives)
    result = finished.result
    return (
        f"{_shorten(finished.task.intent)}: {result.status} after {_format_replans(result)}"
        f"{f' ({tried})' if tried else ''}: {_shorten(result.summary)}"
    )


def _format_replans(result: FinalResult) -> str:
    return f"{result.replans} replan{'' if result.replans == 1 else 's'}"


def _last_round_tags(finished: FinishedTask) -> tuple[str, ...]:
    outcomes = finished.rounds[-1].outcomes if finished.rounds else ()
    tools = _make_tags(TOOL_TAG, (tool for outcome in outcomes for tool in outcome.tools))
    return (*tools, *_make_tags(TARGET_TAG, (path for outcome in outcomes for path in outcome.targets)))


def _make_tags(kind: str, names: Iterable[str]) -> list[str]:
    return [f"{kind}{name}" for name in dict.fromkeys(names)][:_MAX_TAGS]


def _join_first(texts: Sequence[str]) -> str:
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
