"""One check, judged: what it gave on the base, what it gives now, and what follows. Pure.

Verdicts follow from what the engine saw. Where that cannot tell a good change from a bad one the verdict is
`unverifiable`, with the reason: it never counts as a pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from proofstone.check.models import CheckKind, CheckResult, DeathCause, TestReport
from proofstone.check.rules.compare import Comparison, compare, new_complaints
from proofstone.check.rules.outcome import Layer
from proofstone.common.models import Contract, Finding, Severity, Verdict


class Excuses(Contract):
    """What further runs of single tests showed."""

    flaky: tuple[str, ...] = ()
    """Failed, then passed, on the same tree."""
    flaky_before: tuple[str, ...] = ()
    """The same happened on the base: not this change's."""
    allowed_flaky: tuple[str, ...] = ()
    sandbox_only: tuple[str, ...] = ()
    """Fail in the sandbox on the base too, but pass outside it, or are declared to need a service."""
    blocking: tuple[str, ...] = ()
    """Those of them that have to do with the changed files."""
    mended: tuple[str, ...] = ()
    """Failed on the base when it was first run, and passed there when asked again: no excuse any more."""
    not_measured: tuple[str, ...] = ()
    """Second runs that died, in words: what they would have shown is not known, so nothing passes."""
    losses_accepted: bool = False
    """The person said that tests which are gone or skipped are meant to be."""


class Judgement(Contract):
    verdict: Verdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    comparison: Comparison = Comparison()

    def examined(
        self, findings: Sequence[Finding], edited: Sequence[str] = (), not_measured: Sequence[str] = ()
    ) -> Judgement:
        """The same judgement after the layers had their say: what they refuse fails, what was edited is no repair, and
        what a layer could not measure (`not_measured`) cannot be verified."""
        fixed = tuple(test for test in self.comparison.fixed if test not in edited)
        update: dict[str, object] = {
            "findings": (*self.findings, *findings),
            "comparison": self.comparison.model_copy(update={"fixed": fixed}),
        }
        grave = [finding for finding in findings if finding.severity is not Severity.MINOR]
        if grave and self.verdict is not Verdict.FAIL:
            told = _counted(edited, "passes only because it was edited", "pass only because they were edited")
            only_edited = edited and all(item.rule == "edited-expectation" for item in grave)
            update |= {"verdict": Verdict.FAIL, "reason": told if only_edited else grave[0].detail}
        elif not_measured and self.verdict is Verdict.PASS:
            update |= {"verdict": Verdict.UNVERIFIABLE, "reason": not_measured[0]}
        return self.model_copy(update=update)


def judge(before: CheckResult | None, after: CheckResult, excuses: Excuses | None = None) -> Judgement:
    """The verdict on `after`, given the same check on the base."""
    if after.verdict is Verdict.UNVERIFIABLE:
        # It never ran, died, or proves nothing.
        if _claims_success(after) and _is_finished(before):
            reason = "the test run ended before it was finished; on the base it finishes"
            return Judgement(verdict=Verdict.FAIL, reason=reason, findings=(_unfinished(after),))
        return Judgement(verdict=Verdict.UNVERIFIABLE, reason=after.reason, findings=_limit_findings(after))
    excuses = excuses or Excuses()
    judgement = _judge_measured(before, after, excuses)
    if judgement.verdict is Verdict.PASS and excuses.not_measured:
        update = {"verdict": Verdict.UNVERIFIABLE, "reason": excuses.not_measured[0]}
        return judgement.model_copy(update=update)
    return judgement


def _judge_measured(before: CheckResult | None, after: CheckResult, excuses: Excuses) -> Judgement:
    """The verdict on a run that came to its own end."""
    if after.kind.exercises and after.report is not None:
        return _tests(before, after, after.report, excuses)
    if after.kind.complains:
        return _complaints(before, after)
    if after.kind is CheckKind.HELD_OUT:
        return _held_out(after)
    return _exit_code(before, after, excuses)


def _claims_success(after: CheckResult) -> bool:
    """Whether a run that broke off ended with the exit code of success: whoever ends a runner so hides what it saw."""
    return after.death is not None and after.death.cause is DeathCause.UNFINISHED and after.exit_code == 0


def _is_finished(before: CheckResult | None) -> bool:
    return before is not None and before.report is not None and before.report.complete


