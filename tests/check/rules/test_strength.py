"""What the mutants of the changed lines say about the tests, and how many are tried."""

from __future__ import annotations

import json

import pytest

from proofstone.check.models import (
    CheckKind,
    CheckResult,
    MutantResult,
    MutantStatus,
    StrengthLevel,
    TestReport,
    TestResult,
    TestStatus,
    TestStrength,
)
from proofstone.check.rules.strength import (
    bound_cost,
    bound_runs,
    decide_by_run,
    describe_strength,
    describe_survivor,
    hide_secrets,
    list_weak_reasons,
    measure_strength,
    read_probe_results,
)
from proofstone.common.models import Finding, Phase, Severity, Verdict
from tests.rows import each_row

KILLED, SURVIVED, UNREACHED, UNDECIDED = MutantStatus


def mutant(line: int, status: MutantStatus = UNDECIDED, *, function: str = "", new: bool = False) -> MutantResult:
    return MutantResult(
        path="shop.py",
        line=line,
        operator="boundary",
        before="a < b",
        after="a <= b",
        function=function,
        is_new_function=new,
        status=status,
    )


def strength(*statuses: MutantStatus, untried: int = 0) -> TestStrength:
    return TestStrength(mutants=tuple(mutant(line, status) for line, status in enumerate(statuses, 1)), untried=untried)


def report(**statuses: TestStatus) -> TestReport:
    results = tuple(TestResult(id=name, status=status) for name, status in statuses.items())
    return TestReport(runner="node", results=results, complete=True)


def run(found: TestReport | None) -> CheckResult:
    return CheckResult(
        name="t", kind=CheckKind.TESTS, tier=1, tool="node", command="", phase=Phase.AFTER, tree="a" * 40,
        verdict=Verdict.FAIL, report=found,
    )  # fmt: skip


@each_row(
    ("tests", "milliseconds", "test_runs"),
    [
        (1000, 10_000, 1000),
        (1000, 60_000, 1000),
        (100, 5_000, 200),
        (100, 4_900, 200),
        (10, 200, 640),
        (3, 20_000, 100),
    ],
)
def test_the_cost_is_counted_in_runs_of_tests(tests: int, milliseconds: int, test_runs: int) -> None:
    """A suite of ten seconds or more runs once over; a short one as often as ten seconds would hold."""
    bounds = bound_cost(StrengthLevel.QUICK, tests, milliseconds)
    assert (bounds.mutants, bounds.test_runs) == (50, test_runs)
    full = bound_cost(StrengthLevel.FULL, tests, milliseconds)
    assert (full.mutants, full.test_runs) == (1000, 20 * test_runs)


def test_the_limit_of_time_is_far_behind() -> None:
    assert bound_cost(StrengthLevel.QUICK, 10, 100).seconds == 60
    assert bound_cost(StrengthLevel.QUICK, 10, 30_000).seconds == 180


@pytest.mark.parametrize(("milliseconds", "runs"), [(100, 12), (1000, 10), (9000, 4)])
def test_runs_of_their_own_are_few(milliseconds: int, runs: int) -> None:
    assert bound_runs(StrengthLevel.QUICK, milliseconds) == runs
    assert bound_runs(StrengthLevel.FULL, milliseconds) == 10 * runs


def test_the_lines_of_the_probe_are_read() -> None:
    facts = [{"status": "killed", "by": "t"}, {"status": "survived"}, {"status": "invalid"}, "no facts", {"by": "t"}]
    names = ["mutant 0", "mutant 2", "mutant 1", "mutant 3", "mutant 4", "mutant 9", "lines shop.py", "test_x"]
    results = tuple(
        TestResult(id=name, status=TestStatus.PASSED, message=json.dumps(facts[index % len(facts)]))
        for index, name in enumerate(names)
    )
    decided = read_probe_results(
        TestReport(runner="pytest", results=results, complete=True), [mutant(line) for line in range(5)]
    )
    assert [(result.line, result.status, result.killed_by) for result in decided] == [
        (0, KILLED, "t"),
        (2, SURVIVED, ""),
    ]


