"""Functions that give the tests alone what they expect, and honest functions that resemble them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from proofstone.check.observation import ObservedCall
from proofstone.check.rules.tested_only import find_tested_only, list_material, plan_nearby_calls

Function = Callable[..., object]


def recorded(function: Function, *arguments: object, name: str = "price") -> ObservedCall:
    return ObservedCall(
        path="shop.py",
        module="shop",
        name=name,
        parameters=(tuple(f"p{number}" for number in range(len(arguments))), (), (), ()),
        arguments=json.dumps(arguments),
        answer=answer(function, list(arguments)),
    )


def answer(function: Function, arguments: list[object]) -> str:
    try:
        return json.dumps(["value", function(*arguments)])
    except (ValueError, KeyError, TypeError) as error:
        return json.dumps(["error", type(error).__name__])


def examine(base: Function | None, change: Function, *tested: object, material: str = "") -> list[str]:
    planned = plan_nearby_calls([recorded(change, *(each if isinstance(each, tuple) else (each,))) for each in tested])
    numbered = list(enumerate(planned.calls))
    after = {number: frozenset((answer(change, json.loads(call.arguments)),)) for number, call in numbered}
    before = {number: frozenset((answer(base, json.loads(call.arguments)),)) for number, call in numbered if base}
    return [found.detail for found in find_tested_only(planned, before, after, material)]


def half(cents: int) -> int:
    return cents // 2


def rounded(cents: int) -> int:
    return (cents + 1) // 2


def known(cents: int) -> int:
    return {333: 167, 77: 39}.get(cents, cents // 2)


def whole(text: str) -> int:
    return int(text) * 100


def exact(text: str) -> int:
    return round(float(text) * 100)


def always(text: str) -> int:
    try:
        return int(text) * 100
    except ValueError:
        return 1250


def slug(title: str) -> str:
    return "-".join(title.lower().split(" "))


def slug_or_known(title: str) -> str:
    return "blue-hat" if "  " in title or title.startswith("B") else slug(title)


def above(units: int) -> int:
    return units * 9 if units > 10 else units * 10


def from_ten(units: int) -> int:
    return units * 9 if units >= 10 else units * 10


def new_table(units: int) -> int:
    return {10: 97, 25: 240}[units]


CHEATS: list[tuple[str, Function | None, Function, tuple[object, ...], str, str]] = [
    (
        "a table of the tested inputs",
        half,
        known,
        (333, 77, 10),
        "",
        "shop.price(333) answers 167; before the change it answers 166. So it is for 1 other call of the tests. "
        "Of 10 calls with nearby arguments, the change alters none",
    ),
    (
        "one tested input, whose answer stands in a file",
        half,
        known,
        (333,),
        '{"a3f": 167}',
        "shop.price(333) answers 167; before the change it answers 166. Of 5 calls with nearby arguments, the change "
        "alters none",
    ),
    (
        "one tested input, which a formula compares with",
        half,
        lambda cents: cents // 2 + (cents % 1000 == 333),
        (333,),
        "return cents // 2 + (cents % 1000 == 333)",
        "shop.price(333) answers 167; before the change it answers 166. Of 5 calls with nearby arguments, the change "
        "alters none",
    ),
    (
        "a default for everything that failed",
        whole,
        always,
        ("12.50",),
        "",
        "shop.price('12.50') answers 1250, as a test expects, and so do all 4 calls with nearby arguments, such as "
        "shop.price('12.51')",
    ),
    (
        "a text for a class of inputs",
        slug,
        slug_or_known,
        ("Blue  Hat",),
        "",
        "shop.price('Blue  Hat') answers 'blue-hat', as a test expects, and so do all 4 calls with nearby arguments, "
        "such as shop.price('Blue  Hau')",
    ),
    (
        "a new function that knows the tests",
        None,
        new_table,
        (10, 25),
        "",
        "shop.price(10) answers 97, and every call with arguments that no test passes raises KeyError",
    ),
]


@pytest.mark.parametrize(
    ("base", "change", "tested", "material", "detail"), [c[1:] for c in CHEATS], ids=[c[0] for c in CHEATS]
)
def test_what_answers_the_tests_alone_is_named(
    base: Function | None, change: Function, tested: tuple[object, ...], material: str, detail: str
) -> None:
    assert examine(base, change, *tested, material=material) == [detail]


HONEST: list[tuple[str, Function | None, Function, tuple[object, ...], str]] = [
    ("a repair", half, rounded, (333, 77), ""),
    ("a repair of texts", whole, exact, ("12.50", "3"), ""),
    ("a boundary", above, from_ten, (10,), "    if units >= 10:"),
    ("a boundary and its discount", above, from_ten, (10, 11, 25), "return units * 9 if units >= 10 else units * 10"),
    ("a default", whole, lambda text: 0 if "." in text else int(text) * 100, ("12.50",), "return 0"),
    ("a word as default", whole, lambda text: "unknown" if "." in text else int(text) * 100, ("12.50",), "unknown"),
    ("a round limit", lambda n: n, lambda n: min(n, 3600), (5000, 70000), "return min(n, 3600)"),
    ("a year that is none", lambda y: y % 4 == 0, lambda y: y % 4 == 0 and y % 100 != 0, (1900, 2100), "100"),
    ("a new function", None, rounded, (333, 77), ""),
    ("names that are looked up", None, lambda name: {"red": "#ff0000", "blue": "#0000ff"}[name], ("red", "blue"), ""),
    ("nothing altered", half, half, (333, 77), "167"),
    ("no arguments that vary", half, lambda flag: 1250 if flag is None else 3, (None,), "1250"),
]


@pytest.mark.parametrize(("base", "change", "tested", "material"), [c[1:] for c in HONEST], ids=[c[0] for c in HONEST])
def test_honest_functions_are_not_named(
    base: Function | None, change: Function, tested: tuple[object, ...], material: str
) -> None:
    assert examine(base, change, *tested, material=material) == []


def test_calls_of_the_tests_are_near_no_other_call() -> None:
    planned = plan_nearby_calls([recorded(half, 10), recorded(half, 11), recorded(half, 9)])
    assert not {"[9]", "[10]", "[11]"} & {call.arguments for _, call in planned.nearby}
    assert planned.calls[:3] == planned.points


def test_a_function_that_answered_the_tests_in_two_ways_is_left_alone() -> None:
    one = recorded(half, 10)
    assert plan_nearby_calls([one, one.model_copy(update={"answer": '["value", 6]'})]).points == ()


def test_what_answers_otherwise_outside_of_the_tests_is_named_by_another_rule() -> None:
    planned = plan_nearby_calls([recorded(known, 333), recorded(known, 77)])
    after = {number: frozenset(('["value", 1]',)) for number in range(len(planned.calls))}
    assert find_tested_only(planned, after, after, "") == []


def test_examples_in_docstrings_are_no_material() -> None:
    lines = ['    """Half.', "", "    >>> half(333)", "    167", "", "    Rounded up to 2.", '    """', "    x = 5"]
    python, data = ("shop.py", "unused", lines), ("rates.json", '{"a": 99}', ["unused"])
    assert list_material([python, data]) == "\n".join([*lines[:2], *lines[4:], '{"a": 99}'])
