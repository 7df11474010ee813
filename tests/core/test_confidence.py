"""How sure an outcome is."""

from __future__ import annotations

import pytest

from proofstone.check.rules.outcome import downgrade_accepted, rate_check_confidence
from proofstone.common.models import Assurance, Confidence, Finding, Outcome, Severity

FLAKY = Finding(layer="L3", rule="flaky", severity=Severity.MINOR, detail="t: failed, then passed", fix="mend it")


@pytest.mark.parametrize(
    ("outcome", "assurance", "caps", "findings", "sensitive", "confidence"),
    [
        (Outcome.PASSED, Assurance.BUBBLEWRAP, (), (), True, Confidence.HIGH),
        (Outcome.PASSED, Assurance.BUBBLEWRAP, (), (), False, Confidence.MEDIUM),
        (Outcome.PASSED, Assurance.LANDLOCK, (), (), True, Confidence.MEDIUM),
        (Outcome.PASSED, Assurance.BUBBLEWRAP, ("not covered",), (), True, Confidence.MEDIUM),
        (Outcome.PASSED, Assurance.BUBBLEWRAP, (), (FLAKY,), True, Confidence.MEDIUM),
        (Outcome.FAILED, Assurance.BUBBLEWRAP, (), (), True, Confidence.LOW),
        (Outcome.UNVERIFIABLE, Assurance.BUBBLEWRAP, (), (), True, Confidence.LOW),
    ],
)
def test_the_confidence_and_why_it_is_not_higher(
    outcome: Outcome,
    assurance: Assurance,
    caps: tuple[str, ...],
    findings: tuple[Finding, ...],
    sensitive: bool,
    confidence: Confidence,
) -> None:
    rated, why = rate_check_confidence(outcome, "why", assurance, caps, findings, sensitive=sensitive)
    assert rated is confidence
    assert bool(why) is (confidence is not Confidence.HIGH)


def test_a_person_may_accept_a_suppression_but_not_a_lie() -> None:
    def finding(rule: str) -> Finding:
        return Finding(layer="L6", rule=rule, severity=Severity.MAJOR, detail="d", fix="f")

    both = [finding("hard-exit"), finding("canary-passed")]
    assert [one.severity for one in downgrade_accepted(both, {"hard-exit", "canary-passed"})] == [
        Severity.MINOR,
        Severity.MAJOR,
    ]