def _limit_findings(after: CheckResult) -> tuple[Finding, ...]:
    """Said as a finding, although the verdict says it too: programs look for the rule."""
    if not after.ended_by:
        return ()
    setting = after.death.setting if after.death else ""
    fix = f"find out what takes so long or so much; if it is meant, {_raise_setting(setting)}"
    return (
        _run_finding(after, Layer.SANDBOX, "limit", f"{after.name} was ended at {after.ended_by}", fix, Severity.MINOR),
    )


def _raise_setting(setting: str) -> str:
    """How a limit is raised so that it counts: the settings of the base decide."""
    return (
        f"raise {setting or 'the limit'} in proofstone.toml and commit that before the change, for the settings of the "
        "base decide; --use-worktree-config tries it out"
    )


def _held_out(after: CheckResult) -> Judgement:
    """Nothing of the command or of its output is said: whoever made the change may read this, and must not learn it."""
    if after.verdict is Verdict.PASS:
        return Judgement(verdict=Verdict.PASS)
    detail = f"{after.name} fails: the change does not do what was asked beyond the checks that its author knew"
    fix = "make it right for every input, not only for those that the known tests use"
    finding = _run_finding(after, Layer.HELD_OUT, "heldout", detail, fix, Severity.CRITICAL)
    return Judgement(verdict=Verdict.FAIL, reason="a held-out check fails", findings=(finding,))


def _run_finding(
    after: CheckResult, layer: Layer, rule: str, detail: str, fix: str, severity: Severity = Severity.CRITICAL
) -> Finding:
    """About a run as a whole, with its output as the evidence."""
    return Finding(
        layer=layer,
        rule=rule,
        severity=severity,
        detail=detail,
        fix=fix,
        check=after.name,
        artifact=after.artifact,
    )


def _exit_code(before: CheckResult | None, after: CheckResult, excuses: Excuses) -> Judgement:
    if after.verdict is not Verdict.FAIL:
        return Judgement(verdict=after.verdict, reason=after.reason)
    if after.name in excuses.flaky:
        detail = f"{after.name} failed, then passed, on the same tree"
        finding = _run_finding(after, Layer.TEST_IDENTITY, "flaky", detail, "make it say the same every time")
        if after.name in excuses.allowed_flaky:
            mild = finding.model_copy(update={"severity": Severity.MINOR})
            return Judgement(verdict=Verdict.PASS, reason="flaky, which is allowed", findings=(mild,))
        return Judgement(verdict=Verdict.FAIL, reason=f"{detail}: it is flaky", findings=(finding,))
    if before is not None and before.death is not None and after.kind is not CheckKind.VERIFY:
        return Judgement(verdict=Verdict.UNVERIFIABLE, reason=_unmeasured(before))
    stood = before is not None and before.verdict is Verdict.FAIL
    if stood and after.kind is not CheckKind.VERIFY:
        return Judgement(
            verdict=Verdict.UNVERIFIABLE,
            reason="it fails on the base too, and without results by test id nobody can tell what the change did",
        )
    return Judgement(verdict=Verdict.FAIL, reason=after.reason or f"exit code {after.exit_code}")


def _complaints(before: CheckResult | None, after: CheckResult) -> Judgement:
    """Linters and type checkers: only complaints that the base did not have are held against the change."""
    if after.verdict is not Verdict.FAIL:
        return Judgement(verdict=after.verdict, reason=after.reason)
    if not after.diagnostics:
        return _exit_code(before, after, Excuses())
    new = new_complaints(before.diagnostics if before else (), after.diagnostics)
    if new and _unmeasured(before):
        return Judgement(verdict=Verdict.UNVERIFIABLE, reason=_unmeasured(before))
    if not new:
        return Judgement(verdict=Verdict.PASS, reason=f"{len(after.diagnostics)} complaints stood in the baseline")
    findings = tuple(
        Finding(
            layer="cascade",
            rule=f"{after.tool} {item.code}".strip(),
            severity=Severity.MAJOR,
            path=item.path,
            line=item.line,
            detail=item.message,
            fix="put it right, or turn the rule off in its configuration",
            check=after.name,
            artifact=after.artifact,
        )
        for item in new[:50]
    )
    return Judgement(verdict=Verdict.FAIL, reason=f"{len(new)} new complaint{'s' * (len(new) > 1)}", findings=findings)


