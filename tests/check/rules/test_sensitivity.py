"""Whether a test depends on the change."""

from __future__ import annotations

import pytest

from proofstone.check.models import TestReport, TestResult, TestStatus
from proofstone.check.rules.must_fail import (
    SensitivityEvidence,
    depends_on_change,
    examine_sensitivity,
    find_sensitive_tests,
)
from tests.rows import each_row

T = "tests/test_a.py::test_x"


def ran(status: str | None) -> TestReport:
    results = () if status is None else (TestResult(id=T, status=TestStatus(status), path="tests/test_a.py"),)
    return TestReport(runner="pytest", results=results, complete=True)


@each_row(
    ("put_back", "sabotaged", "whole", "answer"),
    [
        ("failed", "failed", True, True),
        ("failed", "passed", True, False),
        ("failed", "passed", False, True),
        ("passed", "failed", True, False),
        ("error", "failed", True, True),
        ("error", None, True, True),
        ("error", "passed", False, None),
        ("skipped", "skipped", True, None),
        ("passed", "passed", True, False),
    ],
)
def test_a_test_depends_on_the_change_if_it_fails_without_it(
    put_back: str, sabotaged: str | None, whole: bool, answer: bool | None
) -> None:
    assert (
        depends_on_change(T, SensitivityEvidence(put_back=ran(put_back), sabotaged=ran(sabotaged), whole=whole))
        is answer
    )


def test_a_run_that_was_not_made_says_nothing() -> None:
    assert depends_on_change(T, SensitivityEvidence()) is None
    assert depends_on_change(T, SensitivityEvidence(put_back=ran("failed"))) is True
    assert depends_on_change(T, SensitivityEvidence(put_back=ran("error"))) is None


@pytest.mark.parametrize(("counted_on", "refused"), [((T,), 1), ((), 0)])
def test_only_a_test_that_is_counted_on_is_refused(counted_on: tuple[str, ...], refused: int) -> None:
    asked = SensitivityEvidence(put_back=ran("passed"))
    found = examine_sensitivity([T], counted_on, asked, ran("passed").by_id, run=None, check="tests:pytest")
    assert len(found.findings) == refused
    assert found.uncovered


def test_a_sensitive_test_is_named_and_caps_nothing() -> None:
    asked = SensitivityEvidence(put_back=ran("failed"), sabotaged=ran("failed"), whole=True)
    found = examine_sensitivity([T], [T], asked, ran("passed").by_id, run=None, check="tests:pytest")
    assert (found.sensitive, found.findings, found.uncovered) == ((T,), (), ())


@pytest.mark.parametrize(
    ("after", "sabotaged", "answer"),
    [("passed", "failed", (T,)), ("passed", None, (T,)), ("passed", "passed", ()), ("failed", "failed", ())],
)
def test_a_test_notices_the_sabotage_if_it_passed_and_does_not_any_more(
    after: str, sabotaged: str | None, answer: tuple[str, ...]
) -> None:
    assert find_sensitive_tests(ran(sabotaged), ran(after)) == answer
