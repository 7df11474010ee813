"""Judge one check from its results on the base and on the change.

Verdicts follow from what the engine observed. If that cannot distinguish a good change from a bad one, the verdict is
`unverifiable`, with the reason. It never counts as a pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from proofstone.check.models import CheckKind, CheckResult, DeathCause, TestReport
from proofstone.check.rules.compare import ResultComparison, compare_reports, find_new_diagnostics
from proofstone.check.rules.failure_text import find_run_error
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.result_findings import (
    ComparedTests,
    RerunFindings,
    build_test_findings,
    describe_failures,
    separate_blocked,
)
from proofstone.common.models import Finding, FrozenModel, Severity, Verdict
from proofstone.common.text import pluralize


class CheckJudgement(FrozenModel):
    """The verdict on one check, with its findings."""

    verdict: Verdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    comparison: ResultComparison = ResultComparison()

    def add_layer_findings(
        self, findings: Sequence[Finding], edited: Sequence[str] = (), not_measured: Sequence[str] = ()
    ) -> CheckJudgement:
        """Return the judgement after the layers examined the check. Their serious findings make it fail, edited tests
        are no repair, and whatever a layer could not measure (`not_measured`) makes it unverifiable."""
        fixed = tuple(test for test in self.comparison.fixed if test not in edited)
        update: dict[str, object] = {
            "findings": (*self.findings, *findings),
            "comparison": self.comparison.model_copy(update={"fixed": fixed}),
        }
        serious = [finding for finding in findings if finding.severity is not Severity.MINOR]
        if serious and self.verdict is not Verdict.FAIL:
            edited_reason = _count_tests(
                edited, "passes only because it was edited", "pass only because they were edited"
            )
            only_edited = edited and all(finding.rule == "edited-expectation" for finding in serious)
            update |= {"verdict": Verdict.FAIL, "reason": edited_reason if only_edited else serious[0].headline}
        elif not_measured and self.verdict is Verdict.PASS:
            update |= {"verdict": Verdict.UNVERIFIABLE, "reason": not_measured[0]}
        return self.model_copy(update=update)


def judge_check(before: CheckResult | None, after: CheckResult, excuses: RerunFindings | None = None) -> CheckJudgement:
    """Return the verdict on `after`, given the same check on the base."""
    if after.verdict is Verdict.UNVERIFIABLE:
        # The check never ran, died, or proves nothing.
        if _has_false_success(after) and _is_finished(before):
            reason = "the test run ended before it was finished; on the base it finishes"
            return CheckJudgement(verdict=Verdict.FAIL, reason=reason, findings=(_build_unfinished_finding(after),))
        return CheckJudgement(verdict=Verdict.UNVERIFIABLE, reason=after.reason, findings=_build_limit_findings(after))
    excuses = excuses or RerunFindings()
    judgement = _judge_measured(before, after, excuses)
    if judgement.verdict is Verdict.PASS and excuses.not_measured:
        update = {"verdict": Verdict.UNVERIFIABLE, "reason": excuses.not_measured[0]}
        return judgement.model_copy(update=update)
    return judgement


def _judge_measured(before: CheckResult | None, after: CheckResult, excuses: RerunFindings) -> CheckJudgement:
    """Return the verdict on a run that ended by itself."""
    if after.kind.executes_change and after.report is not None:
        return _judge_tests(before, after, after.report, excuses)
    if after.kind.reports_diagnostics:
        return _judge_diagnostics(before, after)
    if after.kind is CheckKind.HELD_OUT:
        return _judge_held_out(after)
    return _judge_exit_code(before, after, excuses)


def _has_false_success(after: CheckResult) -> bool:
    """Return whether an unfinished run ended with exit code 0. Ending a runner like that hides its results."""
    return after.death is not None and after.death.cause is DeathCause.UNFINISHED and after.exit_code == 0


def _is_finished(before: CheckResult | None) -> bool:
    return before is not None and before.report is not None and before.report.complete


def _build_limit_findings(after: CheckResult) -> tuple[Finding, ...]:
    """Return a finding about a limit. The verdict states it too, but programs look for the rule."""
    if not after.ended_by:
        return ()
    setting = after.death.setting if after.death else ""
    fix = f"find out what needs so much time or memory; if it is intended, {_advise_raising(setting)}"
    return (
        _build_run_finding(
            after, EvidenceLayer.SANDBOX, "limit", f"{after.name} was ended at {after.ended_by}", fix, Severity.MINOR
        ),
    )


def _advise_raising(setting: str) -> str:
    """Return how to raise a limit. The settings of the base decide, so that must be committed first."""
    return (
        f"raise {setting or 'the limit'} in proofstone.toml and commit that before the change, because the settings of "
        "the base decide; --use-worktree-config tries it out"
    )


def _judge_held_out(after: CheckResult) -> CheckJudgement:
    """Judge a held-out check without revealing the command or its output, because the author of the change may read
    this."""
    if after.verdict is Verdict.PASS:
        return CheckJudgement(verdict=Verdict.PASS)
    detail = f"{after.name} fails: the change meets only the checks that its author knew"
    fix = "make the code correct for every input, not only for those in the known tests"
    finding = _build_run_finding(after, EvidenceLayer.HELD_OUT, "heldout", detail, fix, Severity.CRITICAL)
    finding = finding.model_copy(update={"artifact": None})
    return CheckJudgement(verdict=Verdict.FAIL, reason="a held-out check fails", findings=(finding,))


def _build_run_finding(
    after: CheckResult, layer: EvidenceLayer, rule: str, detail: str, fix: str, severity: Severity = Severity.CRITICAL
) -> Finding:
    """Return a finding about a run as a whole, with its output as the evidence."""
    return Finding(
        layer=layer,
        rule=rule,
        severity=severity,
        detail=detail,
        fix=fix,
        check=after.name,
        artifact=after.artifact,
    )


def _judge_exit_code(before: CheckResult | None, after: CheckResult, excuses: RerunFindings) -> CheckJudgement:
    if after.verdict is not Verdict.FAIL:
        return CheckJudgement(verdict=after.verdict, reason=after.reason)
    if after.name in excuses.flaky:
        detail = f"{after.name} failed, then passed, on the same tree"
        finding = _build_run_finding(after, EvidenceLayer.TEST_IDENTITY, "flaky", detail, "make it deterministic")
        if after.name in excuses.allowed_flaky:
            minor = finding.model_copy(update={"severity": Severity.MINOR})
            return CheckJudgement(verdict=Verdict.PASS, reason="flaky, which is allowed", findings=(minor,))
        return CheckJudgement(verdict=Verdict.FAIL, reason=f"{detail}: it is flaky", findings=(finding,))
    if before is not None and before.death is not None and after.kind is not CheckKind.VERIFY:
        return CheckJudgement(verdict=Verdict.UNVERIFIABLE, reason=_describe_unmeasured(before))
    fails_on_base = before is not None and before.verdict is Verdict.FAIL
    if fails_on_base and after.kind is not CheckKind.VERIFY:
        return CheckJudgement(
            verdict=Verdict.UNVERIFIABLE,
            reason=f"{_describe_failed_command(after)}; it fails on the base too, and without results by test id the "
            "effect of the change is unknown",
        )
    return CheckJudgement(verdict=Verdict.FAIL, reason=_describe_failed_command(after))


def _describe_failed_command(after: CheckResult) -> str:
    """Return the exit code, and the error that the output names."""
    reason = after.reason or f"exit code {after.exit_code}"
    error = find_run_error(after.output)
    return f"{reason}: {error[0]}" if error else reason


def _judge_diagnostics(before: CheckResult | None, after: CheckResult) -> CheckJudgement:
    """Judge linters and type checkers. Only complaints that the base does not have count against the change."""
    if after.verdict is not Verdict.FAIL:
        return CheckJudgement(verdict=after.verdict, reason=after.reason)
    if not after.diagnostics:
        return _judge_exit_code(before, after, RerunFindings())
    new = find_new_diagnostics(before.diagnostics if before else (), after.diagnostics)
    if new and _describe_unmeasured(before):
        return CheckJudgement(verdict=Verdict.UNVERIFIABLE, reason=_describe_unmeasured(before))
    if not new:
        return CheckJudgement(
            verdict=Verdict.PASS, reason=f"{len(after.diagnostics)} complaints, all in the baseline too"
        )
    findings = tuple(
        Finding(
            layer="cascade",
            rule=f"{after.tool} {diagnostic.code}".strip(),
            severity=Severity.MAJOR,
            path=diagnostic.path,
            line=diagnostic.line,
            detail=diagnostic.message,
            fix="fix it, or turn the rule off in the configuration",
            check=after.name,
            artifact=after.artifact,
        )
        for diagnostic in new[:50]
    )
    return CheckJudgement(
        verdict=Verdict.FAIL, reason=f"{len(new)} new complaint{'s' * (len(new) > 1)}", findings=findings
    )


def _judge_tests(
    before: CheckResult | None, after: CheckResult, report: TestReport, excuses: RerunFindings
) -> CheckJudgement:
    base_report = (
        before.report if before and before.report else TestReport(runner=report.runner, results=(), complete=False)
    )
    compared = _apply_reruns(compare_reports(base_report, report), excuses)
    tests = separate_blocked(ComparedTests(after, report, base_report, compared, excuses))
    comparison = tests.comparison
    findings = [*_build_whole_run_findings(before, tests), *build_test_findings(tests)]
    still_flaky = [test for test in excuses.flaky if test not in (*excuses.flaky_before, *excuses.allowed_flaky)]
    details = {"findings": tuple(findings), "comparison": comparison}
    if not report.forged and before is not None and before.death is not None:
        # Without the base it is unknown which tests are gone and which failures are new.
        reason = f"the base could not be measured: {before.reason}"
        return CheckJudgement(verdict=Verdict.UNVERIFIABLE, reason=reason, findings=_build_limit_findings(before))
    if tests.failing and _describe_unmeasured(before):
        return CheckJudgement(verdict=Verdict.UNVERIFIABLE, reason=_describe_unmeasured(before))
    if tests.failing:
        return CheckJudgement(verdict=Verdict.FAIL, reason=describe_failures(tests), **details)
    if still_flaky:
        return CheckJudgement(
            verdict=Verdict.FAIL, reason=_count_tests(still_flaky, "is flaky", "are flaky"), **details
        )
    if comparison.lost_tests and not excuses.losses_accepted:
        reason = _count_tests(comparison.lost_tests, "ran before and does not run now", "ran before and do not run now")
        return CheckJudgement(verdict=Verdict.FAIL, reason=reason, **details)
    verdict, reason = _judge_whole_run(before, after, report, comparison, excuses)
    return CheckJudgement(verdict=verdict, reason=reason, **details)


def _judge_whole_run(
    before: CheckResult | None,
    after: CheckResult,
    report: TestReport,
    comparison: ResultComparison,
    excuses: RerunFindings,
) -> tuple[Verdict, str]:
    """Judge the run as a whole after no single test counts against the change."""
    if report.forged:
        return Verdict.FAIL, report.forged
    if not report.complete:
        reason = _describe_broken_run(after, report)
        return (
            (Verdict.FAIL, f"{reason}; on the base it finishes")
            if _is_finished(before)
            else (
                Verdict.UNVERIFIABLE,
                reason,
            )
        )
    if report.executed_count == 0:
        return Verdict.UNVERIFIABLE, "no test was executed"
    executed = [result for result in report.results if result.status.is_executed]
    if all(result.status.is_failure and result.id not in excuses.flaky for result in executed):
        return Verdict.UNVERIFIABLE, executed[-1].describe_failure("no test passes, neither here nor on the base")
    if excuses.blocking:
        many = _count_tests(excuses.blocking, "cannot be verified", "cannot be verified")
        return Verdict.UNVERIFIABLE, f"{many} in the sandbox, because a service or the network is missing there"
    if after.verdict is Verdict.PASS:
        return _judge_exit_code_0(before, after, report)
    return _judge_other_exit_code(before, after, report, comparison, excuses)


def _build_whole_run_findings(before: CheckResult | None, tests: ComparedTests) -> list[Finding]:
    after, report = tests.after, tests.report
    if report.forged:
        detail = f"{after.name}: {report.forged}: something other than the runner wrote results"
        return [
            _build_run_finding(
                after, EvidenceLayer.TEST_IDENTITY, "report-forged", detail, "leave reporting to the test runner"
            )
        ]
    if not report.complete:
        return [_build_broken_finding(before, tests)]
    if reason := _describe_hidden_failure(before, after, report):
        fix = "leave the exit code to the test runner"
        return [_build_run_finding(after, EvidenceLayer.TEST_IDENTITY, "exit-code", f"{after.name}: {reason}", fix)]
    if report.executed_count == 0 and not tests.failing and before and before.report and before.report.executed_count:
        detail = f"{after.name}: no test was executed; on the base {before.report.executed_count} are"
        return [_build_run_finding(after, EvidenceLayer.TEST_IDENTITY, "no-tests", detail, "make the tests run")]
    return []


def _describe_broken_run(after: CheckResult, report: TestReport) -> str:
    """Return why a run gave no complete report: the error that its output names, else what is wrong with the report."""
    error = find_run_error(after.output)
    if error and after.exit_code != 0:
        return f"the run broke: {error[0]}"
    return _first_or(report.problems, "the test run ended before it was finished")


def _build_broken_finding(before: CheckResult | None, tests: ComparedTests) -> Finding:
    """Return the finding about a run that could not be finished, with the error's own lines. If the base has the same
    error, it is not the fault of the change, and the verdict states it already."""
    after = tests.after
    error = find_run_error(after.output) if after.exit_code != 0 else ()
    is_new = _is_finished(before)
    on_base = "; on the base it finishes" if is_new else "; it does not finish on the base either" if before else ""
    headline = f"{after.name}: {_describe_broken_run(after, tests.report)}{on_base}"
    lines = [headline, *(f"  {line}" for line in error[1:])]
    if tests.blocked:
        lines.append(f"{pluralize(len(tests.blocked), 'test')} that ran on the base did not run because of it")
    fix = "fix the error that is named here" if error else "let the test runner finish"
    severity = Severity.CRITICAL if is_new else Severity.MINOR
    finding = _build_run_finding(after, EvidenceLayer.TEST_IDENTITY, "unfinished-run", "\n".join(lines), fix, severity)
    return finding.model_copy(update={"tests": tests.blocked})


def _build_unfinished_finding(after: CheckResult) -> Finding:
    detail = f"{after.name}: the run ended before it was finished; on the base it finishes"
    fix = "let the test runner finish"
    return _build_run_finding(after, EvidenceLayer.TEST_IDENTITY, "unfinished-run", detail, fix)


def _judge_exit_code_0(before: CheckResult | None, after: CheckResult, report: TestReport) -> tuple[Verdict, str]:
    """Judge exit code 0. A user's command passes only if its own tests agree: failures on the base do not excuse exit
    code 0."""
    failing = [result.id for result in report.results if result.status.is_failure]
    if after.kind is CheckKind.VERIFY and failing:
        return Verdict.FAIL, f"exit code 0, although {_count_tests(failing, 'fails', 'fail')} in it"
    if reason := _describe_hidden_failure(before, after, report):
        return Verdict.FAIL, reason
    return Verdict.PASS, ""


def _describe_hidden_failure(before: CheckResult | None, after: CheckResult, report: TestReport) -> str:
    """Return what is wrong with a test run that ends with exit code 0 although tests fail in it, if the same runner
    does not end so on the base; empty otherwise. Something other than the runner ended the process."""
    if after.kind is not CheckKind.TESTS or after.exit_code != 0 or before is None or before.report is None:
        return ""
    failing = [result.id for result in report.results if result.status.is_failure]
    is_failure_on_base = before.exit_code not in (0, None) and any(
        result.status.is_failure for result in before.report.results
    )
    if not failing or not is_failure_on_base:
        return ""
    return f"exit code 0, although {_count_tests(failing, 'fails', 'fail')}; on the base {before.exit_code}"


def _judge_other_exit_code(
    before: CheckResult | None,
    after: CheckResult,
    report: TestReport,
    comparison: ResultComparison,
    excuses: RerunFindings,
) -> tuple[Verdict, str]:
    """Judge an exit code other than 0 although no test counts against the change. It is excused only if excused tests
    explain it."""
    failing = sum(result.status.is_failure for result in report.results)
    is_same_as_base = before is not None and before.exit_code == after.exit_code
    # Runners exit with 1 if tests fail; some (mocha, tap) exit with the number of failed tests.
    is_failure_count = after.exit_code == failing and after.kind is CheckKind.TESTS
    is_explained = is_same_as_base or is_failure_count or (bool(excuses.flaky) and after.exit_code == 1)
    if after.kind is CheckKind.VERIFY and not failing:
        return Verdict.FAIL, f"exit code {after.exit_code}, although no test failed"
    if not is_explained:
        on_base = f"; on the base {before.exit_code}" if before else ""
        return Verdict.FAIL, f"exit code {after.exit_code}, which no failing test explains{on_base}"
    if comparison.standing:
        return Verdict.PASS, _count_tests(comparison.standing, "fails", "fail") + " in the baseline too"
    if excuses.sandbox_only:
        return Verdict.PASS, _count_tests(
            excuses.sandbox_only, "needs", "need"
        ) + " a service that the sandbox does not have"
    if excuses.flaky:
        return Verdict.PASS, _count_tests(
            excuses.flaky, "is flaky", "are flaky"
        ) + ", on the base too or as the settings allow"
    return Verdict.PASS, f"exit code {after.exit_code}, as on the base; no test fails"


def _describe_unmeasured(before: CheckResult | None) -> str:
    """Return why nothing can be compared with the base, if the base could not be measured."""
    if before is None or before.verdict is not Verdict.UNVERIFIABLE:
        return ""
    return f"it fails now, but the base could not be measured: {before.reason}"


def _apply_reruns(comparison: ResultComparison, excuses: RerunFindings) -> ResultComparison:
    """Return the comparison after reruns: flaky tests are no regressions, and tests that pass on the base now are no
    excuse."""
    excused = {*excuses.flaky, *excuses.sandbox_only}
    regressions = {*comparison.regressions, *excuses.mended} - excused
    return comparison.model_copy(
        update={
            "regressions": tuple(sorted(regressions)),
            "new_failures": tuple(test for test in comparison.new_failures if test not in excused),
            "standing": tuple(test for test in comparison.standing if test not in {*excused, *excuses.mended}),
        }
    )


def _count_tests(tests: Sequence[object], singular: str, plural: str) -> str:
    return f"1 test {singular}" if len(tests) == 1 else f"{len(tests)} tests {plural}"


def _first_or(problems: Sequence[str], otherwise: str) -> str:
    return problems[0] if problems else otherwise