def _tests(before: CheckResult | None, after: CheckResult, report: TestReport, excuses: Excuses) -> Judgement:
    known = before.report if before and before.report else TestReport(runner=report.runner, results=(), complete=False)
    found = _corrected(compare(known, report), excuses)
    findings = [*_test_findings(after, report, found, excuses, known), *_whole_run_findings(before, after, report)]
    bad = (*found.regressions, *found.new_failures)
    still_flaky = [test for test in excuses.flaky if test not in (*excuses.flaky_before, *excuses.allowed_flaky)]
    done = {"findings": tuple(findings), "comparison": found}
    if not report.forged and before is not None and before.death is not None:
        # Without the base nobody knows which tests are gone, or which failures are new.
        reason = f"the base could not be measured: {before.reason}"
        return Judgement(verdict=Verdict.UNVERIFIABLE, reason=reason, findings=_limit_findings(before))
    if bad and _unmeasured(before):
        return Judgement(verdict=Verdict.UNVERIFIABLE, reason=_unmeasured(before))
    if bad:
        return Judgement(verdict=Verdict.FAIL, reason=_counted(bad, "fails that did not", "fail that did not"), **done)
    if still_flaky:
        return Judgement(verdict=Verdict.FAIL, reason=_counted(still_flaky, "is flaky", "are flaky"), **done)
    if found.lost and not excuses.losses_accepted:
        reason = _counted(found.lost, "that ran before does not run now", "that ran before do not run now")
        return Judgement(verdict=Verdict.FAIL, reason=reason, **done)
    verdict, reason = _whole_run(before, after, report, found, excuses)
    return Judgement(verdict=verdict, reason=reason, **done)


def _whole_run(
    before: CheckResult | None, after: CheckResult, report: TestReport, found: Comparison, excuses: Excuses
) -> tuple[Verdict, str]:
    """No test speaks against the change: does the run as a whole speak for it?"""
    if report.forged:
        return Verdict.FAIL, report.forged
    if not report.complete:
        if before and before.report and before.report.complete:
            return Verdict.FAIL, "the test run ended before it was finished; on the base it finishes"
        return Verdict.UNVERIFIABLE, _first(report.problems, "the test run ended before it was finished")
    if report.executed == 0:
        return Verdict.UNVERIFIABLE, "no test was executed"
    executed = [result for result in report.results if result.status.executed]
    if all(result.status.bad and result.id not in excuses.flaky for result in executed):
        return Verdict.UNVERIFIABLE, executed[-1].told("no test passes, here or on the base")
    if excuses.blocking:
        many = _counted(excuses.blocking, "cannot be verified", "cannot be verified")
        return Verdict.UNVERIFIABLE, f"{many} in the sandbox: a service or the network is missing there"
    if after.verdict is Verdict.PASS:
        return _exit_code_0(after, report)
    return _other_exit_code(before, after, report, found, excuses)


def _whole_run_findings(before: CheckResult | None, after: CheckResult, report: TestReport) -> list[Finding]:
    if report.forged:
        detail = f"{after.name}: {report.forged}: something else than the runner wrote results"
        return [_run_finding(after, Layer.TEST_IDENTITY, "report-forged", detail, "leave reporting to the test runner")]
    if not report.complete and _is_finished(before):
        return [_unfinished(after)]
    if report.complete and report.executed == 0 and before and before.report and before.report.executed:
        detail = f"{after.name}: no test was executed; on the base {before.report.executed} are"
        return [_run_finding(after, Layer.TEST_IDENTITY, "no-tests", detail, "let the tests run")]
    return []


def _unfinished(after: CheckResult) -> Finding:
    detail = f"{after.name}: the run ended before it was finished; on the base it finishes"
    fix = "let the test runner come to its own end"
    return _run_finding(after, Layer.TEST_IDENTITY, "unfinished-run", detail, fix)


def _exit_code_0(after: CheckResult, report: TestReport) -> tuple[Verdict, str]:
    """A person's command is believed only if its own tests agree: failures of the base excuse no exit code 0."""
    failing = [result.id for result in report.results if result.status.bad]
    if after.kind is CheckKind.VERIFY and failing:
        return Verdict.FAIL, f"exit code 0, although {_counted(failing, 'fails', 'fail')} in it"
    return Verdict.PASS, ""


