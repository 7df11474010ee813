"""What agents claimed, and the engine saw otherwise: of a task at the gate, of a subtask of the loop, of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from proofstone.contracts.audit import AuditFinding, Detection
from proofstone.contracts.bus import Envelope
from proofstone.contracts.gate import CLAIM_MISMATCH
from proofstone.contracts.plan_gate.report import HeldAgainst
from proofstone.contracts.solve.messages import (
    CriterionMode,
    ExecutionStatus,
    FailureClass,
    Gap,
    SubTask,
    SubTaskOutcome,
)
from proofstone.core.audit.observed import Happened, ObservedRun, part, read, task_of, text, texts
from proofstone.core.plan_gate.findings import claimed


def claim_mismatches(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _of_tasks(run)
    yield from _of_subtasks(run)
    yield from _about_plans(run)


# Tasks at the gate.


def _of_tasks(run: ObservedRun) -> Iterator[AuditFinding]:
    """Recorded with the evidence where the attempt passed its checks, with the failure where it did not."""
    for event in run.happened("task.checked", "task.failed"):
        if details := (*_in_evidence(event), *_in_failure(event)):
            yield _mismatch(run, [event], "executor", "; ".join(details))


def _in_evidence(event: Happened) -> tuple[str, ...]:
    return texts(part(event.row.payload, "event", "evidence"), "mismatches")


def _in_failure(event: Happened) -> Iterator[str]:
    reasons = part(event.row.payload, "event", "failure").get("reasons")
    for reason in _objects(reasons):
        if text(reason, "check") == CLAIM_MISMATCH:
            yield text(reason, "detail")


def _objects(value: JsonValue) -> Sequence[dict[str, JsonValue]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


# Subtasks of the control loop.


def _of_subtasks(run: ObservedRun) -> Iterator[AuditFinding]:
    """What was called completed, though the engine saw that a criterion is not so."""
    results: dict[str | None, list[Envelope]] = defaultdict(list)
    for said in run.said("ExecutionResult"):
        results[task_of(said)].append(said)
    visible = _seen_by_the_engine(run)
    for said in run.said("SubTaskOutcome"):
        task, outcome = task_of(said), read(SubTaskOutcome, said.payload)
        if outcome is not None and task in visible:
            wrong = _contradicted(results[task], outcome.gap_trajectory, visible[task])
            if wrong:
                saw = ", ".join(dict.fromkeys(one for criteria in wrong.values() for one in criteria))
                detail = f"claimed{_times(len(wrong))}: completed; seen: it is not so that {saw}"
                shown = [*(results[task][number] for number in wrong), said]
                yield _mismatch(run, shown, shown[0].sender, detail)


def _seen_by_the_engine(run: ObservedRun) -> dict[str | None, frozenset[str]]:
    """By subtask: its verifiable criteria. What is judged is an opinion, and contradicts nobody."""
    found = {}
    for said in run.said("SubTask"):
        if (subtask := read(SubTask, said.payload)) is not None:
            criteria = (one for one in subtask.success_criteria if one.mode is CriterionMode.VERIFIABLE)
            found[task_of(said)] = frozenset(one.criterion for one in criteria)
    return found


def _contradicted(
    results: Sequence[Envelope], gaps: Sequence[Gap], visible: frozenset[str]
) -> Mapping[int, Sequence[str]]:
    """Which of the results, and by which criteria. Where something was in the way the engine could not see either."""
    wrong = {}
    for number, (result, gap) in enumerate(zip(results, gaps, strict=False)):
        failed = [one.criterion for one in gap.failed_criteria if one.failure_class is FailureClass.LOGICAL]
        against = [criterion for criterion in failed if criterion in visible]
        if against and text(result.payload, "status") == ExecutionStatus.COMPLETED:
            wrong[number] = against
    return wrong


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"


# Plans.


def _about_plans(run: ObservedRun) -> Iterator[AuditFinding]:
    """What agents of the plan gate claimed, and the engine looked up and did not find to be so."""
    for event in run.happened("plan.held-against"):
        if (held := read(HeldAgainst, event.row.payload)) is not None:
            detail = f"claimed for {held.about}: {claimed(held.looked.claim)}; seen: {held.looked.saw}"
            yield _mismatch(run, [event], held.agent, detail)


def _mismatch(run: ObservedRun, shown: Sequence[Envelope | Happened], role: str, detail: str) -> AuditFinding:
    return run.finding(Detection.CLAIM_MISMATCH, CLAIM_MISMATCH, shown, role=role, detail=detail)
