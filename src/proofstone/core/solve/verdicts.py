"""From what the engine saw and a model judged to verdicts and an outcome. The verdict of the whole is the AND of its
parts, whatever anybody says of the whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from proofstone.contracts.solve.answers import JudgedCriterion
from proofstone.contracts.solve.messages import (
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

_IN_THE_WAY: Final = (
    # the network
    r"connection (?:refused|reset|aborted|timed out)|could not resolve|name or service not known|no such host",
    r"no route to host|network is unreachable|temporary failure in name resolution|\be(?:connrefused|timedout)\b",
    # somebody else's service
    r"too many requests|rate limit (?:exceeded|reached)|quota exceeded|\b401 unauthorized|\b403 forbidden",
    r"\bhttp(?:/[\d.]+)?(?: status| error)?:? (?:401|403|429|50[234])\b|bad gateway|service unavailable",
    r"certificate (?:verify failed|has expired|is not trusted)|certificate_verify_failed|unknown authority|\bssl error",
    # time
    r"timed out after \d|\b(?:it|command|process|request|operation|read|handshake) timed out|deadline exceeded",
    # the machine
    r"permission denied|operation not permitted|read-only file system|no space left|disk quota|out of memory",
    r"cannot allocate memory|resource busy|address already in use|too many open files",
    r"^\W*killed\W*$|process (?:was )?killed|killed by signal",
    # something that is not there
    r"command not found|\bsh: (?:\d+: )?\S+: not found|is not installed|cannot find module|no module named",
)
_COMPARES: Final = r"\bassert|\bexpect(?:ed|s)?\b|did not raise| [!=]= "
ENVIRONMENTAL: Final = re.compile(rf"^(?!.*(?:{_COMPARES})).*(?:{'|'.join(_IN_THE_WAY)})", re.IGNORECASE | re.MULTILINE)
"""What a line of the evidence says when something was in the way: it goes before what anybody says of the class. A line
that compares what there is with what there should be is a test's own, and may well be about timeouts and refusals."""


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
    has not passed. Of several words about one the first counts; if they contradict each other, the failing one."""
    said: dict[int, JudgedCriterion] = {}
    for word in sorted(verdicts, key=lambda word: word.verdict == "pass"):
        said.setdefault(word.number, word)
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
    obstacles: Sequence[str] = (),
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
        obstacles=tuple(dict.fromkeys(obstacles)),
    )
