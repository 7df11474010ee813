"""Find functions whose change gives the tests what they expect and leaves everything nearby as it was.

A repair computes: it changes the answers of a region of arguments, and the answers in it differ. Code that knows the
tests changes single points, wherever it keeps them: in a table, in a file, behind a hash. So recorded calls are made
once more with slightly different arguments (`nearby_arguments`), on the change and on the base. The rules, for calls
whose answer the change has altered (all calls, if the base has no such function):

- *isolated*: no call near an altered call has another answer than before, and several altered calls have answers that
  honest code would hardly hold by chance. One is enough if its answer stands among the added lines and data, or if they
  compare for equality with one of its arguments: the only point that a corrected boundary alters does neither.
- *constant*: every call nearby has the very answer that the test expects, and that answer is specific: it resembles an
  argument, or it is a number that nobody would choose as a default.
- *unknown elsewhere*: a function that is new answers several tested numbers, and every other number alike.

It is a suspicion and no proof, like the others about special cases: a corrected boundary alters single points too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from proofstone.check.observation import ObservedCall
from proofstone.check.rules.call_answers import Answers, describe_answer, describe_call, read_value
from proofstone.check.rules.nearby_arguments import vary_call
from proofstone.check.rules.special_casing import flatten, is_telling
from proofstone.common.text import pluralize

_MAX_POINTS: Final = 60
_MAX_POINTS_OF_FUNCTION: Final = 12
_MIN_NEARBY: Final = 4
"""Nearby calls with an answer on both sides, without which nothing is said about a call."""
_MIN_POINTS: Final = 2
_SPECIFIC_NUMBER: Final = 100
_SIMILAR: Final = 0.5
_MIN_LENGTH: Final = 4
_MAX_COMPARED: Final = 400
"""Characters of texts that are compared: comparing long ones takes seconds."""


@dataclass(frozen=True)
class NearbyCalls:
    """Recorded calls, and calls that differ from each of them in one value."""

    points: tuple[ObservedCall, ...]
    nearby: tuple[tuple[int, ObservedCall], ...]
    """Each with the position of its point."""

    @property
    def calls(self) -> tuple[ObservedCall, ...]:
        """All calls, in the order in which answers are numbered."""
        return (*self.points, *(call for _, call in self.nearby))

    def numbers_near(self, point: int) -> Iterator[int]:
        """Yield the numbers of the calls near a point."""
        return (len(self.points) + number for number, (owner, _) in enumerate(self.nearby) if owner == point)


@dataclass(frozen=True)
class TestedOnly:
    """A function that answers what the tests ask, and nothing near it."""

    path: str
    detail: str


def plan_nearby_calls(calls: Sequence[ObservedCall]) -> NearbyCalls:
    """Choose recorded calls, and vary them. Calls that tests make are not near any other call."""
    answers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for call in calls:
        answers[call.path, call.name, call.arguments].add(call.answer)
    by_function: dict[tuple[str, str], list[ObservedCall]] = defaultdict(list)
    for call in {(call.path, call.name, call.arguments): call for call in calls}.values():
        if len(answers[call.path, call.name, call.arguments]) == 1 and json.loads(call.arguments):
            by_function[call.path, call.name].append(call)
    points = [call for group in by_function.values() for call in group[:_MAX_POINTS_OF_FUNCTION]][:_MAX_POINTS]
    nearby = [
        (number, variant)
        for number, point in enumerate(points)
        for variant in vary_call(point)
        if (variant.path, variant.name, variant.arguments) not in answers
    ]
    return NearbyCalls(tuple(points), tuple(nearby))


@dataclass(frozen=True)
class _TestedCall:
    """A recorded call, with the answers of the calls near it that are known on the change."""

    call: ObservedCall
    before: str | None
    """The answer of the base; None if the base has no such function."""
    nearby: Mapping[int, tuple[str | None, str]]
    """The answers on the base and on the change, by number."""

    @property
    def is_altered(self) -> bool:
        return self.before != self.call.answer

    @property
    def is_isolated(self) -> bool:
        """Whether no call near it has another answer than before."""
        known = [(before, after) for before, after in self.nearby.values() if before is not None]
        return len(known) >= _MIN_NEARBY and all(before == after for before, after in known)

    @property
    def is_constant(self) -> bool:
        """Whether every call near it has its own answer."""
        return len(self.nearby) >= _MIN_NEARBY and all(after == self.call.answer for _, after in self.nearby.values())


def find_tested_only(planned: NearbyCalls, before: Answers, after: Answers, material: str) -> list[TestedOnly]:
    """Return the functions that answer the tests only. `material` is what the change adds besides tests: lines of code
    and data."""
    by_function: dict[tuple[str, str], list[_TestedCall]] = defaultdict(list)
    for number, call in enumerate(planned.points):
        if after.get(number) != frozenset((call.answer,)):
            continue  # it answers otherwise outside of the tests, which another rule names
        nearby = {
            other: (_find_single_answer(before.get(other)), changed)
            for other in planned.numbers_near(number)
            if (changed := _find_single_answer(after.get(other))) is not None
        }
        by_function[call.path, call.name].append(_TestedCall(call, _find_single_answer(before.get(number)), nearby))
    found = []
    for points in by_function.values():
        detail = _examine(points, planned, material)
        if detail:
            found.append(TestedOnly(points[0].call.path, detail))
    return found


def _find_single_answer(answers: frozenset[str] | None) -> str | None:
    return next(iter(answers)) if answers is not None and len(answers) == 1 else None


def _examine(points: Sequence[_TestedCall], planned: NearbyCalls, material: str) -> str:
    """Return what is suspicious about one function; empty if nothing is."""
    is_new = all(point.before is None for point in points)
    altered = [point for point in points if point.is_altered]
    constant = [point for point in altered if point.is_constant and _is_specific(point.call)]
    if constant and len(constant) == len(altered):
        return _describe_constant(constant[0], planned)
    if is_new:
        return _examine_new(points)
    telling = [point for point in altered if point.before is not None and _is_telling_answer(point.call)]
    if not telling or not all(point.is_isolated for point in altered):
        return ""
    if (
        len(telling) >= _MIN_POINTS
        or _is_held_by(telling[0].call, material)
        or _is_asked_for(telling[0].call, material)
    ):
        return _describe_isolated(telling[0], altered)
    return ""


def _examine_new(points: Sequence[_TestedCall]) -> str:
    telling = [point for point in points if _is_telling_answer(point.call) and _has_numbers_only(point.call)]
    others = {after for point in points for _, after in point.nearby.values()}
    enough = all(len(point.nearby) >= _MIN_NEARBY for point in points)
    if len({point.call.answer for point in telling}) < _MIN_POINTS or len(telling) < len(points):
        return ""
    if not enough or len(others) != 1:
        return ""
    return (
        f"{describe_call(points[0].call)} {describe_answer(points[0].call.answer)}, and every call with arguments that "
        f"no test passes {describe_answer(others.pop())}"
    )


def _describe_constant(point: _TestedCall, planned: NearbyCalls) -> str:
    example = describe_call(planned.calls[next(iter(point.nearby))])
    return (
        f"{describe_call(point.call)} {describe_answer(point.call.answer)}, as a test expects, and so do all "
        f"{len(point.nearby)} calls with nearby arguments, such as {example}"
    )


def _describe_isolated(point: _TestedCall, altered: Sequence[_TestedCall]) -> str:
    total = sum(len(each.nearby) for each in altered)
    others = f" So it is for {pluralize(len(altered) - 1, 'other call')} of the tests." if len(altered) > 1 else ""
    return (
        f"{describe_call(point.call)} {describe_answer(point.call.answer)}; before the change it "
        f"{describe_answer(point.before or '')}.{others} Of {total} calls with nearby arguments, the change alters none"
    )


def _read_answer(call: ObservedCall) -> tuple[object] | None:
    match json.loads(call.answer):
        case ["value", value]:
            return read_value(value)
    return None


def _is_telling_answer(call: ObservedCall) -> bool:
    answer = _read_answer(call)
    return answer is not None and is_telling(answer[0])


def _is_specific(call: ObservedCall) -> bool:
    """Return whether the answer is no default: it is made of the argument, or it is a number that is not round."""
    answer = _read_answer(call)
    if answer is None:
        return False
    return any(_is_specific_number(leaf) or _resembles_argument(leaf, call) for leaf in flatten(answer))


def _is_specific_number(leaf: object) -> bool:
    if isinstance(leaf, float):
        return not leaf.is_integer() and leaf == leaf
    return isinstance(leaf, int) and abs(leaf) >= _SPECIFIC_NUMBER and len(str(abs(leaf)).rstrip("0")) > 1


def _resembles_argument(leaf: object, call: ObservedCall) -> bool:
    if not isinstance(leaf, str) or not _MIN_LENGTH <= len(leaf) <= _MAX_COMPARED:
        return False
    given = [text for value in json.loads(call.arguments) for text in _list_texts(value)]
    texts = [text.lower() for text in given if len(text) <= _MAX_COMPARED]
    return any(SequenceMatcher(None, leaf.lower(), text).ratio() >= _SIMILAR for text in texts)


def _list_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case ["list" | "tuple", list(items)]:
            for item in items:
                yield from _list_texts(item)


def _has_numbers_only(call: ObservedCall) -> bool:
    """Return whether the arguments are numbers: texts may be names, which honest code looks up."""
    values = [read_value(value) for value in json.loads(call.arguments) if value not in (["tuple", []], ["dict", []])]
    leaves = [leaf for value in values if value is not None for leaf in flatten(value)]
    return None not in values and bool(leaves) and all(isinstance(leaf, int | float) for leaf in leaves)


def _is_held_by(call: ObservedCall, material: str) -> bool:
    """Return whether every telling part of the answer stands in what the change adds."""
    answer = _read_answer(call)
    leaves = [leaf for leaf in flatten(answer or ()) if is_telling(leaf)]
    return bool(leaves) and all(_stands_in(leaf, material) for leaf in leaves)


def _is_asked_for(call: ObservedCall, material: str) -> bool:
    """Return whether what the change adds compares for equality with a telling number among the arguments."""
    values = [read_value(value) for value in json.loads(call.arguments)]
    numbers = [leaf for value in values for leaf in flatten(value or ()) if isinstance(leaf, int | float)]
    texts = [re.escape(repr(number)) for number in numbers if is_telling(number)]
    return any(
        re.search(
            rf"(?:==|\bcase)\s*{text}(?![\w.])|(?<![\w.]){text}\s*==|\bin\s*[\[({{][^\])}}]*(?<![\w.]){text}(?![\w.])",
            material,
        )
        for text in texts
    )


def _stands_in(leaf: object, material: str) -> bool:
    if isinstance(leaf, str):
        return leaf in material
    return re.search(rf"(?<![\w.]){re.escape(repr(leaf))}(?![\w.])", material) is not None


_CODE: Final = (".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
_EXAMPLE_LINE: Final = re.compile(r"^\s*(?:>>>|\.\.\.)")


def list_material(files: Sequence[tuple[str, str, Sequence[str]]]) -> str:
    """Return what the change adds besides tests: the added lines of code, and the whole content of data. Each file is
    given as its path, its text and its added lines. Examples in docstrings are left out: they show answers honestly."""
    parts: list[str] = []
    for path, text, added in files:
        parts += _drop_examples(added) if path.endswith(_CODE) else [text]
    return "\n".join(parts)


def _drop_examples(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without examples and the answers that follow them."""
    is_example = False
    for line in lines:
        is_example = bool(_EXAMPLE_LINE.match(line)) or (is_example and bool(line.strip()))
        if not is_example:
            yield line
