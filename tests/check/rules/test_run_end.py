"""Whether a run measured anything. Each row says how it ended and what must follow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proofstone.check.models import CheckKind, CheckResult, DeathCause, RunDeath, TestReport, TestResult, TestStatus
from proofstone.check.rules.compare import check_must_pass
from proofstone.check.rules.judge import judge_check
from proofstone.check.rules.result_findings import RerunFindings
from proofstone.check.rules.run_end import RunEnd, describe_deaths, find_death, find_signal_name, is_worth_repeating
from proofstone.common.models import Phase, Verdict
from tests.rows import each_row

P, F = TestStatus.PASSED, TestStatus.FAILED


def report(tests: Mapping[str, TestStatus], *, complete: bool = True, began: bool = True) -> TestReport:
    results = tuple(TestResult(id=name, status=status) for name, status in tests.items())
    return TestReport(runner="pytest", results=results, complete=complete, began=began, problems=("broke off",))


WHOLE = report({"a": P, "b": F})
BROKEN = report({"a": P}, complete=False)
NONE = report({}, complete=False, began=False)
MANY = report({f"t{number}": F for number in range(137)})


@each_row(
    ("what", "end", "seen", "cause", "words"),
    [
        ("passed", RunEnd(0), WHOLE, None, ""),
        ("failed", RunEnd(1), WHOLE, None, ""),
        ("failed without a report", RunEnd(2), None, None, ""),
        ("could not begin", RunEnd(4), NONE, None, ""),
        ("an exit code above every signal", RunEnd(255), None, None, ""),
        ("as many failures as a signal's exit code", RunEnd(137), MANY, None, ""),
        ("killed", RunEnd(137), None, "signal", "SIGKILL killed it (exit code 137)"),
        ("the launcher itself was killed", RunEnd(-9), None, "signal", "SIGKILL killed it (exit code -9)"),
        ("crashed before it could begin", RunEnd(139), NONE, "signal", "SIGSEGV"),
        ("crashed after its last test", RunEnd(139), WHOLE, "signal", "SIGSEGV"),
        ("aborted", RunEnd(134), BROKEN, "signal", "SIGABRT"),
        ("broke off, and says that it failed", RunEnd(1), BROKEN, "unfinished", "broke off (exit code 1)"),
        ("broke off, and says that it passed", RunEnd(0), BROKEN, "unfinished", "broke off (exit code 0)"),
        ("deadline", RunEnd(None, 5.0, timed_out=True), None, "deadline", "not finished after 5 s"),
        ("memory", RunEnd(None, limit="the memory limit"), None, "limit", "ended at the memory limit"),
        ("sandbox", RunEnd(None, setup_error="no overlay"), None, "sandbox", "could not start it: no overlay"),
        ("interrupted", RunEnd(None, cancelled=True), None, "cancelled", "interrupted"),
    ],
)
def test_a_run_is_measured_or_died_of_a_cause(
    what: str, end: RunEnd, seen: TestReport | None, cause: str | None, words: str
) -> None:
    death = find_death(end, seen)
    assert (death.cause if death else None) == cause, what
    assert death is None or words in death.detail


@pytest.mark.parametrize(
    ("limit", "setting"),
    [
        ("the memory limit of 64 MiB", "sandbox.memory_mb"),
        ("the disk limit of 64 MiB", "sandbox.disk_mb"),
        ("more than 64 processes", "sandbox.processes"),
    ],
)
def test_a_limit_names_the_setting_that_raises_it(limit: str, setting: str) -> None:
    death = find_death(RunEnd(None, limit=limit), None)
    assert death is not None and death.setting == setting


def test_only_an_interruption_and_a_deadline_are_not_tried_again() -> None:
    again = {cause for cause in DeathCause if is_worth_repeating(RunDeath(cause=cause, detail=""))}
    assert again == {DeathCause.SANDBOX, DeathCause.LIMIT, DeathCause.SIGNAL, DeathCause.UNFINISHED}


def test_two_deaths_are_told_as_one() -> None:
    killed, late = (
        RunDeath(cause=DeathCause.SIGNAL, detail="killed"),
        RunDeath(cause=DeathCause.DEADLINE, detail="late"),
    )
    assert describe_deaths(killed, killed).detail == "killed, twice in a row"
    assert describe_deaths(killed, late) == RunDeath(cause=DeathCause.DEADLINE, detail="late; the first try: killed")


def test_signals_that_end_no_process_are_exit_codes() -> None:
    assert [
        code for code in range(-64, 256) if find_signal_name(code) in ("SIGCHLD", "SIGCONT", "SIGSTOP", "SIGWINCH")
    ] == []
    assert find_signal_name(None) == ""


def result(
    kind: CheckKind = CheckKind.TESTS,
    seen: TestReport | None = None,
    *,
    code: int | None = 0,
    cause: DeathCause | None = None,
    setting: str = "",
) -> CheckResult:
    died = RunDeath(cause=cause, detail="it died", setting=setting) if cause else None
    verdict = Verdict.UNVERIFIABLE if died else Verdict.PASS if code == 0 else Verdict.FAIL
    return CheckResult(
        name="c", kind=kind, tier=2, tool="t", command="c", phase=Phase.AFTER, tree="a" * 40, verdict=verdict,
        reason=died.detail if died else "", death=died, exit_code=code, report=seen,
        ended_by="the deadline" if cause is DeathCause.DEADLINE else "",
    )  # fmt: skip


GOOD = report({"a": P})
DEAD = result(code=137, cause=DeathCause.SIGNAL)
LEFT, CLAIMED = result(code=1, cause=DeathCause.UNFINISHED), result(code=0, cause=DeathCause.UNFINISHED)
HIDDEN = result(CheckKind.HELD_OUT, code=137, cause=DeathCause.SIGNAL)
VERIFY, BUILD = CheckKind.VERIFY, CheckKind.BUILD


@each_row(
    ("what", "before", "after", "verdict"),
    [
        ("the base died: nobody knows which tests are gone", DEAD, result(seen=GOOD), "unverifiable"),
        ("the base died: nobody knows what failed before", DEAD, result(seen=WHOLE, code=1), "unverifiable"),
        ("both died", DEAD, DEAD, "unverifiable"),
        ("the change died, where the base passes", result(seen=GOOD), DEAD, "unverifiable"),
        ("the change broke off, and says so", result(seen=GOOD), LEFT, "unverifiable"),
        ("the change broke off, and says that it passed", result(seen=GOOD), CLAIMED, "fail"),
        ("the same, where the base died too", DEAD, CLAIMED, "unverifiable"),
        ("without ids a failure is compared with nothing", DEAD, result(code=1), "unverifiable"),
        ("without ids a pass needs no base", DEAD, result(), "pass"),
        ("a build that passes needs no base", result(BUILD, code=137, cause=DeathCause.SIGNAL), result(BUILD), "pass"),
        ("a person's command that fails needs no base", DEAD, result(VERIFY, code=1), "fail"),
        ("a held-out check that died", None, HIDDEN, "unverifiable"),
    ],
)  # fmt: skip
def test_what_died_excuses_nothing_and_accuses_nobody(
    what: str, before: CheckResult | None, after: CheckResult, verdict: str
) -> None:
    judged = judge_check(before, after)
    assert judged.verdict == verdict, what
    assert verdict == "fail" or not [one for one in judged.findings if one.severity != "minor"]


def test_a_second_run_that_died_lets_nothing_pass() -> None:
    before, after = result(seen=WHOLE, code=1), result(seen=WHOLE, code=1)
    assert judge_check(before, after).verdict == "pass"
    judged = judge_check(before, after, RerunFindings(not_measured=("the run c:rerun died",)))
    assert (judged.verdict, judged.reason) == ("unverifiable", "the run c:rerun died")
    worse = judge_check(result(seen=GOOD), result(seen=report({"a": F}), code=1), RerunFindings(not_measured=("died",)))
    assert worse.verdict == "fail"  # what was measured stands


def test_a_layer_whose_run_died_takes_the_pass_away_but_no_failure() -> None:
    passed = judge_check(result(seen=GOOD), result(seen=GOOD))
    assert passed.add_layer_findings((), (), ("the run c:sabotaged died",)).verdict == "unverifiable"
    failed = judge_check(result(seen=GOOD), result(seen=report({"a": F}), code=1))
    assert failed.add_layer_findings((), (), ("the run c:sabotaged died",)).verdict == "fail"


@pytest.mark.parametrize("setting", ["limits.check_seconds", "gate.verify_seconds"])
def test_a_deadline_names_the_setting_that_raises_it(setting: str) -> None:
    late = result(code=None, cause=DeathCause.DEADLINE, setting=setting)
    for before, after in ((None, late), (late, result(seen=GOOD))):
        (finding,) = judge_check(before, after).findings
        assert finding.rule == "limit" and f"raise {setting} in proofstone.toml and commit that" in finding.fix


def test_a_named_test_of_a_run_that_died_is_not_said_to_be_missing() -> None:
    assert [one.rule for one in check_must_pass(["a"], [])] == ["must-pass"]
    assert check_must_pass(["a"], [], all_measured=False) == []
    assert [one.rule for one in check_must_pass(["b"], [WHOLE], all_measured=False)] == ["must-pass"]