def test_a_run_decides_a_mutant() -> None:
    after = report(a=TestStatus.PASSED, b=TestStatus.PASSED, c=TestStatus.FAILED)
    killed = decide_by_run(mutant(1), after, run(report(a=TestStatus.PASSED, b=TestStatus.FAILED)))
    assert killed is not None
    assert (killed.status, killed.killed_by) == (KILLED, "b")
    survived = decide_by_run(mutant(1), after, run(report(a=TestStatus.PASSED, b=TestStatus.PASSED)))
    assert survived is not None
    assert survived.status is SURVIVED
    # A test that failed before says nothing, nor does a run of which no test began.
    unclear = decide_by_run(mutant(1), after, run(report(a=TestStatus.PASSED, c=TestStatus.FAILED)))
    assert unclear is not None
    assert unclear.status is UNDECIDED
    assert decide_by_run(mutant(1), after, run(report(build=TestStatus.ERROR))) is None
    dead = decide_by_run(mutant(1), after, run(None))
    assert dead is not None
    assert dead.status is UNDECIDED


def test_a_mutant_that_one_check_notices_is_noticed() -> None:
    results = [mutant(1, SURVIVED), mutant(1, KILLED), mutant(2, UNREACHED), mutant(2, SURVIVED), mutant(3, UNDECIDED)]
    measured = measure_strength([result.model_copy(update={"check": str(n)}) for n, result in enumerate(results)], 4)
    assert measured is not None
    assert [result.status for result in measured.mutants] == [KILLED, SURVIVED, UNDECIDED]
    assert (measured.score, measured.decided, measured.untried) == (50, 2, 4)
    assert measure_strength([], 0) is None


def test_a_line_that_may_hold_a_secret_is_not_shown() -> None:
    found = [
        Finding(layer="L6", rule=rule, severity=Severity.MINOR, detail="d", fix="f", path="shop.py", line=line)
        for rule, line in (("possible-secret", 1), ("hard-exit", 2))
    ]
    shown = hide_secrets(strength(SURVIVED, SURVIVED), found)
    assert shown is not None
    assert [("a <" in mutant.before, "a <" in mutant.after) for mutant in shown.mutants] == [
        (False, False),
        (True, True),
    ]
    assert hide_secrets(None, found) is None


def test_the_share_must_reach_the_threshold() -> None:
    assert list(list_weak_reasons(strength(*[KILLED] * 4, SURVIVED), 80)) == []
    assert list(list_weak_reasons(strength(UNDECIDED), 80)) == []
    assert list(list_weak_reasons(None, 80)) == []
    (reason,) = list_weak_reasons(strength(*[KILLED] * 3, SURVIVED, UNREACHED, UNDECIDED), 80)
    assert reason.reason == (
        "the tests notice 3 of 5 mistakes in the changed lines (60 %, and 80 % are needed): shop.py:4 `<` → `<=`; "
        "shop.py:5 `<` → `<=`, which no test runs"
    )
    assert "assertions" in reason.remedy
    (many,) = list_weak_reasons(strength(*[SURVIVED] * 5), 1)
    assert many.reason.endswith("; and 2 more")


def test_a_new_function_whose_tests_notice_nothing_is_a_reason_above_the_threshold() -> None:
    mutants = [mutant(line, KILLED) for line in range(9)] + [mutant(20, SURVIVED, function="half", new=True)]
    (reason,) = list_weak_reasons(TestStrength(mutants=tuple(mutants)), 80)
    assert reason.reason == "no test notices a mistake in half, which is new (shop.py:20)"
    noticed = (*mutants, mutant(21, KILLED, function="half", new=True))
    assert list(list_weak_reasons(TestStrength(mutants=noticed), 80)) == []
    old = (*mutants[:-1], mutant(20, SURVIVED, function="half"))
    assert list(list_weak_reasons(TestStrength(mutants=old), 80)) == []


def test_the_result_in_words() -> None:
    result = strength(KILLED, KILLED, SURVIVED, UNDECIDED, untried=7)
    assert describe_strength(result) == (
        "the tests notice 2 of 3 mistakes in the changed lines (66 %), 1 undecided, 7 not tried"
    )
    assert (
        describe_strength(strength(untried=1)) == "the tests notice 0 of 0 mistakes in the changed lines, 1 not tried"
    )
    assert describe_survivor(mutant(3, UNREACHED, function="f")) == (
        "shop.py:3 in f: boundary, in a line that no test runs"
    )
