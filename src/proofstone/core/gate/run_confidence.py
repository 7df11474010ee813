"""How sure one may be of a run of the task gate, why no surer, and what would change that. Pure.

| first match                                                     | confidence                  |
|-----------------------------------------------------------------|-----------------------------|
| it has not ended                                                | not said                    |
| it did not pass                                                 | low                         |
| a task was set aside, or a must-have was judged by nobody       | medium, or that of a task   |
| otherwise                                                       | that of the weakest task    |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from proofstone.contracts.gate import TaskState
from proofstone.contracts.gate_record import TaskRecord
from proofstone.contracts.gate_report import MustHaveResult, RunOutcome
from proofstone.contracts.verdict import Confidence
from proofstone.core.gate.passing import confidence


class Doubt(NamedTuple):
    why: str
    settled_by: str


class Rated(NamedTuple):
    confidence: Confidence | None
    reasons: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()


def of_task(record: TaskRecord) -> Confidence | None:
    """Of a task that passed by its evidence."""
    sure = record.state is TaskState.APPROVED and record.evidence is not None
    return confidence(record.evidence, record.verdicts) if sure and record.evidence else None


def rated(
    outcome: RunOutcome | None, reason: str, tasks: Sequence[TaskRecord], must_haves: Sequence[MustHaveResult]
) -> Rated:
    if outcome is None:
        return Rated(None, ("the run has not ended",), ("the run goes on to its end",))
    if outcome is not RunOutcome.PASSED:
        unmet = tuple(dict.fromkeys(_unmet(tasks))) or ("whatever keeps it from passing is put right",)
        return Rated(Confidence.LOW, (reason or f"the run ended as {outcome.value}",), unmet)
    doubts = list(dict.fromkeys(doubt for doubts in (*map(_doubts, tasks), _unjudged(must_haves)) for doubt in doubts))
    levels = [level for task in tasks if (level := of_task(task)) is not None]
    if any(one.holds is None for one in must_haves) or any(task.override for task in tasks):
        levels.append(Confidence.MEDIUM)
    reasons, raises = (tuple(doubt[part] for doubt in doubts) for part in (0, 1))
    return Rated(Confidence.weakest(levels), reasons, raises)


def _unmet(tasks: Sequence[TaskRecord]) -> Iterator[str]:
    for task in tasks:
        if task.finished:
            continue
        if task.state is TaskState.BLOCKED:
            yield f"{task.id} is unblocked: {task.blocked_by}"
        elif task.failures:
            yield f"{task.id} passes; it did not for this reason: {task.failures[-1].error}"
        else:
            yield f"{task.id} is finished"


def _doubts(task: TaskRecord) -> Iterator[Doubt]:
    if task.override is not None:
        yield Doubt(f"{task.id} was set aside ({task.override.action})", f"{task.id} goes through the gate")
    if task.evidence is None:
        return
    for cap in task.evidence.caps:
        yield Doubt(f"{task.id}: {cap}", f"{task.id}: proof, where there is none: {cap}")
    for link in task.evidence.criteria:
        if link.is_prose:
            yield Doubt(
                f"{task.id}: only an architect's word shows this: {link.criterion}",
                f"{task.id}: a check that shows this: {link.criterion}",
            )
    for run in task.evidence.verify:
        if run.flaky:
            yield Doubt(f"{task.id}: {run.command} is flaky", f"{task.id}: {run.command} passes every time")
    for verdict in task.verdicts:
        if verdict.confidence is not Confidence.HIGH:
            by = verdict.by or "the architect"
            answered = "; ".join(verdict.concerns) or "the architect is sure"
            yield Doubt(f"{task.id}: the confidence of {by} is {verdict.confidence}", f"{task.id}: settled: {answered}")


def _unjudged(must_haves: Sequence[MustHaveResult]) -> Iterator[Doubt]:
    for one in must_haves:
        if one.holds is None:
            yield Doubt(f"nobody has judged this: {one.what}", f"somebody judges this: {one.what}")
