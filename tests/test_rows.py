"""Tables as one test: every row is tried, and those that fail are named."""

from __future__ import annotations

import inspect

import pytest

from tests.rows import each_row


def test_every_row_is_tried_with_the_fixtures_of_the_test() -> None:
    seen = []

    @each_row("a, b", [(1, 2), (3, 4)])
    def tried(a: int, b: int, fixture: str) -> None:
        seen.append((a, b, fixture))

    assert list(inspect.signature(tried).parameters) == ["fixture"]
    tried(fixture="x")
    assert seen == [(1, 2, "x"), (3, 4, "x")]


def test_all_rows_that_fail_are_named_with_why() -> None:
    @each_row("number", [1, 2, 3])
    def is_odd(number: int) -> None:
        if number == 3:
            pytest.fail("three is refused")
        assert number % 2, f"{number} is even"

    with pytest.raises(AssertionError) as caught:
        is_odd()
    told = str(caught.value)
    assert told.startswith("2 of 3 rows fail")
    assert "(2,)\n    AssertionError: 2 is even" in told and "(3,)\n    Failed: three is refused" in told
    assert "(1,)" not in told
    assert isinstance(caught.value.__cause__, AssertionError)


def test_tables_may_be_combined() -> None:
    seen = []

    @each_row("a", [1, 2])
    @each_row("b", "xy")
    def tried(a: int, b: str) -> None:
        seen.append(f"{a}{b}")

    tried()
    assert seen == ["1x", "1y", "2x", "2y"]


def test_a_row_of_another_length_fails() -> None:
    @each_row("a, b", [(1, 2, 3)])
    def tried(a: int, b: int) -> None:
        raise AssertionError("it is not called")

    with pytest.raises(AssertionError, match="ValueError"):
        tried()


def test_a_table_without_a_row_is_refused() -> None:
    with pytest.raises(AssertionError, match="without a row"):
        each_row("a", [])
