"""Calls with slightly different arguments."""

from __future__ import annotations

import json

import pytest

from proofstone.check.observation import ObservedCall
from proofstone.check.rules.nearby_arguments import MAX_VARIANTS, vary_call


def call(*arguments: object) -> ObservedCall:
    return ObservedCall(
        path="shop.py",
        module="shop",
        name="total",
        parameters=(tuple(f"p{number}" for number in range(len(arguments))), (), (), ()),
        arguments=json.dumps(arguments),
        answer='["value", 1]',
    )


def vary(*arguments: object) -> list[list[object]]:
    return [json.loads(variant.arguments) for variant in vary_call(call(*arguments))]


VALUES: list[tuple[object, list[object]]] = [
    (10, [11, 9, 110, 23, 5]),
    (0, [1, -1, 100, 3]),
    (10**15, [10**15 + 1, 10**15 - 1]),
    (["int", "7"], [["int", "8"], ["int", "6"], ["int", "107"], ["int", "17"], ["int", "3"]]),
    (["float", "2.5"], [["float", "3.5"], ["float", "5.0"], ["float", "2.4"], ["float", "2.75"]]),
    (["float", "inf"], []),
    (["text", "Decimal", "1.5"], [["text", "Decimal", text] for text in ("2.5", "3.0", "1.6")]),
    (["text", "Decimal", "NaN"], []),
    (True, [False]),
    (None, []),
    ("12.50", ["12.51", "22.50", "12..50", "12.5"]),
    ("Az", ["Aa", "Bz", "Azz", "A"]),
    ("", []),
    (["list", [1, 2]], [["list", [1, 2, 2]], ["list", [1]], ["list", [2, 1]]]),
    (["set", [1, 2]], [["set", [2]]]),
    (["dict", [["a", 5]]], [["dict", [["a", 6]]], ["dict", [["a", 4]]]]),
    (["object", "m", "C", "object", None, [["n", 5]]], [["object", "m", "C", "object", None, [["n", 6]]]]),
    (["enum", "m", "Colour", "RED"], []),
    (["ref", "m", "C"], []),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=[json.dumps(value) for value, _ in VALUES])
def test_a_value_has_these_neighbours(value: object, expected: list[object]) -> None:
    found = [arguments[0] for arguments in vary(value)]
    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)


def test_every_argument_has_its_turn_and_the_others_stay() -> None:
    assert vary(10, "a")[:4] == [[11, "a"], [10, "b"], [9, "a"], [10, "aa"]]
    variants = vary(1, 2, 3, 4)
    assert len(variants) == MAX_VARIANTS
    assert all(sum(a != b for a, b in zip(variant, (1, 2, 3, 4), strict=True)) == 1 for variant in variants)


def test_no_call_is_made_twice_and_none_is_the_recorded_one() -> None:
    variants = [json.dumps(variant) for variant in vary(1, ["list", []])]
    assert len(variants) == len(set(variants))
    assert json.dumps([1, ["list", []]]) not in variants
