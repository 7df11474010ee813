"""The confidence of a whole run, and what would raise it."""

from __future__ import annotations

from proofstone.agents.roles.models.gate import TaskState
from proofstone.common.models import Confidence, Severity, as_reason
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import FinalChecks, GateSummary, KnownIssue
from proofstone.pipeline.rules.reviews import ConfidenceGrounds, rate_pipeline_run
from tests.pipeline.talk import checked, report
from tests.rows import each_row

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW
CLEAN = checked().checks


def final(confidence: Confidence, *raises: str) -> FinalChecks:
    return checked(confidence=confidence, raises=raises).checks


def gate(state: TaskState = TaskState.APPROVED, confidence: Confidence = HIGH, *concerns: str) -> GateSummary:
    task = report(1, state=state, confidence=confidence).model_copy(update={"reasons": tuple(map(as_reason, concerns))})
    return GateSummary(iteration=1, run_id="g", outcome=RunOutcome.PASSED, reason="", tasks=(task,), tip="t")


def issue(severity: Severity, source: str = "review code/security, round 2") -> KnownIssue:
    return KnownIssue(severity=severity, title="It forgets", source=source)


@each_row(
    ("grounds", "confidence", "reasons"),
    [
        (ConfidenceGrounds(CLEAN), HIGH, ()),
        (ConfidenceGrounds(CLEAN, [gate()]), HIGH, ()),
        (ConfidenceGrounds(CLEAN, [gate(TaskState.FAILED)]), HIGH, ()),
        (ConfidenceGrounds(CLEAN, open=[issue(Severity.MINOR)]), HIGH, ()),
        (ConfidenceGrounds(final(MEDIUM, "cover shop/cart.py")), MEDIUM, ("cover shop/cart.py",)),
        (ConfidenceGrounds(CLEAN, unsure=("who knows?",)), MEDIUM, ("who knows?",)),
        (ConfidenceGrounds(final(MEDIUM)), MEDIUM, ("a check of the merged tree leaves something unproven",)),
        (
            ConfidenceGrounds(CLEAN, [gate(TaskState.APPROVED, MEDIUM)]),
            MEDIUM,
            ("task 1: it passed with medium confidence",),
        ),
        (
            ConfidenceGrounds(CLEAN, [gate(TaskState.APPROVED, MEDIUM, "only prose shows it")]),
            MEDIUM,
            ("task 1: only prose shows it",),
        ),
        (
            ConfidenceGrounds(CLEAN, open=[issue(Severity.MAJOR)]),
            MEDIUM,
            ("left open by a review: It forgets (major, review code/security, round 2)",),
        ),
        (
            ConfidenceGrounds(CLEAN, open=[issue(Severity.CRITICAL, "review design/security, round 2")]),
            MEDIUM,
            ("left open by a review: It forgets (critical, review design/security, round 2)",),
        ),
        (
            ConfidenceGrounds(CLEAN, open=[issue(Severity.CRITICAL)]),
            LOW,
            ("critical and open: It forgets (review code/security, round 2)",),
        ),
        (ConfidenceGrounds(CLEAN, exhausted=["three iterations failed"]), LOW, ("three iterations failed",)),
        (ConfidenceGrounds(None), LOW, ("the checks were not run on the merged tree",)),
        (
            ConfidenceGrounds(checked(passed=False).checks),
            LOW,
            ("the checks did not pass on the merged tree: tests: 2 fail",),
        ),
        (ConfidenceGrounds(final(LOW, "run the tests")), LOW, ("run the tests",)),
        (ConfidenceGrounds(final(LOW)), LOW, ("the checks of the merged tree prove little",)),
        (ConfidenceGrounds(CLEAN, [gate(TaskState.FORCED)]), LOW, ("task 1: a person overrode the gate for it",)),
        (
            ConfidenceGrounds(CLEAN, [gate(TaskState.SKIPPED)]),
            MEDIUM,
            ("task 1: a person skipped it, so its work is not in the commit",),
        ),
        (ConfidenceGrounds(CLEAN, [gate(TaskState.APPROVED, LOW)]), LOW, ("task 1: it passed with low confidence",)),
        (
            ConfidenceGrounds(final(MEDIUM, "cover it"), [gate(TaskState.FORCED)]),
            LOW,
            ("task 1: a person overrode the gate for it",),
        ),
    ],
)
def test_the_confidence_and_why_it_is_no_higher(
    grounds: ConfidenceGrounds, confidence: Confidence, reasons: tuple[str, ...]
) -> None:
    rating = rate_pipeline_run(grounds)
    assert (rating.confidence, tuple(reason.reason for reason in rating.reasons)) == (confidence, reasons)
