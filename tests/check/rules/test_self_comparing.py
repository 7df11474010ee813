"""Tests that pass only because an answer compares itself."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proofstone.check.models import TestReport, TestResult, TestStatus
from proofstone.check.observation import ComparingAnswer
from proofstone.check.rules.self_comparing import find_self_comparing

P, F = TestStatus.PASSED, TestStatus.FAILED
NEAR = ComparingAnswer(name="offers", kind="shop.Near", base="list")


def report(**tests: TestStatus) -> TestReport:
    results = tuple(TestResult(id=name, status=status) for name, status in tests.items())
    return TestReport(runner="pytest", results=results, complete=True)


@pytest.mark.parametrize(
    ("what", "plain", "relying"),
    [
        ("both rely on it", {"a": F, "b": F}, ("a", "b")),
        ("one relies on it", {"a": P, "b": F}, ("b",)),
        ("none does", {"a": P, "b": P}, None),
        ("it failed before", {"c": F}, None),
        ("not asked about", {"d": F}, None),
    ],
)
def test_a_test_that_fails_with_plain_answers_relies_on_the_comparison(
    what: str, plain: Mapping[str, TestStatus], relying: tuple[str, ...] | None
) -> None:
    found = find_self_comparing(["a", "b", "c"], report(a=P, b=P, c=F, d=P), report(**plain), [NEAR], check="t")
    assert [finding.tests for finding in found] == ([relying] if relying else []), what


def test_the_finding_names_the_test_the_class_and_the_function() -> None:
    [found] = find_self_comparing(["a"], report(a=P), report(a=F), [NEAR], check="t")
    assert found.detail == (
        "a passes only because shop.Near, with which offers answers, compares itself: "
        "with the plain list in its place it fails"
    )


def test_nothing_is_said_without_a_second_report_or_such_a_class() -> None:
    assert find_self_comparing(["a"], report(a=P), None, [NEAR], check="t") == []
    assert find_self_comparing(["a"], report(a=P), report(a=F), [], check="t") == []
