"""The complete result of each attempt at a task: executor, verify commands, architects, outcome. Pure.

It follows from the events of the task, so nothing of an attempt that failed is lost when the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from proofstone.agents.roles.models.gate import ArchitectVerdict, AttemptFailure, ExecutorResult, FailureReason
from proofstone.common.models import FrozenModel
from proofstone.gate.models import (
    AttemptApproved,
    AttemptChecked,
    AttemptExecuted,
    AttemptFailed,
    AttemptStarted,
    Evidence,
    ReviewEscalated,
    ReviewFailed,
    TaskBlocked,
    TaskCommitted,
    TaskEvent,
    VerifyRun,
)


class ExecutorSummary(FrozenModel):
    """The executor's part of a result."""

    status: str
    files_modified: tuple[str, ...]
    """The changed files that Proofstone observed."""
    claimed_files: tuple[str, ...] | None
    evidence: str
    mismatches: tuple[str, ...]


class AttemptResult(FrozenModel):
    """The complete result of one attempt."""

    attempt: int
    executor: ExecutorSummary | None = None
    verify: tuple[VerifyRun, ...] = ()
    architect: tuple[ArchitectVerdict, ...] = ()
    """Every verdict, rejections too."""
    unanswered: tuple[AttemptFailure, ...] = ()
    """The times that an architect was asked and gave no verdict."""
    outcome: str = "OPEN"
    """`PASSED`, `FAILED`, `BLOCKED`, or `OPEN` if it has not ended."""
    failure_type: str | None = None
    reasons: tuple[FailureReason, ...] = ()
    duration_ms: int = 0
    timestamp: str = ""
    commit_sha: str | None = None


def list_attempt_results(events: Iterable[tuple[str, TaskEvent]]) -> tuple[AttemptResult, ...]:
    """Return the result of each attempt, from the events of a task with their times."""
    attempts: list[list[tuple[str, TaskEvent]]] = []
    for at, event in events:
        if isinstance(event, AttemptStarted):
            attempts.append([])
        if attempts:
            attempts[-1].append((at, event))
    return tuple(map(_build_result, attempts))


def summarize_executor(claim: ExecutorResult | None, evidence: Evidence | None) -> ExecutorSummary | None:
    """Return the executor's part of a result; None if it has claimed nothing."""
    if claim is None:
        return None
    return ExecutorSummary(
        status=claim.status.value,
        files_modified=evidence.changed if evidence else (),
        claimed_files=claim.files_modified,
        evidence=claim.evidence,
        mismatches=evidence.mismatches if evidence else (),
    )


def _build_result(events: Sequence[tuple[str, TaskEvent]]) -> AttemptResult:
    claim: ExecutorResult | None = None
    evidence: Evidence | None = None
    verdicts: list[ArchitectVerdict] = []
    changes: dict[str, object] = {}
    unanswered: list[AttemptFailure] = []
    for _, event in events:
        match event:
            case AttemptStarted():
                changes["attempt"] = event.attempt
            case AttemptExecuted():
                claim = event.claim
            case AttemptChecked():
                evidence = event.evidence
                verdicts.append(event.rules)
            case AttemptApproved():
                verdicts += event.verdicts
            case ReviewEscalated():
                verdicts.append(event.verdict)
            case ReviewFailed():
                unanswered.append(event.failure)
            case AttemptFailed():
                claim, evidence = event.claim or claim, event.evidence or evidence
                verdicts += event.failure.verdicts
                changes |= {"outcome": "FAILED", "failure_type": event.failure.type.value}
                changes["reasons"] = event.failure.reasons
            case TaskBlocked():
                changes |= {"outcome": "BLOCKED", "failure_type": "BLOCKED"}
                changes["reasons"] = (FailureReason(check="executor", layer="gate", detail=event.error),)
            case TaskCommitted():
                changes |= {"outcome": "PASSED", "commit_sha": event.commit}
    start, end = events[0][0], events[-1][0]
    elapsed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return AttemptResult.model_validate(
        {
            **changes,
            "executor": summarize_executor(claim, evidence),
            "verify": evidence.verify if evidence else (),
            "architect": tuple(dict.fromkeys(verdicts)),
            "unanswered": tuple(unanswered),
            "duration_ms": max(0, round(elapsed.total_seconds() * 1000)),
            "timestamp": end,
        }
    )
