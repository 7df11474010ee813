"""Outcomes and readings for the controller's tests, written short."""

from __future__ import annotations

from proofstone.agents.roles.models.solve_messages import (
    AttemptGap,
    CriterionFailure,
    CriterionMode,
    CriterionVerdict,
    FailureClass,
    Loss,
    OutcomeStatus,
    SubTaskOutcome,
)
from proofstone.solve.rules.gradient import Measurement

LOGICAL, ENVIRONMENTAL, MIXED = FailureClass.LOGICAL, FailureClass.ENVIRONMENTAL, FailureClass.MIXED
VERIFIABLE, PLAUSIBLE = CriterionMode.VERIFIABLE, CriterionMode.PLAUSIBLE


def verdict(
    name: str, failure: FailureClass | None = None, mode: CriterionMode = CriterionMode.VERIFIABLE
) -> CriterionVerdict:
    return CriterionVerdict(
        criterion=name, mode=mode, verdict="fail" if failure else "pass", failure_class=failure, evidence="seen"
    )


def outcome(
    *verdicts: CriterionVerdict, failed: bool | None = None, gaps: tuple[AttemptGap, ...] = ()
) -> SubTaskOutcome:
    """It failed where a verdict did, unless the test says otherwise."""
    if failed is None:
        failed = any(one.is_failed for one in verdicts)
    return SubTaskOutcome(
        subtask_id="s1",
        parent_task_id="t1",
        status=OutcomeStatus.FAILED if failed else OutcomeStatus.MATCHED,
        criteria_verdicts=verdicts,
        gap_trajectory=gaps,
    )


def gaps(*attempts: str) -> tuple[AttemptGap, ...]:
    """One of each attempt, with the criteria that failed in it: `gaps("a b", "b")`."""
    return tuple(
        AttemptGap(
            attempt=number,
            failed_criteria=tuple(CriterionFailure(criterion=name, failure_class=LOGICAL) for name in names.split()),
        )
        for number, names in enumerate(attempts, start=1)
    )


def at(
    *,
    D: float = 1.0,  # noqa: N803  the loss's own names
    P: float = 0.5,  # noqa: N803
    Omega: float = 0.0,  # noqa: N803
    nabla: float = 0.0,
    grad_l: float = 0.0,
    replans: int = 0,
    verified: bool = False,
    worsening: int = 0,
) -> Measurement:
    return Measurement(Loss(D=D, P=P, Omega=Omega, L=0.0), nabla, grad_l, replans, verified, worsening)
