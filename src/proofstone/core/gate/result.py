"""The complete result of one task at the gate, as one document. Pure."""

from __future__ import annotations

from datetime import datetime

from proofstone.contracts.base import Contract
from proofstone.contracts.gate import ArchitectVerdict, Failure, TaskState
from proofstone.contracts.gate_record import CriterionLink, TaskRecord, VerifyRun
from proofstone.contracts.gate_report import TaskView
from proofstone.contracts.plan import PlanTask
from proofstone.contracts.verdict import Confidence


class ExecutorPart(Contract):
    status: str
    files_modified: tuple[str, ...]
    """What it changed, as the engine saw it."""
    claimed_files: tuple[str, ...] | None
    evidence: str
    mismatches: tuple[str, ...]


class GateResult(Contract):
    task: str
    task_id: str
    attempts: int
    executor: ExecutorPart | None
    verify: tuple[VerifyRun, ...]
    architect: tuple[ArchitectVerdict, ...]
    criteria: tuple[CriterionLink, ...]
    failures: tuple[Failure, ...]
    outcome: str
    """`PASSED`, `FAILED`, or the state in which a person has left it."""
    confidence: Confidence | None
    duration_ms: int
    timestamp: str
    commit_sha: str | None
    state_updated: bool = True


def gate_result(task: PlanTask, view: TaskView) -> GateResult:
    record, evidence = view.record, view.record.evidence
    times = [datetime.fromisoformat(step.at) for step in view.steps]
    return GateResult(
        task=task.name,
        task_id=task.id,
        attempts=record.attempt,
        executor=_executor(record),
        verify=evidence.verify if evidence else (),
        architect=record.verdicts,
        criteria=evidence.criteria if evidence else (),
        failures=record.failures,
        outcome="PASSED" if record.finished and record.state is TaskState.APPROVED else record.state.value,
        confidence=view.confidence,
        duration_ms=max(0, round((times[-1] - times[0]).total_seconds() * 1000)) if times else 0,
        timestamp=view.steps[-1].at if view.steps else "",
        commit_sha=record.commit,
    )


def _executor(record: TaskRecord) -> ExecutorPart | None:
    claim = record.claim
    if claim is None:
        return None
    evidence = record.evidence
    return ExecutorPart(
        status=claim.status.value,
        files_modified=evidence.changed if evidence else (),
        claimed_files=claim.files_modified,
        evidence=claim.evidence,
        mismatches=evidence.mismatches if evidence else (),
    )
