"""The confidence of a whole run, and what would raise it."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.gate import TaskState
from proofstone.common.models import Confidence, Severity
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import FinalChecks, GateSummary, KnownIssue
from proofstone.pipeline.rules.reviews import Grounds, rate
from tests.pipeline.talk import checked, report

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW
CLEAN = checked().checks


def final(confidence: Confidence, *raises: str) -> FinalChecks:
    return checked(confidence=confidence, raises=raises).checks


def gate(state: TaskState = TaskState.APPROVED, confidence: Confidence = HIGH, *concerns: str) -> GateSummary:
    task = report(1, state=state, confidence=confidence).model_copy(update={"concerns": concerns})
    return GateSummary(iteration=1, run_id="g", outcome=RunOutcome.PASSED, reason="", tasks=(task,), tip="t")


def issue(severity: Severity, source: str = "review code/security, round 2") -> KnownIssue:
    return KnownIssue(severity=severity, title="It forgets", source=source)


@pytest.mark.parametrize(
    ("grounds", "confidence", "reasons"),
    [
        (Grounds(CLEAN), HIGH, ()),
        (Grounds(CLEAN, [gate()]), HIGH, ()),
        (Grounds(CLEAN, [gate(TaskState.FAILED)]), HIGH, ()),
        (Grounds(CLEAN, open=[issue(Severity.MINOR)]), HIGH, ()),
        (Grounds(final(MEDIUM, "cover shop/cart.py")), MEDIUM, ("cover shop/cart.py",)),
        (Grounds(CLEAN, unsure=("who knows?",)), MEDIUM, ("who knows?",)),
        (Grounds(final(MEDIUM)), MEDIUM, ("a check of the merged tree leaves something unproven",)),
        (Grounds(CLEAN, [gate(TaskState.APPROVED, MEDIUM)]), MEDIUM, ("task 1: it passed with medium confidence",)),
        (
            Grounds(CLEAN, [gate(TaskState.APPROVED, MEDIUM, "only prose shows it")]),
            MEDIUM,
            ("task 1: only prose shows it",),
        ),
        (
            Grounds(CLEAN, open=[issue(Severity.MAJOR)]),
            MEDIUM,
            ("left open by a review: It forgets (major, review code/security, round 2)",),
        ),
        (
            Grounds(CLEAN, open=[issue(Severity.CRITICAL, "review design/security, round 2")]),
            MEDIUM,
            ("left open by a review: It forgets (critical, review design/security, round 2)",),
        ),
        (
            Grounds(CLEAN, open=[issue(Severity.CRITICAL)]),
            LOW,
            ("critical and open: It forgets (review code/security, round 2)",),
        ),
        (Grounds(CLEAN, exhausted=["three iterations failed"]), LOW, ("three iterations failed",)),
        (Grounds(None), LOW, ("the checks were not run on the merged tree",)),
        (
            Grounds(checked(passed=False).checks),
            LOW,
            ("the checks did not pass on the merged tree: tests: 2 fail",),
        ),
        (Grounds(final(LOW, "run the tests")), LOW, ("run the tests",)),
        (Grounds(final(LOW)), LOW, ("the checks of the merged tree prove little",)),
        (Grounds(CLEAN, [gate(TaskState.FORCED)]), LOW, ("task 1: a person overrode the gate for it",)),
        (Grounds(CLEAN, [gate(TaskState.SKIPPED)]), LOW, ("task 1: a person overrode the gate for it",)),
        (Grounds(CLEAN, [gate(TaskState.APPROVED, LOW)]), LOW, ("task 1: it passed with low confidence",)),
        (
            Grounds(final(MEDIUM, "cover it"), [gate(TaskState.FORCED)]),
            LOW,
            ("task 1: a person overrode the gate for it",),
        ),
    ],
)
def test_the_confidence_and_why_it_is_no_higher(
    grounds: Grounds, confidence: Confidence, reasons: tuple[str, ...]
) -> None:
    assert rate(grounds) == (confidence, reasons)
