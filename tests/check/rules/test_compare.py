"""Two test reports, compared by id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.models import TestReport, TestResult, TestStatus
from proofstone.check.rules.compare import ResultComparison, compare_reports, merge_test_reports, order_as_run
from tests.rows import each_row

S = TestStatus


def report(**statuses: TestStatus | None) -> TestReport:
    results = tuple(TestResult(id=name, status=status) for name, status in statuses.items() if status is not None)
    return TestReport(runner="pytest", results=results, complete=True)


@each_row(
    ("before", "after", "place"),
    [
        (S.FAILED, S.PASSED, "fixed"),
        (S.ERROR, S.PASSED, "fixed"),
        (S.FAILED, S.XFAILED, "newly_skipped"),
        (S.PASSED, S.XFAILED, "newly_skipped"),
        (S.XFAILED, S.XFAILED, None),
        (S.XFAILED, S.PASSED, None),
        (S.PASSED, S.FAILED, "regressions"),
        (S.PASSED, S.ERROR, "regressions"),
        (S.SKIPPED, S.FAILED, "regressions"),
        (S.XFAILED, S.FAILED, "regressions"),
        (S.FAILED, S.FAILED, "standing"),
        (S.FAILED, S.ERROR, "standing"),
        (None, S.FAILED, "new_failures"),
        (None, S.PASSED, "added"),
        (None, S.SKIPPED, None),
        (S.PASSED, None, "vanished"),
        (S.FAILED, None, "vanished"),
        (S.SKIPPED, None, None),
        (S.PASSED, S.SKIPPED, "newly_skipped"),
        (S.FAILED, S.SKIPPED, "newly_skipped"),
        (S.SKIPPED, S.SKIPPED, None),
        (S.PASSED, S.PASSED, None),
        (S.SKIPPED, S.PASSED, None),
    ],
)
def test_each_pair_of_statuses_has_one_place(
    before: TestStatus | None, after: TestStatus | None, place: str | None
) -> None:
    found = compare_reports(report(t=before), report(t=after))
    expected = ResultComparison() if place is None else ResultComparison(**{place: ("t",)})
    assert found == expected


def test_a_file_that_could_not_be_collected_is_not_missed_once_its_tests_are_there() -> None:
    before = TestReport(runner="pytest", results=(TestResult(id="tests/test_a.py", status=S.ERROR),), complete=True)
    after = TestReport(
        runner="pytest", results=(TestResult(id="tests/test_a.py::test_x", status=S.PASSED),), complete=True
    )
    assert compare_reports(before, after).vanished == ()


def test_a_suite_of_the_same_name_does_not_hide_a_test_that_is_gone() -> None:
    before = TestReport(runner="node", results=(TestResult(id="a.js > adds", status=S.PASSED),), complete=True)
    after = TestReport(runner="node", results=(TestResult(id="a.js > adds > x", status=S.PASSED),), complete=True)
    assert compare_reports(before, after).vanished == ("a.js > adds",)


def test_reports_of_several_runners_are_one_that_nobody_can_rerun() -> None:
    pytest_report, node = (
        report(a=S.PASSED),
        report(b=S.FAILED).model_copy(update={"runner": "node", "complete": False}),
    )
    both = merge_test_reports([pytest_report, node])
    assert both and both.runner == "exit-code" and not both.complete
    assert [result.id for result in both.results] == ["a", "b"]
    assert merge_test_reports([node]) == node
    assert merge_test_reports([]) is None


statuses = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(list(TestStatus)))


@given(statuses, statuses)
def test_every_id_is_in_one_list_at_most_and_no_new_failure_is_lost(
    before: dict[str, TestStatus], after: dict[str, TestStatus]
) -> None:
    found = compare_reports(report(**before), report(**after))
    named = [test for name in ResultComparison.model_fields for test in getattr(found, name)]
    assert len(named) == len(set(named))
    bad_now = {test for test, status in after.items() if status.is_failure}
    assert bad_now == {*found.regressions, *found.new_failures, *found.standing}
    ran_before = {test for test, status in before.items() if status.is_executed}
    runs_now = {test for test, status in after.items() if status.is_executed}
    given_up = {t for t, s in after.items() if s is S.XFAILED and before.get(t) not in (None, S.SKIPPED, S.XFAILED)}
    assert set(found.lost_tests) == (ran_before - runs_now) | given_up


@pytest.mark.parametrize(
    ("broken", "there"),
    [
        ("tests.test_new", "tests.test_new.TestNew.test_a"),
        ("setUpClass (tests.test_new.TestNew)", "tests.test_new.TestNew.test_a"),
        ("setUpModule (tests.test_new)", "tests.test_new.TestNew.test_a"),
    ],
)
def test_a_module_that_unittest_could_not_load_or_set_up_is_not_missed_once_its_tests_are_there(
    broken: str, there: str
) -> None:
    before, after = (
        TestReport(runner="unittest", results=(TestResult(id=id, status=status),), complete=True)
        for id, status in ((broken, S.ERROR), (there, S.PASSED))
    )
    assert compare_reports(before, after).vanished == ()


def test_a_selection_runs_in_the_order_of_the_suite() -> None:
    ids = ("t/b.py::test_2", "t/b.py::test_1[x]", "t/b.py::test_1[y]", "t/a.py::test_3")
    results = tuple(TestResult(id=id, status=S.PASSED, path=id.partition("::")[0]) for id in ids)
    suite = TestReport(runner="pytest", results=results, complete=True)
    assert order_as_run(suite, sorted(ids)) == list(ids)
    assert order_as_run(suite, ["new", "t/a.py", "t/b.py"]) == ["t/b.py", "t/a.py", "new"]
    assert order_as_run(suite, ["t/a.py::test_3", "t/b.py::test_1"]) == ["t/b.py::test_1", "t/a.py::test_3"]


def ids(**statuses: TestStatus) -> TestReport:
    results = tuple(TestResult(id=f"t.py::test_x[{case}]", status=status) for case, status in statuses.items())
    return TestReport(runner="pytest", results=results, complete=True)


def cases(*names: str, status: TestStatus = S.PASSED) -> TestReport:
    return ids(**dict.fromkeys(names, status))


@each_row(
    ("before", "after", "vanished", "added"),
    [
        # A case in front of the others: all of them have another position now.
        (cases("args0-one", "args1-two"), cases("args0-zero", "args1-one", "args2-two"), (), ("args0-zero",)),
        (cases("args0", "args1"), cases("args0", "args1", "args2"), (), ("args2",)),
        # A case that is gone is not made good by another one.
        (cases("args0-one", "args1-two"), cases("args0-two"), ("args0-one",), ()),
        (cases("args0-one"), cases("args0-two"), ("args0-one",), ("args0-two",)),
        (cases("args0-one", "args1-one"), cases("args2-one"), ("args1-one",), ()),
        # Plain values are no positions.
        (cases("1-2"), cases("1-3"), ("1-2",), ("1-3",)),
    ],
)
def test_a_case_that_only_has_another_position_is_neither_gone_nor_new(
    before: TestReport, after: TestReport, vanished: tuple[str, ...], added: tuple[str, ...]
) -> None:
    found = compare_reports(before, after)
    assert found.vanished == tuple(f"t.py::test_x[{case}]" for case in vanished)
    assert found.added == tuple(f"t.py::test_x[{case}]" for case in added)


def test_a_case_that_failed_at_its_old_position_is_repaired_at_its_new_one() -> None:
    before, after = cases("args0-one", status=S.FAILED), cases("args1-one", "args0-zero")
    assert compare_reports(before, after).fixed == ("t.py::test_x[args1-one]",)
