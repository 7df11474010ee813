"""One check, judged. Each row says what the engine saw and what must follow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.models import CheckKind, CheckResult, TestReport, TestResult, TestStatus
from proofstone.check.rules.judge import judge_check
from proofstone.check.rules.result_findings import RerunFindings
from proofstone.common.models import Diagnostic, Finding, Phase, Severity, Verdict
from tests.rows import each_row

PASS, FAIL, UNSURE = Verdict.PASS, Verdict.FAIL, Verdict.UNVERIFIABLE
P, F, SKIP = TestStatus.PASSED, TestStatus.FAILED, TestStatus.SKIPPED
TREE = "a" * 40


def seen(
    exit_code: int | None,
    tests: Mapping[str, TestStatus] | None = None,
    *,
    kind: CheckKind = CheckKind.TESTS,
    complete: bool = True,
    verdict: Verdict | None = None,
    reason: str = "",
    complaints: tuple[Diagnostic, ...] = (),
) -> CheckResult:
    report = None
    if tests is not None:
        results = tuple(TestResult(id=name, status=status) for name, status in tests.items())
        report = TestReport(runner="pytest", results=results, complete=complete)
    return CheckResult(
        name="c",
        kind=kind,
        tier=2,
        tool="t",
        command="c",
        phase=Phase.AFTER,
        tree=TREE,
        verdict=verdict or (PASS if exit_code == 0 else FAIL),
        reason=reason,
        exit_code=exit_code,
        report=report,
        diagnostics=complaints,
    )


@each_row(
    ("what", "before", "after", "verdict"),
    [
        ("all pass on both", seen(0, {"a": P}), seen(0, {"a": P}), PASS),
        ("a repair", seen(1, {"a": F}), seen(0, {"a": P}), PASS),
        ("a regression", seen(0, {"a": P}), seen(1, {"a": F}), FAIL),
        ("a new test that fails", seen(0, {"a": P}), seen(1, {"a": P, "b": F}), FAIL),
        ("exit code 0 although a failure stands", seen(1, {"a": F, "b": P}), seen(0, {"a": F, "b": P}), FAIL),
        ("the base's runner says nothing either", seen(0, {"a": F, "b": P}), seen(0, {"a": F, "b": P}), PASS),
        ("a failure that stood in the base", seen(1, {"a": F, "b": P}), seen(1, {"a": F, "b": P}), PASS),
        ("one that stood, and a regression", seen(1, {"a": F, "b": P}), seen(1, {"a": F, "b": F}), FAIL),
        ("a test that is gone", seen(0, {"a": P, "b": P}), seen(0, {"a": P}), FAIL),
        ("a test that is skipped now", seen(0, {"a": P, "b": P}), seen(0, {"a": P, "b": SKIP}), FAIL),
        ("no test executed", seen(0, {"a": SKIP}), seen(0, {"a": SKIP}), UNSURE),
        ("no test at all", seen(5, {}), seen(5, {}), UNSURE),
        ("the runner died", seen(0, {"a": P}), seen(139, {"a": P}, complete=False), FAIL),
        ("it died on the base too", seen(139, {"a": P}, complete=False), seen(139, {"a": P}, complete=False), UNSURE),
        ("a report that ends early with exit code 0", None, seen(0, {"a": P}, complete=False), UNSURE),
        ("exit code without a failing test", seen(0, {"a": P}), seen(3, {"a": P}), FAIL),
        ("the same on the base", seen(3, {"a": P}), seen(3, {"a": P}), PASS),
        ("no baseline, all pass", None, seen(0, {"a": P}), PASS),
        ("no baseline, one fails", None, seen(1, {"a": F}), FAIL),
        ("never finished", seen(0, {"a": P}), seen(None, verdict=UNSURE, reason="not finished"), UNSURE),
        ("the wrong tree", seen(0, {"a": P}), seen(0, verdict=UNSURE, reason="imports elsewhere"), UNSURE),
        ("no test passes on either tree", seen(1, {"a": F, "b": F}), seen(1, {"a": F, "b": F}), UNSURE),
        ("by exit code: passes", seen(1), seen(0), PASS),
        ("by exit code: breaks", seen(0), seen(1), FAIL),
        ("by exit code: fails on both, nobody can tell", seen(1), seen(1), UNSURE),
        ("a later part of the command fails now", seen(1, {"a": F, "b": P}), seen(7, {"a": F, "b": P}), FAIL),
        (
            "a person's command: failures that stood, same exit code",
            seen(1, {"a": F, "b": P}, kind=CheckKind.VERIFY),
            seen(1, {"a": F, "b": P}, kind=CheckKind.VERIFY),
            PASS,
        ),
        (
            "a person's command that exits 1 although no test fails",
            seen(1, {"a": P}, kind=CheckKind.VERIFY),
            seen(1, {"a": P}, kind=CheckKind.VERIFY),
            FAIL,
        ),
        ("mocha counts what fails", seen(2, {"a": F, "b": F, "c": P}), seen(1, {"a": F, "b": P, "c": P}), PASS),
        (
            "the base could not be measured",
            seen(None, verdict=UNSURE, reason="slow"),
            seen(1, {"a": F, "b": P}),
            UNSURE,
        ),
        ("the base could not be measured, all pass", seen(None, verdict=UNSURE), seen(0, {"a": P}), PASS),
        ("expected to fail now", seen(0, {"a": P, "b": P}), seen(0, {"a": P, "b": TestStatus.XFAILED}), FAIL),
        ("a person's command must exit 0", seen(1, kind=CheckKind.VERIFY), seen(1, kind=CheckKind.VERIFY), FAIL),
        ("a build broken on both", seen(2, kind=CheckKind.BUILD), seen(2, kind=CheckKind.BUILD), UNSURE),
        ("a build that breaks", seen(0, kind=CheckKind.BUILD), seen(2, kind=CheckKind.BUILD), FAIL),
    ],
)
def test_verdicts(what: str, before: CheckResult | None, after: CheckResult, verdict: Verdict) -> None:
    found = judge_check(before, after)
    assert found.verdict is verdict, f"{what}: {found.reason}"
    assert found.reason or verdict is PASS


def test_exit_code_0_with_failing_tests_is_a_finding_if_the_base_ends_otherwise() -> None:
    found = judge_check(seen(1, {"a": F, "b": P}), seen(0, {"a": F, "b": P}))
    assert found.reason == "exit code 0, although 1 test fails; on the base 1"
    assert [(finding.rule, finding.severity) for finding in found.findings] == [("exit-code", Severity.CRITICAL)]


@pytest.mark.parametrize(
    ("what", "excuses", "verdict"),
    [
        ("flaky now", RerunFindings(flaky=("a",)), FAIL),
        ("flaky on the base too", RerunFindings(flaky=("a",), flaky_before=("a",)), PASS),
        ("flaky by declaration", RerunFindings(flaky=("a",), allowed_flaky=("a",)), PASS),
    ],
)
def test_a_flaky_test_passes_only_if_the_change_did_not_make_it_so(
    what: str, excuses: RerunFindings, verdict: Verdict
) -> None:
    found = judge_check(seen(0, {"a": P, "b": P}), seen(1, {"a": F, "b": P}), excuses)
    assert found.verdict is verdict, what
    assert found.comparison.regressions == ()
    assert [finding.rule for finding in found.findings] == ["flaky"]


def test_a_failure_that_the_base_no_longer_shows_is_a_regression() -> None:
    found = judge_check(seen(1, {"a": F}), seen(1, {"a": F}), RerunFindings(mended=("a",)))
    assert found.verdict is FAIL
    assert found.comparison.regressions == ("a",)
    assert found.comparison.standing == ()


def test_a_test_that_the_sandbox_breaks_blocks_only_if_it_concerns_the_change() -> None:
    before, after = seen(1, {"a": F, "b": P}), seen(1, {"a": F, "b": P})
    assert judge_check(before, after, RerunFindings(sandbox_only=("a",), blocking=("a",))).verdict is UNSURE
    elsewhere = judge_check(before, after, RerunFindings(sandbox_only=("a",)))
    assert elsewhere.verdict is PASS
    assert [finding.severity for finding in elsewhere.findings] == [Severity.MINOR]


def test_a_persons_word_lets_a_test_go_and_the_loss_is_still_named() -> None:
    found = judge_check(seen(0, {"a": P, "b": P}), seen(0, {"a": P}), RerunFindings(losses_accepted=True))
    assert found.verdict is PASS
    assert [(finding.rule, finding.severity) for finding in found.findings] == [("test-vanished", Severity.MINOR)]


def complaint(line: int, message: str = "unused") -> Diagnostic:
    return Diagnostic(path="a.py", line=line, code="F401", message=message)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (seen(0, kind=CheckKind.LINT), seen(1, kind=CheckKind.LINT, complaints=(complaint(3),)), FAIL),
        (
            seen(1, kind=CheckKind.LINT, complaints=(complaint(3),)),
            seen(1, kind=CheckKind.LINT, complaints=(complaint(9),)),
            PASS,
        ),
        (None, seen(1, kind=CheckKind.LINT, complaints=(complaint(3),)), FAIL),
        (seen(0, kind=CheckKind.LINT), seen(0, kind=CheckKind.LINT), PASS),
    ],
)
def test_only_new_complaints_are_held_against_a_change(
    before: CheckResult | None, after: CheckResult, verdict: Verdict
) -> None:
    assert judge_check(before, after).verdict is verdict


def test_a_test_that_passes_only_because_it_was_edited_is_not_repaired() -> None:
    passed = judge_check(seen(1, {"a": F}), seen(0, {"a": P}))
    assert passed.comparison.fixed == ("a",)
    finding = Finding(layer="L2", rule="r", severity=Severity.CRITICAL, detail="d", fix="f")
    minor = finding.model_copy(update={"severity": Severity.MINOR})
    edited = passed.add_layer_findings((finding,), ("a",))
    assert (edited.verdict, edited.comparison.fixed) == (FAIL, ())
    assert passed.add_layer_findings((minor,), ("a",)).verdict is PASS
    assert passed.add_layer_findings((finding,)).verdict is FAIL
    assert passed.add_layer_findings(()).verdict is PASS


def test_a_report_with_results_of_somebody_else_is_refused() -> None:
    forged = seen(0, {"a": P})
    assert forged.report is not None
    forged = forged.model_copy(update={"report": forged.report.model_copy(update={"forged": "two reports"})})
    judged = judge_check(seen(0, {"a": P}), forged)
    assert (judged.verdict, [one.rule for one in judged.findings]) == (FAIL, ["report-forged"])


def test_a_run_that_was_ended_says_at_what() -> None:
    ended = seen(0).model_copy(update={"verdict": Verdict.UNVERIFIABLE, "ended_by": "the deadline"})
    assert [one.rule for one in judge_check(None, ended).findings] == ["limit"]


def test_a_held_out_check_says_nothing_of_what_it_is() -> None:
    failed = seen(1, kind=CheckKind.HELD_OUT).model_copy(update={"command": "secret", "output": "secret"})
    judged = judge_check(None, failed)
    assert judged.verdict is FAIL
    assert [one.rule for one in judged.findings] == ["heldout"]
    assert "secret" not in judged.model_dump_json()


results = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(list(TestStatus)), max_size=4)
codes = st.sampled_from([0, 1, 2, 5, 139])


@given(results, codes, results, codes, st.booleans())
def test_nothing_that_got_worse_ever_passes(
    before: dict[str, TestStatus], code: int, after: dict[str, TestStatus], now: int, complete: bool
) -> None:
    found = judge_check(seen(code, before), seen(now, after, complete=complete))
    if found.verdict is PASS:
        assert complete
        assert not any(s is TestStatus.XFAILED and before.get(t) is TestStatus.PASSED for t, s in after.items())
        assert any(status.is_executed for status in after.values())
        assert all(before.get(test, P).is_failure for test, status in after.items() if status.is_failure)
        assert {t for t, s in before.items() if s.is_executed} <= {t for t, s in after.items() if s.is_executed}
