"""A finished control loop, as entries of the memory. Pure; ids and times are the engine's.

| what happened                  | type       | tags                               | who writes it  |
|--------------------------------|------------|------------------------------------|----------------|
| a subtask failed, logically    | procedural | the tools that it used             | planner        |
| a subtask failed, environment  | procedural | the targets that were in its way   | planner        |
| the merged result was rejected | procedural | none                               | planner        |
| the result was accepted        | episodic   | the tools and targets of the round | meta_validator |
| it was abandoned               | episodic   | none                               | planner        |

What failed is tagged with its class as well. A tool or target that worked in another subtask of the same task is not to
blame. A round that had no plan teaches nothing about the task. The episode has the cost of the whole task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.memory.models import CLASS, TARGET, TOOL, MemoryEntry, MemoryType
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

MOST_FAILURES: Final = 12
"""Of one task; those of the last rounds."""
_MOST_TAGS: Final = 12
_TEXT: Final = 300


@dataclass(frozen=True)
class Finished:
    """A control loop that has come to its end."""

    run_id: str
    at: str
    task: TaskSpec
    result: FinalResult
    rounds: tuple[ReplanRequest | OutcomeSummary, ...]
    """What the meta-validator told the controller, in order."""
    subtasks: tuple[SubTask, ...]
    """Of all rounds."""
    directives: tuple[PlanDirective, ...] = ()
    cost: float = 0.0


@dataclass(frozen=True)
class _Failure:
    content: str
    tags: tuple[str, ...]


def entries_of(finished: Finished) -> tuple[MemoryEntry, ...]:
    """What is worth remembering of it, the failures first."""
    failures = list(dict.fromkeys(_failures(finished)))[-MOST_FAILURES:]
    return (*(_procedural(finished, number, one) for number, one in enumerate(failures, start=1)), _episode(finished))


# What failed.


def _procedural(finished: Finished, number: int, failure: _Failure) -> MemoryEntry:
    return MemoryEntry(
        entry_id=f"{finished.run_id}-f{number:02}",
        task_id=finished.task.task_id,
        type=MemoryType.PROCEDURAL,
        content=failure.content,
        criteria_met=False,
        timestamp=finished.at,
        tags=failure.tags,
        run_id=finished.run_id,
        role="planner",
    )


def _failures(finished: Finished) -> Iterator[_Failure]:
    subtasks = {subtask.subtask_id: subtask for subtask in finished.subtasks}
    worked = [item for told in finished.rounds for item in told.outcomes if item.matched]
    for told in finished.rounds:
        for outcome in told.outcomes:
            if not outcome.matched and outcome.subtask_id in subtasks:
                yield from _of_subtask(finished.task, subtasks[outcome.subtask_id], outcome, worked)
        for failure_class, said in _by_class(told.merged_verdicts):
            yield _Failure(_told(finished.task, "merged result", failure_class, said), _class_tag(failure_class))


def _of_subtask(
    task: TaskSpec, subtask: SubTask, outcome: SubTaskOutcome, worked: Sequence[SubTaskOutcome]
) -> Iterator[_Failure]:
    failed = list(_by_class(outcome.criteria_verdicts))
    if not failed:  # it failed without saying by which criterion: something was in its way
        failed = [(FailureClass.ENVIRONMENTAL, [_cut(outcome.failure_reason or "no reason was given")])]
    for failure_class, said in failed:
        named = _to_blame(failure_class, outcome, worked)
        yield _Failure(_told(task, subtask.intent, failure_class, said), (*named, *_class_tag(failure_class)))


def _by_class(verdicts: Iterable[CriterionVerdict]) -> Iterator[tuple[FailureClass, list[str]]]:
    verdicts = tuple(verdicts)
    for failure_class in FailureClass:
        said = [_verdict(verdict) for verdict in verdicts if verdict.failure_class is failure_class]
        if said:
            yield failure_class, said


def _to_blame(failure_class: FailureClass, outcome: SubTaskOutcome, worked: Sequence[SubTaskOutcome]) -> list[str]:
    """A wrong approach is its tools'; what was in the way is the targets'."""
    if failure_class is FailureClass.LOGICAL:
        innocent = {tool for item in worked for tool in item.tools}
        return _tags(TOOL, (tool for tool in outcome.tools if tool not in innocent))
    if failure_class is FailureClass.ENVIRONMENTAL:
        innocent = {path for item in worked for path in item.targets}
        return _tags(TARGET, (path for path in outcome.obstacles if path not in innocent))
    return []


def _class_tag(failure_class: FailureClass) -> tuple[str, ...]:
    return (f"{CLASS}{failure_class}",)


def _told(task: TaskSpec, what: str, failure_class: FailureClass, said: Sequence[str]) -> str:
    return f"{_cut(task.intent)}: {_cut(what)}: failed ({failure_class}): {_several(said)}"


def _verdict(verdict: CriterionVerdict) -> str:
    return " – ".join(_cut(part) for part in (verdict.criterion, verdict.evidence) if part)


# How the task went.


def _episode(finished: Finished) -> MemoryEntry:
    accepted = finished.result.status is FinalStatus.ACCEPTED
    return MemoryEntry(
        entry_id=f"{finished.run_id}-e",
        task_id=finished.task.task_id,
        type=MemoryType.EPISODIC,
        content=_what_worked(finished) if accepted else _what_was_tried(finished),
        criteria_met=accepted,
        timestamp=finished.at,
        tags=_of_last_round(finished) if accepted else (),
        cost=finished.cost,
        run_id=finished.run_id,
        role="meta_validator" if accepted else "planner",
    )


def _what_worked(finished: Finished) -> str:
    last = {outcome.subtask_id for outcome in finished.rounds[-1].outcomes} if finished.rounds else set()
    steps = [_cut(subtask.intent) for subtask in finished.subtasks if subtask.subtask_id in last]
    return f"{_cut(finished.task.intent)}: accepted after {_replans(finished.result)}: {_several(steps)}"


def _what_was_tried(finished: Finished) -> str:
    tried = " → ".join(directive.directive for directive in finished.directives)
    result = finished.result
    return (
        f"{_cut(finished.task.intent)}: {result.status} after {_replans(result)}"
        f"{f' ({tried})' if tried else ''}: {_cut(result.summary)}"
    )


def _replans(result: FinalResult) -> str:
    return f"{result.replans} replan{'' if result.replans == 1 else 's'}"


def _of_last_round(finished: Finished) -> tuple[str, ...]:
    outcomes = finished.rounds[-1].outcomes if finished.rounds else ()
    tools = _tags(TOOL, (tool for outcome in outcomes for tool in outcome.tools))
    return (*tools, *_tags(TARGET, (path for outcome in outcomes for path in outcome.targets)))


def _tags(kind: str, names: Iterable[str]) -> list[str]:
    return [f"{kind}{name}" for name in dict.fromkeys(names)][:_MOST_TAGS]


def _several(said: Sequence[str]) -> str:
    return "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if len(said) > 3 else "")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"
