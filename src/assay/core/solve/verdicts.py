"""From what the engine saw and a model judged to verdicts and an outcome. The verdict of the whole is the AND of its
parts, whatever anybody says of the whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from assay.contracts.solve.answers import JudgedCriterion
from assay.contracts.solve.messages import (
    Criterion,
    CriterionMode,
    CriterionVerdict,
    ExecutionResult,
    FailedCriterion,
    FailureClass,
    Gap,
    OutcomeStatus,
    SubTask,
    SubTaskOutcome,
)

ENVIRONMENTAL: Final = re.compile(
    r"connection (?:refused|reset|timed out)|could not resolve|name or service not known|no route to host"
    r"|network is unreachable|temporary failure in name resolution|timed? ?out|deadline exceeded|rate limit"
    r"|too many requests|\b(?:429|502|503|504)\b|service unavailable|permission denied|operation not permitted"
    r"|read-only file system|no space left|disk quota|out of memory|cannot allocate memory|\bkilled\b|command not found"
    r"|no such host|certificate|ssl error|unauthorized|forbidden|quota exceeded|resource busy|address already in use"
    r"|is not installed|cannot find module|no module named",
    re.IGNORECASE,
)
"""What the evidence of a failure says when something was in the way: it goes before what anybody says of the class."""


def passed(criterion: Criterion, evidence: str) -> CriterionVerdict:
    return CriterionVerdict(criterion=criterion.criterion, mode=criterion.mode, verdict="pass", evidence=evidence)


def failed(criterion: Criterion, evidence: str, said: FailureClass) -> CriterionVerdict:
    """A failure; what its evidence shows of the environment counts more than what was said."""
    of = FailureClass.ENVIRONMENTAL if ENVIRONMENTAL.search(evidence) else said
    return CriterionVerdict(
        criterion=criterion.criterion, mode=criterion.mode, verdict="fail", failure_class=of, evidence=evidence
    )


def judged(criteria: Sequence[Criterion], verdicts: Sequence[JudgedCriterion]) -> tuple[CriterionVerdict, ...]:
    """What a model says about criteria that were numbered from 1. What it leaves out, or passes without any evidence,
    has not passed; the first word about each counts."""
    said = {one.number: one for one in reversed(verdicts)}
    found = []
    for number, criterion in enumerate(criteria, start=1):
        one = said.get(number)
        if one is None:
            found.append(failed(criterion, "nothing was said about it", FailureClass.ENVIRONMENTAL))
        elif one.verdict == "pass" and not one.evidence.strip():
            found.append(failed(criterion, "nothing was said to show it", FailureClass.ENVIRONMENTAL))
        elif one.verdict == "pass":
            found.append(passed(criterion, one.evidence))
        else:
            found.append(failed(criterion, one.evidence, FailureClass(one.failure_class or FailureClass.LOGICAL)))
    return tuple(found)


def looked_at(criteria: Sequence[Criterion], verdicts: Sequence[CriterionVerdict]) -> tuple[CriterionVerdict, ...]:
    """What the engine saw of them, in their order. What it did not look at has not passed."""
    return tuple(
        one
        if one and one.criterion == criterion.criterion
        else failed(criterion, "nobody looked at it", FailureClass.ENVIRONMENTAL)
        for criterion, one in zip_longest(criteria, verdicts[: len(criteria)])
    )


def unjudged(criteria: Sequence[Criterion], why: str) -> tuple[CriterionVerdict, ...]:
    """Nobody could say: that is no pass."""
    return tuple(failed(criterion, why, FailureClass.ENVIRONMENTAL) for criterion in criteria)


def crashed(criteria: Sequence[Criterion], why: str) -> tuple[CriterionVerdict, ...]:
    """All of them, as verifiable failures of the environment: nothing is known to be there."""
    return tuple(
        CriterionVerdict(
            criterion=one.criterion,
            mode=CriterionMode.VERIFIABLE,
            verdict="fail",
            failure_class=FailureClass.ENVIRONMENTAL,
            evidence=why,
        )
        for one in criteria
    )


def gap(attempt: int, verdicts: Sequence[CriterionVerdict]) -> Gap:
    return Gap(
        attempt=attempt,
        failed_criteria=tuple(
            FailedCriterion(criterion=one.criterion, failure_class=one.failure_class)
            for one in verdicts
            if one.failure_class is not None
        ),
    )


def outcome(
    subtask: SubTask,
    result: ExecutionResult,
    verdicts: Sequence[CriterionVerdict],
    gaps: Sequence[Gap],
    *,
    tools: Sequence[str] = (),
    targets: Sequence[str] = (),
) -> SubTaskOutcome:
    wrong = [one for one in verdicts if one.failed]
    reason = "; ".join(f"{one.criterion}: {one.evidence}" for one in wrong)
    return SubTaskOutcome(
        subtask_id=subtask.subtask_id,
        parent_task_id=subtask.parent_task_id,
        status=OutcomeStatus.FAILED if wrong or not verdicts else OutcomeStatus.MATCHED,
        output=result.output,
        failure_reason=(result.crashed or reason or None) if wrong or not verdicts else None,
        criteria_verdicts=tuple(verdicts),
        gap_trajectory=tuple(gaps),
        tools=tuple(dict.fromkeys(tools)),
        targets=tuple(dict.fromkeys(targets)),
    )