def _other_exit_code(
    before: CheckResult | None, after: CheckResult, report: TestReport, found: Comparison, excuses: Excuses
) -> tuple[Verdict, str]:
    """Not 0, although no test speaks against the change: excused only if tests that are excused explain it."""
    failing = sum(result.status.bad for result in report.results)
    same = before is not None and before.exit_code == after.exit_code
    # 1 is what runners say when tests fail; some (mocha, tap) say how many did.
    counted = after.exit_code == failing and after.kind is CheckKind.TESTS
    explained = same or counted or (bool(excuses.flaky) and after.exit_code == 1)
    if after.kind is CheckKind.VERIFY and not failing:
        return Verdict.FAIL, f"exit code {after.exit_code}, although no test failed"
    if not explained:
        was = f"; on the base {before.exit_code}" if before else ""
        return Verdict.FAIL, f"exit code {after.exit_code}, which no failing test explains{was}"
    if found.standing:
        return Verdict.PASS, _counted(found.standing, "failed", "failed") + " in the baseline too"
    if excuses.sandbox_only:
        return Verdict.PASS, _counted(excuses.sandbox_only, "needs", "need") + " a service that the sandbox has not"
    if excuses.flaky:
        return Verdict.PASS, _counted(excuses.flaky, "is flaky", "are flaky") + ", on the base too or by declaration"
    return Verdict.PASS, f"exit code {after.exit_code}, as on the base; no test fails"


def _unmeasured(before: CheckResult | None) -> str:
    """Why nothing can be compared with the base, if it was tried and could not be measured."""
    if before is None or before.verdict is not Verdict.UNVERIFIABLE:
        return ""
    return f"it fails now, and the base could not be measured: {before.reason}"


def _corrected(found: Comparison, excuses: Excuses) -> Comparison:
    """The comparison after second runs: what flaked is no regression, what the base passes now is no excuse."""
    excused = {*excuses.flaky, *excuses.sandbox_only}
    regressions = {*found.regressions, *excuses.mended} - excused
    return found.model_copy(
        update={
            "regressions": tuple(sorted(regressions)),
            "new_failures": tuple(test for test in found.new_failures if test not in excused),
            "standing": tuple(test for test in found.standing if test not in {*excused, *excuses.mended}),
        }
    )


_WITH_MESSAGE = ("regression", "new-failure")
_FIX = {
    "regression": (
        "make it pass again; if the new behaviour is meant, edit the test and say so with --accept-test-changes"
    ),
    "new-failure": "make it pass",
    "test-vanished": "restore it; if it is to go, say so with --accept-test-changes",
    "test-skipped": "let it run; if it is to be skipped, say so with --accept-test-changes",
    "flaky": "make it deterministic, or list it in tests.allow_flaky",
    "sandbox-failure": "declare the service: environment.sockets or environment.network",
}


def _test_findings(
    after: CheckResult, report: TestReport, found: Comparison, excuses: Excuses, known: TestReport
) -> list[Finding]:
    """Each test that speaks against the change, with its evidence."""
    results = {**known.by_id, **report.by_id}
    loss = Severity.MINOR if excuses.losses_accepted else Severity.CRITICAL
    rows = [(test, "regression", Severity.CRITICAL, "passes on the base, fails now") for test in found.regressions]
    rows += [(test, "new-failure", Severity.CRITICAL, "is new and fails") for test in found.new_failures]
    rows += [(test, "test-vanished", loss, "ran on the base and is not there now") for test in found.vanished]
    rows += [(test, "test-skipped", loss, "ran on the base and is skipped now") for test in found.newly_skipped]
    rows += [(test, "flaky", *_flakiness(test, excuses)) for test in excuses.flaky]
    want = "fails in the sandbox on both trees, for want of a service"
    rows += [(test, "sandbox-failure", Severity.MINOR, want) for test in excuses.sandbox_only]
    return [
        Finding(
            layer=Layer.TEST_IDENTITY,
            rule=rule,
            severity=severity,
            path=results[test].path,
            detail=f"{test}: {results[test].told(detail) if rule in _WITH_MESSAGE else detail}",
            fix=_FIX[rule],
            check=after.name,
            artifact=after.artifact,
        )
        for test, rule, severity, detail in rows
    ]


def _flakiness(test: str, excuses: Excuses) -> tuple[Severity, str]:
    concern = test in (*excuses.flaky_before, *excuses.allowed_flaky)
    also = " (on the base too)" if test in excuses.flaky_before else ""
    return Severity.MINOR if concern else Severity.MAJOR, f"failed, then passed on the same tree{also}"


def _counted(tests: Sequence[object], one: str, many: str) -> str:
    return f"1 test {one}" if len(tests) == 1 else f"{len(tests)} tests {many}"


def _first(problems: Sequence[str], otherwise: str) -> str:
    return problems[0] if problems else otherwise
