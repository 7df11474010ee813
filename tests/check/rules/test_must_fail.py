"""What becomes of tests that must fail, and what that says about a report."""

from __future__ import annotations

import pytest

from proofstone.check.models import CheckKind, CheckResult, TestReport, TestResult, TestStatus
from proofstone.check.rules.must_fail import (
    PlantedFate,
    PlantedKind,
    PlantedTest,
    find_fate,
    judge_planted,
    strip_test_id,
)
from proofstone.common.models import Phase, Verdict
from tests.rows import each_row

PATH = "tests/test_cart.py"
CANARY = PlantedTest(kind=PlantedKind.CANARY, path=PATH, name="test_bacodifu")
CHANGED = PlantedTest(kind=PlantedKind.EXPECTATION, path=PATH, name="test_total")
NAMED = CHANGED.model_copy(update={"relied_on": True})


def report(*results: tuple[str, str], complete: bool = True) -> TestReport:
    made = [TestResult(id=f"{PATH}::{name}", status=TestStatus(status), path=PATH) for name, status in results]
    return TestReport(runner="pytest", results=tuple(made), complete=complete)


def run(of: TestReport | None) -> CheckResult:
    return CheckResult(
        name="tests:pytest",
        kind=CheckKind.TESTS,
        tier=2,
        tool="pytest",
        command="pytest",
        phase=Phase.AFTER,
        tree="0" * 40,
        verdict=Verdict.FAIL,
        report=of,
    )


@each_row(
    ("planted", "seen", "becomes"),
    [
        (CANARY, report(("test_bacodifu", "failed")), PlantedFate.FAILED),
        (CANARY, report(("test_bacodifu", "passed")), PlantedFate.PASSED),
        (CANARY, report(("test_total", "passed")), PlantedFate.MISSING),
        (CANARY, report(("test_bacodifu", "skipped")), PlantedFate.UNKNOWN),
        (CANARY, report(("test_total", "passed"), complete=False), PlantedFate.UNKNOWN),
        (CANARY, report(("", "error")), PlantedFate.UNKNOWN),
        (CANARY, None, PlantedFate.UNKNOWN),
        (CHANGED, report(("test_total", "failed")), PlantedFate.FAILED),
        (CHANGED, report(("test_total", "passed")), PlantedFate.PASSED),
        (CHANGED, report(("test_total[1]", "passed"), ("test_total[2]", "failed")), PlantedFate.FAILED),
        (CHANGED, report(("Totals::test_total", "passed")), PlantedFate.PASSED),
        (CHANGED, report(("test_subtotal", "passed")), PlantedFate.UNKNOWN),
        (CHANGED, report(("test_other", "passed")), PlantedFate.UNKNOWN),
    ],
)
def test_the_fate_of_a_planted_test(planted: PlantedTest, seen: TestReport | None, becomes: PlantedFate) -> None:
    assert find_fate(planted, seen) is becomes


@each_row(
    ("planted", "now", "base", "rules"),
    [
        (CANARY, [("test_bacodifu", "failed")], None, []),
        (CANARY, [("test_bacodifu", "passed")], None, ["canary-passed"]),
        (CANARY, [("test_bacodifu", "passed")], [("test_bacodifu", "passed")], ["canary-passed"]),
        (CANARY, [("test_x", "passed")], [("test_bacodifu", "failed")], ["canary-missing"]),
        (CANARY, [("test_x", "passed")], [("test_x", "passed")], []),
        (CHANGED, [("test_total", "passed")], [("test_total", "failed")], ["unfailing-test"]),
        (CHANGED, [("test_total", "passed")], [("test_total", "passed")], []),
        (CHANGED, [("test_total", "passed")], None, []),
        (NAMED, [("test_total", "passed")], [("test_total", "passed")], ["unfailing-test"]),
        (NAMED, [("test_total", "failed")], None, []),
    ],
)
def test_only_what_cannot_be_the_tests_own_weakness_is_held_against_the_change(
    planted: PlantedTest, now: list[tuple[str, str]], base: list[tuple[str, str]] | None, rules: list[str]
) -> None:
    found, _ = judge_planted([planted], run(report(*now)), report(*base) if base else None, check="tests:pytest")
    assert [one.rule for one in found] == rules
    assert all(one.path == PATH and one.fix for one in found)


def test_a_canary_that_did_not_run_keeps_the_confidence_down() -> None:
    _, caps = judge_planted([CANARY], run(None), None, check="tests:pytest")
    assert caps


@pytest.mark.parametrize(
    ("id", "path", "name"),
    [
        ("tests/test_a.py::test_x[1-a]", "tests/test_a.py", "test_x"),
        ("tests/test_a.py::Cls::test_x", "tests/test_a.py", "Cls.test_x"),
        ("test/a.test.js > group > title [1]", "test/a.test.js", "group > title [1]"),
        ("tests.test_a.Cls.test_x", "tests/test_a.py", "tests.test_a.Cls.test_x"),
    ],
)
def test_the_own_name_of_a_test(id: str, path: str, name: str) -> None:
    assert strip_test_id(id, path) == name
