"""Vary the arguments of a recorded call: the same call with one value changed a little, or by a lot.

Values are JSON as `probes/proofstone_values.py` writes it. A variant differs from the recorded call in one place of one
argument and keeps its type. What has no neighbours (members of enumerations, references, paths) stays as it is. The
process that wrote a value is not trusted: what cannot be read has no variants.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain, islice, zip_longest
from typing import Final

from proofstone.check.observation import ObservedCall

MAX_VARIANTS: Final = 12
"""Variants of one call."""
_MAX_ITEMS: Final = 3
"""Items of a container that are varied."""
_MAX_INSIDE: Final = 2
"""Variants of one item."""
_MAX_DEPTH: Final = 4
_LARGE: Final = 1_000_000
"""A number from here on is not doubled: functions may need so much time or memory."""


def vary_call(call: ObservedCall) -> list[ObservedCall]:
    """Return calls that differ from this one in one value. Every argument has its turn before any has a second one."""
    arguments = json.loads(call.arguments)
    by_argument = (_vary_position(arguments, number) for number in range(len(arguments)))
    texts = (json.dumps(variant) for variant in _take_turns(by_argument))
    distinct = dict.fromkeys(text for text in texts if text != json.dumps(arguments))
    return [call.model_copy(update={"arguments": text}) for text in islice(distinct, MAX_VARIANTS)]


def _vary_position(arguments: Sequence[object], number: int) -> Iterator[list[object]]:
    for variant in _vary(arguments[number], 0):
        yield [*arguments[:number], variant, *arguments[number + 1 :]]


def _take_turns(iterators: Iterable[Iterator[list[object]]]) -> Iterator[list[object]]:
    rounds = zip_longest(*iterators)
    return (item for item in chain.from_iterable(rounds) if item is not None)


def _vary(value: object, depth: int) -> Iterator[object]:
    match value:
        case bool():
            yield not value
        case int():
            yield from _vary_number(value)
        case str():
            yield from _vary_text(value)
        case ["int", str(text)]:
            yield from (["int", str(number)] for number in _vary_number(_read_int(text)))
        case ["float", str(text)]:
            yield from (["float", repr(number)] for number in _vary_float(_read_float(text)))
        case ["text", "Decimal", str(text)]:
            yield from (["text", "Decimal", varied] for varied in _vary_decimal(text))
        case [("list" | "tuple") as kind, list(items)] if depth < _MAX_DEPTH:
            yield from ([kind, varied] for varied in _vary_items(items, depth))
        case [("set" | "frozenset") as kind, [_, *others]]:
            yield [kind, others]
        case ["dict", list(pairs)] if depth < _MAX_DEPTH:
            yield from (["dict", varied] for varied in _vary_pairs(pairs, depth))
        case ["object", *head, list(pairs)] if depth < _MAX_DEPTH:
            yield from (["object", *head, varied] for varied in _vary_pairs(pairs, depth))


def _read_int(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _read_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _vary_number(number: int | None) -> Iterator[int]:
    if number is None:
        return
    yield from (number + 1, number - 1)
    if abs(number) < _LARGE:
        yield from (number + 100, 2 * number + 3, number // 2)


def _vary_float(number: float | None) -> Iterator[float]:
    if number is not None and math.isfinite(number):
        yield from (number + 1.0, number * 2, number - 0.1, number + 0.25)


def _vary_decimal(text: str) -> Iterator[str]:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return
    if number.is_finite():
        yield from (str(number + 1), str(number * 2), str(number + Decimal("0.1")))


def _vary_text(text: str) -> Iterator[str]:
    """Yield texts with another digit, another letter, and one character more or less."""
    digits = [place for place, char in enumerate(text) if char in "0123456789"]
    letters = [place for place, char in enumerate(text) if char.isascii() and char.isalpha()]
    for place in dict.fromkeys((*digits[-1:], *digits[:1])):
        yield _put(text, place, "1234567890"[int(text[place])])
    for place in dict.fromkeys((*letters[-1:], *letters[:1])):
        yield _put(text, place, _next_letter(text[place]))
    if text:
        middle = len(text) // 2
        yield text[:middle] + text[middle] + text[middle:]
        yield text[:-1]


def _put(text: str, place: int, char: str) -> str:
    return text[:place] + char + text[place + 1 :]


def _next_letter(char: str) -> str:
    first = "a" if char.islower() else "A"
    return chr((ord(char) - ord(first) + 1) % 26 + ord(first))


def _vary_items(items: Sequence[object], depth: int) -> Iterator[list[object]]:
    if items:
        yield [*items, items[-1]]
        yield list(items[:-1])
    if len(items) > 1 and items[0] != items[-1]:
        yield list(reversed(items))
    for place, item in enumerate(items[:_MAX_ITEMS]):
        for variant in islice(_vary(item, depth + 1), _MAX_INSIDE):
            yield [*items[:place], variant, *items[place + 1 :]]


def _vary_pairs(pairs: Sequence[object], depth: int) -> Iterator[list[object]]:
    for place, pair in enumerate(pairs[:_MAX_ITEMS]):
        match pair:
            case [key, value]:
                for variant in islice(_vary(value, depth + 1), _MAX_INSIDE):
                    yield [*pairs[:place], [key, variant], *pairs[place + 1 :]]
