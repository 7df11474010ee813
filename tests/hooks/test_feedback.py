"""What an agent is told is short, and says where."""

from __future__ import annotations

from proofstone.check.models import CheckKind, CheckLine, CheckReport
from proofstone.check.rules.run_end import write_feedback
from proofstone.common.models import Assurance, Confidence, Finding, Outcome, Severity, Verdict


def line(name: str, verdict: Verdict, *, required: bool = True, artifact: str | None = None) -> CheckLine:
    return CheckLine(
        name=name,
        kind=CheckKind.TESTS,
        tier=2,
        verdict=verdict,
        baseline=None,
        duration_ms=1,
        reused=False,
        required=required,
        decides=True,
        reason="why",
        command="run",
        assurance=Assurance.BUBBLEWRAP,
        tests=1,
        seq=1,
        artifact=artifact,
    )


def finding(rule: str, severity: Severity, path: str | None = "a.py", at: int | None = 7) -> Finding:
    return Finding(layer="x", rule=rule, severity=severity, detail="what", fix="do", path=path, line=at)


def report(*checks: CheckLine, findings: tuple[Finding, ...] = (), regressions: tuple[str, ...] = ()) -> CheckReport:
    return CheckReport(
        run_id="r",
        tree="t",
        frozen="t",
        base="b",
        base_commit="c",
        outcome=Outcome.FAILED,
        reason="the one reason",
        confidence=Confidence.LOW,
        assurance=Assurance.BUBBLEWRAP,
        checks=checks,
        findings=findings,
        regressions=regressions,
        fixed=(),
        standing=(),
        edited=(),
        sensitive=(),
        flaky=(),
        unverifiable_tests=(),
        changed=(),
        notes=(),
        ledger="",
    )


def test_it_names_checks_tests_and_findings_with_file_and_line_gravest_first() -> None:
    said = write_feedback(
        report(
            line("tests:pytest", Verdict.FAIL, artifact="0123456789abcdef"),
            line("lint:ruff", Verdict.PASS),
            line("types:mypy", Verdict.UNVERIFIABLE, required=False),
            findings=(finding("small", Severity.MINOR, at=None), finding("grave", Severity.CRITICAL)),
            regressions=("test_a.py::test_f",),
        )
    )
    assert said.splitlines() == [
        "`proofstone check` does not pass: failed.",
        "Findings:",
        "- a.py:7: grave (critical): what; do",
        "- a.py: small (minor): what; do",
        "Checks:",
        "- tests:pytest: fail: why",
        "Tests that fail now and did not fail on the base:",
        "- test_a.py::test_f",
        "What a rule means: `proofstone explain grave`, `proofstone explain small`",
        "Output of tests:pytest: proofstone ledger artifact 0123456789ab",
        "Fix this in the code, not in the checks. Then run `proofstone check` to verify it.",
        "If a test or a requirement is wrong or contradicts another, do not change it to make the check pass. "
        'Dispute it: `proofstone dispute SUBJECT --because "why"`. A person decides, and you may stop.',
    ]


def test_where_nothing_is_named_the_reason_is() -> None:
    assert write_feedback(report()).startswith("`proofstone check` does not pass: failed. the one reason\n")


def test_much_is_cut_and_counted() -> None:
    many = tuple(f"test_{number}" for number in range(500))
    long = Finding(layer="x", rule="r", severity=Severity.MAJOR, detail="word " * 5000, fix="do")
    said = write_feedback(report(findings=(long,) * 50, regressions=many))
    assert len(said) < 6000
    assert "- and 490 more" in said
    assert "- and 40 more" in said
