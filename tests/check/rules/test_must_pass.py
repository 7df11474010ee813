from __future__ import annotations

import pytest

from proofstone.check.models import TestReport, TestResult, TestStatus
from proofstone.check.rules.compare import check_must_pass
from tests.rows import each_row

REPORT = TestReport(
    runner="pytest",
    complete=True,
    results=(
        TestResult(id="tests/test_a.py::test_x", status=TestStatus.PASSED),
        TestResult(id="tests/test_a.py::K::test_y[1]", status=TestStatus.PASSED),
        TestResult(id="tests/test_a.py::K::test_y[2]", status=TestStatus.FAILED),
        TestResult(id="tests/test_a.py::test_s", status=TestStatus.SKIPPED),
    ),
)


@pytest.mark.parametrize("name", ["tests/test_a.py::test_x", "test_x", "test_a.py::test_x", "K::test_y[1]"])
def test_a_test_that_passes_is_no_finding(name: str) -> None:
    assert check_must_pass([name], [REPORT]) == []


@each_row("name", ["test_y", "K::test_y", "test_y[2]", "test_s", "est_x", "test_z"])
def test_a_test_that_fails_is_skipped_or_was_not_executed_is_one(name: str) -> None:
    assert [finding.rule for finding in check_must_pass([name], [REPORT])] == ["must-pass"]


def test_a_near_miss_names_the_test_that_was_probably_meant() -> None:
    (finding,) = check_must_pass(["test_xx"], [REPORT])
    assert "tests/test_a.py::test_x" in finding.fix
