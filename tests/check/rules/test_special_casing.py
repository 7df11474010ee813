"""Code that answers the inputs of a test, and code that only looks like it."""

from __future__ import annotations

import textwrap

from proofstone.check.rules.special_casing import find_examples, find_special_cases
from tests.rows import each_row

TESTS = {
    "tests/test_price.py": textwrap.dedent(
        """
        import pytest
        from shop import fact, kind, price, words


        def test_price():
            assert price(10, 100) == 900
            assert 450 == price(units=5, cost=100)
            assert fact(0) == 1
            assert kind("json") == "application/json"
            assert words("a b") == ["a", "b"]


        @pytest.mark.parametrize(("given", "expected"), [("1 apple", 17), ("2 pears", 23)])
        def test_words(given, expected):
            assert price(given) == expected
        """
    )
}
SPECIAL = {
    "a branch": "def price(units, cost):\n    if units == 10 and cost == 100:\n        return 900\n    return units",
    "a pair": "def price(*args):\n    if args == (10, 100):\n        return 900",
    "one of the inputs": "def price(units, cost):\n    if units == 10:\n        return 900",
    "an expression": "def price(units, cost):\n    return 900 if units == 10 else units * cost",
    "an assignment": "def price(units, cost):\n    if 5 == units:\n        answer = 450\n    return answer",
    "a case": "def price(u, c):\n    match u, c:\n        case 10, 100:\n            return 900",
    "a list": "def words(text):\n    if text == 'a b':\n        return ['a', 'b']",
    "a row of parameters": "def price(text):\n    if text == '1 apple':\n        return 17",
    "one value in a tuple": "def price(text):\n    if text in ('1 apple',):\n        return 17",
    "a table": "ANSWERS = {(10, 100): 900, (5, 100): 450}",
    "a table of rows": "ANSWERS = {'1 apple': 17, '2 pears': 23}",
}
HONEST = {
    "a computed answer": "def price(units, cost):\n    return units * cost * 9 // 10 if units >= 10 else units * cost",
    "a boundary": "def price(units, cost):\n    if units == 10:\n        return units * cost * 9 // 10",
    "a base case": "def fact(n):\n    if n == 0:\n        return 1",
    "an option": "def kind(name):\n    if name == 'json':\n        return 'application/json'",
    "another answer": "def price(units, cost):\n    if units == 10:\n        return 17",
    "a further condition": "def price(units, cost):\n    if units == 10 and cost > 3:\n        return 900",
    "a table with more": "RATES = {(10, 100): 900, (5, 100): 450, (7, 100): 630}",
    "a table of one": "RATES = {(10, 100): 900}",
    "text that cannot be parsed": "def price(units, cost:\n    if units == 10: return 900",
}


def find(code: str, path: str = "shop/price.py", added: range | None = None) -> list[str]:
    cases = find_special_cases(path, code, added or range(1, 20), find_examples(TESTS), TESTS)
    return [case.describe() for case in cases]


@each_row("code", SPECIAL.values())
def test_code_that_answers_the_input_of_a_test_is_found(code: str) -> None:
    assert len(find(code)) == 1


@each_row("code", HONEST.values())
def test_honest_code_is_not_suspected(code: str) -> None:
    assert find(code) == []


def test_only_added_lines_of_the_product_count() -> None:
    assert find(SPECIAL["a branch"], added=range(5, 9)) == []
    assert find(SPECIAL["a branch"], path="tests/test_more.py") == []


def test_both_lines_are_named() -> None:
    (case,) = find_special_cases("shop.py", SPECIAL["a pair"], {2}, find_examples(TESTS), TESTS)
    assert (case.line, case.code) == (2, "if args == (10, 100):")
    assert (case.example.path, case.test_code) == ("tests/test_price.py", "assert price(10, 100) == 900")
    assert (
        case.describe()
        == "a branch for the input of a test: it answers 900 for 10, 100, as the test does (tests/test_price.py:7)"
    )
