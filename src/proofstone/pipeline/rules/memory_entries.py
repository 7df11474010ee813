"""What the engine itself remembers about a run of the pipeline that has ended. Pure; the shell sets the time.

| event                                       | type       | tags                                               |
|---------------------------------------------|------------|----------------------------------------------------|
| an attempt failed, and the run with it      | procedural | the class, and a program that was not found        |
| the run failed for another reason           | procedural | none                                               |
| the run was committed                       | episodic   | the programs of its verify commands, and its files |

A run that a person ended, that waits for one, or that a blocker has halted and a fix may still save, teaches nothing
yet. A program that two runs have missed is forbidden to later plans, until a run with it has passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from proofstone.agents.memory.models import CLASS_TAG, PROGRAM_TAG, TARGET_TAG, MemoryEntry, MemoryType
from proofstone.agents.roles.models.gate import AttemptFailure, TaskState
from proofstone.common.shell import list_programs
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.pipeline.models.run import RunReport
from proofstone.pipeline.rules.endings import was_ended_by_person

MAX_FAILURES: Final = 12
_MAX_TAGS: Final = 12
_MAX_TEXT: Final = 300
_ROLE: Final = "planner"


def build_run_entries(report: RunReport, commands: Iterable[str], at: str) -> tuple[MemoryEntry, ...]:
    """Return the entries about the run. `commands` are the verify commands of its plans."""
    if report.outcome is RunOutcome.PASSED and report.commit:
        return (_build_episode(report, commands, at),)
    if report.outcome not in (RunOutcome.FAILED, RunOutcome.HALTED) or report.awaits_fix or was_ended_by_person(report):
        return ()
    failures = list(dict.fromkeys(_list_failures(report)))[-MAX_FAILURES:]
    return tuple(
        _build_entry(report, f"f{number:02}", MemoryType.PROCEDURAL, content, tags, at)
        for number, (content, tags) in enumerate(failures, start=1)
    )


def _list_failures(report: RunReport) -> Iterator[tuple[str, tuple[str, ...]]]:
    unfinished = [task for task in report.tasks if task.state is not TaskState.APPROVED and task.failures]
    for task in unfinished:
        for failure in task.failures:
            yield _describe_failure(report, task, failure), _list_failure_tags(failure)
    if not unfinished:
        yield f"{_shorten(report.request)}: failed: {_shorten(report.reason)}", ()


def _describe_failure(report: RunReport, task: TaskReport, failure: AttemptFailure) -> str:
    reasons = "; ".join(_shorten(f"{reason.check}: {reason.detail}") for reason in failure.reasons[:2])
    why = reasons or _shorten(failure.error)
    return f"{_shorten(report.request)}: {_shorten(task.name)}: failed ({failure.type}): {why}"


def _list_failure_tags(failure: AttemptFailure) -> tuple[str, ...]:
    programs = (f"{PROGRAM_TAG}{failure.missing_program}",) if failure.missing_program else ()
    classes = (f"{CLASS_TAG}{failure.direction.failure_class}",) if failure.direction else ()
    return (*programs, *classes)


def _build_episode(report: RunReport, commands: Iterable[str], at: str) -> MemoryEntry:
    done = "; ".join(_shorten(task.name) for task in report.tasks if task.state is TaskState.APPROVED)
    programs = [f"{PROGRAM_TAG}{program}" for command in commands for program in list_programs(command)]
    files = [f"{TARGET_TAG}{file.path}" for file in report.changed]
    content = f"{_shorten(report.request)}: committed: {done}"
    tags = (*_first_tags(programs), *_first_tags(files))
    return _build_entry(report, "e", MemoryType.EPISODIC, content, tags, at, worked=True)


def _build_entry(
    report: RunReport,
    suffix: str,
    type: MemoryType,
    content: str,
    tags: tuple[str, ...],
    at: str,
    *,
    worked: bool = False,
) -> MemoryEntry:
    return MemoryEntry(
        entry_id=f"{report.run_id}-{suffix}",
        task_id=report.run_id,
        type=type,
        content=content,
        criteria_met=worked,
        timestamp=at,
        tags=tags,
        run_id=report.run_id,
        request=report.request,
        role=_ROLE,
    )


def _first_tags(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tags))[:_MAX_TAGS]


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
