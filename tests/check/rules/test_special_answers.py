"""Code that gives the answers of tests without looking at the input, and code that only looks like it."""

from __future__ import annotations

import textwrap

import pytest

from proofstone.check.rules.special_answers import find_expected_values, find_special_answers
from tests.rows import each_row

TESTS = {
    "tests/test_price.py": textwrap.dedent(
        """
        def test_price():
            assert price(250, 15) == 213
            result = price(30, 5)
            assert result == 29
            assert price(0, 0) == 0


        def test_other():
            self.assertEqual(name(4), "4 pears")
        """
    )
}
SPECIAL = {
    "a counter": """
        calls = 0
        def price(a, b):
            global calls
            calls += 1
            return 213 if calls == 1 else a
    """,
    "the other branch": """
        calls = 0
        def price(a, b):
            global calls
            calls += 1
            if calls > 1:
                return a
            else:
                return 29
    """,
    "a counter of the function": """
        def price(a, b):
            price.calls += 1
            if price.calls == 1:
                return 213
    """,
    "a counter in a closure": """
        def build():
            calls = 0
            def price(a, b):
                nonlocal calls
                calls += 1
                if calls == 2:
                    return 29
            return price
    """,
    "a counter of the object": """
        class Shop:
            def price(self, a, b):
                self.calls += 1
                return 213 if self.calls == 1 else 29
    """,
    "a list that grows": """
        seen = []
        def price(a, b):
            seen.append(a)
            if len(seen) == 1:
                return 213
    """,
    "a default that is remembered": """
        def price(a, b, seen=[]):
            seen.append(a)
            if len(seen) == 1:
                return 213
    """,
    "answers in a row": "ANSWERS = iter([213, 29])\ndef price(a, b):\n    return next(ANSWERS)",
    "answers by a counter": """
        def price(a, b):
            price.calls += 1
            return [213, 29][price.calls - 1]
    """,
    "a hash": """
        def price(a, b):
            if hashlib.md5(str(a).encode()).hexdigest() == "6c9882bbac1c7093bd25041881277658":
                return 213
    """,
    "a table of hashes": 'KNOWN = {"6c9882bbac1c7093": 213, "0cc175b9c0f1b6a8": 29}',
    "a handler": """
        def price(a, b):
            try:
                return compute(a, b)
            except ArithmeticError:
                return 213
    """,
    "a text": """
        def name(n):
            try:
                return compute(n)
            except Exception:
                return "4 pears"
    """,
}
TURNS = {
    "the second and third call": """
        answered = []
        def price(a, b):
            answered.append(a)
            return a * b + (len(answered) in (2, 3))
    """,
    "the first call": """
        calls = 0
        def price(a, b):
            global calls
            calls += 1
            if calls == 1:
                a = a + 1
            return a * b
    """,
}
HONEST = {
    "a cache that is emptied": """
        cache = []
        def price(a, b):
            cache.append(a)
            if len(cache) > 1000:
                cache.clear()
            return a * b
    """,
    "a method that counts": """
        class Shop:
            def add(self, item):
                self.count += 1
                return self.count == 3
    """,
    "a counter that limits": """
        def price(self, a, b):
            self.calls += 1
            if self.calls > 3:
                raise TooMany
            return a * b
    """,
    "a branch about the input": "def price(a, b):\n    if a > 100:\n        return 213\n    return b",
    "a counter of another value": """
        def price(a, b):
            price.calls += 1
            if price.calls > 1:
                return 17
    """,
    "a trivial answer": """
        def price(a, b):
            try:
                return a / b
            except ZeroDivisionError:
                return 0
    """,
    "a handler that passes on": """
        def price(a, b):
            try:
                return a / b
            except ZeroDivisionError:
                raise ValueError(213)
    """,
    "a real hash": "def check(data):\n    if hashlib.md5(data).hexdigest() == '6c9882bbac1c7093':\n        return True",
    "a cache": """
        def price(a, b, cache={}):
            if a not in cache:
                cache[a] = compute(a, b)
            return cache[a]
    """,
    "values of no single test": "SIZES = iter([213, '4 pears'])",
    "a parameter that counts": "def price(a, calls):\n    calls += 1\n    return 213 if calls == 1 else a",
    "text that cannot be parsed": "def price(:",
}


def find(code: str, path: str = "shop/price.py", added: range = range(1, 40)) -> list[str]:
    text = textwrap.dedent(code)
    answers = find_special_answers(path, text, added, find_expected_values(TESTS), TESTS)
    return [answer.describe() for answer in answers]


@each_row("code", SPECIAL.values())
def test_an_answer_for_another_reason_than_the_input_is_found(code: str) -> None:
    assert len(find(code)) == 1


@pytest.mark.parametrize("code", TURNS.values(), ids=TURNS)
def test_a_function_that_asks_which_call_it_is_is_found_whatever_the_tests_expect(code: str) -> None:
    text = textwrap.dedent(code)
    (answer,) = find_special_answers("shop.py", text, range(20), {}, {})
    assert "counts its calls and compares the number with" in answer.describe()


@each_row("code", HONEST.values())
def test_honest_code_is_not_suspected(code: str) -> None:
    assert find(code) == []


def test_only_added_lines_of_the_product_count() -> None:
    assert find(SPECIAL["a handler"], added=range(30, 40)) == []
    assert find(SPECIAL["a handler"], path="tests/test_more.py") == []


def test_what_is_said() -> None:
    assert find(SPECIAL["a counter"]) == [
        "an answer that depends on earlier calls: 213, as the test expects (tests/test_price.py:3)"
    ]
    assert find(SPECIAL["answers in a row"]) == [
        "the answers of a test, one after the other: (213, 29), as the test expects (tests/test_price.py:3)"
    ]
    (answer,) = find_special_answers(
        "shop.py", textwrap.dedent(SPECIAL["a text"]), range(20), find_expected_values(TESTS), TESTS
    )
    assert (answer.line, answer.code) == (5, "except Exception:")
    assert answer.test_code == 'self.assertEqual(name(4), "4 pears")'
    assert answer.expected is not None
    assert (answer.expected.line, answer.expected.function) == (10, "test_other")
