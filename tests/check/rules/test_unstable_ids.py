"""Test ids that differ from run to run."""

from __future__ import annotations

from proofstone.check.models import ReportFormat, TestReport, TestResult, TestStatus
from proofstone.check.rules.compare import compare_reports
from proofstone.check.rules.unstable_ids import find_function, find_suspects, find_unstable, select_for_rerun
from tests.rows import each_row


def report(*ids: str, runner: str = "pytest", failing: tuple[str, ...] = ()) -> TestReport:
    results = [
        TestResult(id=id, status=TestStatus.FAILED if id in failing else TestStatus.PASSED, path="t.py") for id in ids
    ]
    return TestReport(runner=runner, results=tuple(results), complete=True)


FUNCTIONS = [
    ("pytest", "t.py::test_a[1]", "t.py::test_a"),
    ("pytest", "t.py::Test::test_a[a::b[c]]", "t.py::Test::test_a"),
    ("pytest", "t.py::test_a", ""),
    ("go", "example.org/p/TestA/at_12:00", "example.org/p/TestA"),
    ("go", "example.org/p/TestA", ""),
    ("vitest", "a.test.js > cart > at 12:00", "a.test.js > cart"),
    ("cargo", "p::tests::a", ""),
]


@each_row(("runner", "id", "function"), FUNCTIONS)
def test_the_function_of_an_id(runner: str, id: str, function: str) -> None:
    assert find_function(runner, id) == function


BEFORE = report("t.py::f[1]", "t.py::f[2]", "t.py::g[x]", "t.py::h")
SUSPECTS: dict[str, tuple[TestReport, set[str]]] = {
    "nothing has changed": (BEFORE, set()),
    "ids are gone, others appeared": (
        report("t.py::f[3]", "t.py::f[4]", "t.py::g[x]", "t.py::h"),
        {"t.py::f"},
    ),
    "an id is only gone": (report("t.py::f[1]", "t.py::g[x]", "t.py::h"), set()),
    "an id has only appeared": (report("t.py::f[1]", "t.py::f[2]", "t.py::f[3]", "t.py::g[x]", "t.py::h"), set()),
    "one function lost what another gained": (report("t.py::f[1]", "t.py::g[x]", "t.py::g[y]", "t.py::h"), set()),
    "a new failing case": (
        report("t.py::f[1]", "t.py::f[3]", "t.py::g[x]", "t.py::h", failing=("t.py::f[3]",)),
        {"t.py::f"},
    ),
}


@each_row(("after", "functions"), SUSPECTS.values())
def test_only_functions_that_lost_and_gained_ids_are_run_again(after: TestReport, functions: set[str]) -> None:
    assert find_suspects(BEFORE, after) == functions


def compared(before: TestReport, again: TestReport, after: TestReport) -> dict[str, tuple[str, ...]]:
    unstable = find_unstable(find_suspects(before, after), before, again, after)
    found = compare_reports(unstable.number_cases(before), unstable.number_cases(after))
    return {name: tests for name, tests in found.model_dump().items() if tests}


CASE = "t.py::f[case {} of unstable ids]"


def test_unstable_cases_are_compared_by_position_and_count() -> None:
    before, again = report("t.py::f[1]", "t.py::f[2]", "t.py::f[x]"), report("t.py::f[3]", "t.py::f[4]", "t.py::f[x]")
    assert compared(before, again, report("t.py::f[5]", "t.py::f[6]", "t.py::f[x]")) == {}
    assert compared(before, again, report("t.py::f[5]", "t.py::f[x]")) == {"vanished": (CASE.format(2),)}
    more = report("t.py::f[5]", "t.py::f[6]", "t.py::f[7]", "t.py::f[x]")
    assert compared(before, again, more) == {"added": (CASE.format(3),)}
    broken = report("t.py::f[5]", "t.py::f[6]", "t.py::f[x]", failing=("t.py::f[6]",))
    assert compared(before, again, broken) == {"regressions": (CASE.format(2),)}


def test_ids_that_come_back_in_a_second_run_are_compared_by_name() -> None:
    before, after = report("t.py::f[1]", "t.py::f[2]"), report("t.py::f[3]", "t.py::f[4]")
    assert compared(before, before, after)["vanished"] == ("t.py::f[1]", "t.py::f[2]")


def test_a_second_run_without_the_function_proves_nothing() -> None:
    before, after = report("t.py::f[1]", "t.py::h"), report("t.py::f[2]", "t.py::h")
    assert compared(before, report("t.py::h"), after)["vanished"] == ("t.py::f[1]",)


def test_a_case_is_run_again_with_its_whole_function() -> None:
    ids = [CASE.format(1), CASE.format(2), "t.py::h"]
    assert select_for_rerun(ReportFormat.PYTEST, ids) == ("t.py::f", "t.py::h")
    assert select_for_rerun(ReportFormat.VITEST, ["a.test.js > cart[case 1 of unstable ids]"]) == ("a.test.js",)


def test_a_moved_file_has_its_cases_under_both_paths() -> None:
    unstable = find_unstable({"new.py::f"}, report("new.py::f[1]"), report("new.py::f[2]"), report("new.py::f[3]"))
    both = unstable.add_old_paths({"old.py": "new.py"})
    assert set(both.functions) == {"new.py::f", "old.py::f"}
