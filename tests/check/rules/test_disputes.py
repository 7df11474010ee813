"""A dispute changes no verdict: what it covers waits for a person, and nothing else does."""

from __future__ import annotations

from proofstone.check.models import CheckKind, CheckLine
from proofstone.check.rules.disputes import (
    DisputeDecision,
    RecordedDispute,
    accept_by_decisions,
    apply_disputes,
    describe_dispute,
)
from proofstone.check.rules.outcome import TEST_CHANGE_RULES
from proofstone.common.models import AcceptanceMethod, Finding, Outcome, Severity, Verdict, VerdictDispute
from tests.rows import each_row

TEST = "tests/test_a.py::test_a"


def disputed(subject: str) -> VerdictDispute:
    return VerdictDispute(subject=subject, claim="it contradicts the README", raised_by="Codex")


def finding(rule: str, detail: str, check: str = "tests:pytest", severity: Severity = Severity.CRITICAL) -> Finding:
    return Finding(layer="L2", rule=rule, severity=severity, detail=detail, fix="f", check=check)


def line(name: str, verdict: Verdict, *, decides: bool = True) -> CheckLine:
    return CheckLine(
        name=name,
        kind=CheckKind.TESTS,
        tier=2,
        verdict=verdict,
        baseline=None,
        duration_ms=1,
        reused=False,
        required=True,
        decides=decides,
        reason="why",
        command="",
        assurance=None,
        tests=None,
        seq=None,
        artifact=None,
    )


FAILING, LINT = line("tests:pytest", Verdict.FAIL), line("lint:ruff", Verdict.FAIL)
REGRESSION = finding("regression", f"{TEST}: passes on the base, fails now")
OTHER = finding("regression", "tests/test_b.py::test_b: passes on the base, fails now")


@each_row(
    ("outcome", "checks", "findings", "subjects", "expected"),
    [
        (Outcome.PASSED, [], [], [], Outcome.PASSED),
        (Outcome.PASSED, [], [], [TEST], Outcome.NEEDS_DECISION),
        (Outcome.NOTHING_TO_CHECK, [], [], ["the requirement"], Outcome.NEEDS_DECISION),
        (Outcome.UNVERIFIABLE, [], [], [TEST], Outcome.UNVERIFIABLE),
        (Outcome.FAILED, [FAILING], [REGRESSION], [], Outcome.FAILED),
        (Outcome.FAILED, [FAILING], [REGRESSION], [TEST], Outcome.NEEDS_DECISION),
        (Outcome.FAILED, [FAILING], [REGRESSION], ["regression"], Outcome.NEEDS_DECISION),
        (Outcome.FAILED, [FAILING], [REGRESSION], ["tests/test_a.py"], Outcome.NEEDS_DECISION),
        (Outcome.FAILED, [FAILING], [REGRESSION], ["another"], Outcome.FAILED),
        (Outcome.FAILED, [FAILING], [REGRESSION, OTHER], [TEST], Outcome.FAILED),
        (Outcome.FAILED, [FAILING, LINT], [REGRESSION], [TEST], Outcome.FAILED),
        (Outcome.FAILED, [FAILING, LINT], [REGRESSION], [TEST, "lint:ruff"], Outcome.NEEDS_DECISION),
        (
            Outcome.FAILED,
            [FAILING, line("lint:ruff", Verdict.FAIL, decides=False)],
            [REGRESSION, finding("ruff F401", "unused", "lint:ruff")],
            [TEST],
            Outcome.NEEDS_DECISION,
        ),
    ],
)
def test_what_is_disputed_waits_for_a_person(
    outcome: Outcome, checks: list[CheckLine], findings: list[Finding], subjects: list[str], expected: Outcome
) -> None:
    decided, reason = apply_disputes(outcome, "why", checks, findings, [disputed(subject) for subject in subjects])
    assert decided is expected
    assert ("is disputed by Codex: it contradicts the README" in reason) is (expected is Outcome.NEEDS_DECISION)


def recorded(decision: DisputeDecision | None, subject: str = TEST) -> RecordedDispute:
    return RecordedDispute(
        id="d1",
        tree="t",
        repository="/r",
        subject=subject,
        claim="c",
        decision=decision,
        reason="it was written before the tax",
        decided_by="ada",
        method=AcceptanceMethod.INTERACTIVE if decision else None,
    )


def test_only_an_accepted_dispute_accepts_and_only_findings_about_its_subject() -> None:
    for decision in (None, DisputeDecision.REJECT, DisputeDecision.AMEND):
        assert accept_by_decisions([recorded(decision)]) == ()
    given = accept_by_decisions([recorded(DisputeDecision.ACCEPT)])
    assert {acceptance.rule for acceptance in given} == TEST_CHANGE_RULES
    assert {(acceptance.subject, acceptance.accepted_by, acceptance.method) for acceptance in given} == {
        (TEST, "ada", AcceptanceMethod.INTERACTIVE)
    }
    (one,) = accept_by_decisions([recorded(DisputeDecision.ACCEPT, "hard-exit")])
    assert (one.rule, one.subject) == ("hard-exit", "hard-exit")


def test_a_dispute_is_described_on_one_line() -> None:
    assert (
        describe_dispute(VerdictDispute(subject="a\nb", claim="c\nd", raised_by="e\nf"))
        == "a b is disputed by e f: c d"
    )
