"""The outcome of a cascade, row by row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.models import CheckKind, CheckLine
from proofstone.check.rules.outcome import decide_outcome, find_weakest_level
from proofstone.common.models import Assurance, Finding, Outcome, Severity, Verdict
from tests.rows import each_row


def line(kind: CheckKind, verdict: Verdict, *, required: bool = True, decides: bool = True) -> CheckLine:
    return CheckLine(
        name=kind.value, kind=kind, tier=2, verdict=verdict, baseline=None, duration_ms=1, reused=False,
        required=required, decides=decides, reason="because", command="", assurance=None, tests=None, seq=1,
        artifact=None,
    )  # fmt: skip


def finding(severity: Severity) -> Finding:
    return Finding(layer="L1", rule="r", severity=severity, detail="d", fix="f")


TESTS = line(CheckKind.TESTS, Verdict.PASS)


@each_row(
    ("what", "checks", "findings", "documentation", "outcome"),
    [
        ("tests pass", [TESTS], [], False, Outcome.PASSED),
        ("a verify command passes", [line(CheckKind.VERIFY, Verdict.PASS)], [], False, Outcome.PASSED),
        ("a check fails", [TESTS, line(CheckKind.LINT, Verdict.FAIL)], [], False, Outcome.FAILED),
        (
            "an optional check fails",
            [TESTS, line(CheckKind.LINT, Verdict.FAIL, required=False)],
            [],
            False,
            Outcome.FAILED,
        ),
        (
            "a check that is optional by the settings fails",
            [TESTS, line(CheckKind.LINT, Verdict.FAIL, required=False, decides=False)],
            [],
            False,
            Outcome.PASSED,
        ),
        ("a major finding", [TESTS], [finding(Severity.MAJOR)], False, Outcome.FAILED),
        ("a minor finding", [TESTS], [finding(Severity.MINOR)], False, Outcome.PASSED),
        (
            "a required check is unsure",
            [TESTS, line(CheckKind.BUILD, Verdict.UNVERIFIABLE)],
            [],
            False,
            Outcome.UNVERIFIABLE,
        ),
        (
            "an optional check is unsure",
            [TESTS, line(CheckKind.LINT, Verdict.UNVERIFIABLE, required=False)],
            [],
            False,
            Outcome.PASSED,
        ),
        ("nothing ran", [], [], False, Outcome.UNVERIFIABLE),
        ("only syntax", [line(CheckKind.SYNTAX, Verdict.PASS)], [], False, Outcome.UNVERIFIABLE),
        ("loading is not exercising", [line(CheckKind.IMPORT, Verdict.PASS)], [], False, Outcome.UNVERIFIABLE),
        ("documentation only", [line(CheckKind.SYNTAX, Verdict.PASS)], [], True, Outcome.PASSED),
    ],
)
def test_outcomes(
    what: str, checks: list[CheckLine], findings: list[Finding], documentation: bool, outcome: Outcome
) -> None:
    decided, reason = decide_outcome(checks, findings, documentation_only=documentation)
    assert decided is outcome, what
    assert bool(reason) is (outcome is not Outcome.PASSED)


kinds = st.sampled_from(list(CheckKind))
lines = st.lists(st.builds(line, kinds, st.sampled_from(list(Verdict)), required=st.booleans()), max_size=6)


@given(lines, st.lists(st.sampled_from(list(Severity)), max_size=3), st.booleans())
def test_a_pass_means_that_nothing_failed_and_nothing_required_is_unsure(
    checks: list[CheckLine], severities: list[Severity], documentation: bool
) -> None:
    outcome, _ = decide_outcome(checks, [finding(s) for s in severities], documentation_only=documentation)
    if outcome is Outcome.PASSED:
        assert all(check.verdict is not Verdict.FAIL for check in checks)
        assert all(check.verdict is Verdict.PASS for check in checks if check.required)
        assert all(severity is Severity.MINOR for severity in severities)


def test_the_weakest_level_caps_the_whole() -> None:
    assert find_weakest_level([Assurance.BUBBLEWRAP, None, Assurance.PLAIN]) is Assurance.PLAIN
    assert find_weakest_level([Assurance.BUBBLEWRAP, Assurance.LANDLOCK]) is Assurance.LANDLOCK
    assert find_weakest_level([None]) is Assurance.PLAIN
