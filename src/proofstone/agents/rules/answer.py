"""From what an agent wrote to a contract, or the reason why it is none. Pure.

What stands around the one object (a fence, a `<think>` block, prose, a second object) is left out; what is in it must
be of the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_MOST_TRIES = 64
"""Openings of an object that are tried: each try may read all of the text."""
_MOST_ERRORS = 5
_SHOWN = 60
_THOUGHTS: Final = ("think", "thinking", "reasoning")

Said = TypeVar("Said", bound=BaseModel)


@dataclass(frozen=True)
class Malformed:
    why: str


def parse(data: bytes, contract: type[Said]) -> Said | Malformed:
    """The contract that is written there."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Malformed(f"line {line}: byte {error.start} is not UTF-8")
    found = _object(text, _first_field(contract))
    return found if isinstance(found, Malformed) else validated(found, contract)


def validated(found: Mapping[str, object], contract: type[Said]) -> Said | Malformed:
    """The object, if it is of the contract."""
    try:
        # JSON can spell half a character, and a number without end, which nothing can hold.
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
        return contract.model_validate(found)
    except UnicodeEncodeError as error:
        return Malformed(f"{_shown(error.object[error.start])} is half of a character")
    except ValidationError as error:
        return Malformed(_in_words(error.errors()))
    except ValueError:
        return Malformed("a number in it is not one that JSON has")


def _first_field(contract: type[BaseModel]) -> str:
    """By its first field, the one that it must have, the object is known among others."""
    return next(iter(contract.model_fields))


def _object(text: str, field: str) -> dict[str, object] | Malformed:
    """The whole text if it is JSON; else the first object in it that has the field, else the first one."""
    if not text.strip():
        return Malformed("it is empty")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):  # then for what stands around it; a text inside the object is left alone
        return _object_around(_without_thoughts(text).strip(), field)
    return whole if isinstance(whole, dict) else Malformed(f"it is JSON, but not an object: {_shown(whole)}")


def _object_around(text: str, field: str) -> dict[str, object] | Malformed:
    """The object in a text without blocks of thoughts. Of a block whose beginning the provider has swallowed, only the
    end is there: what stands behind it goes before, if it holds an object at all."""
    for tag in _THOUGHTS:
        _, closing, rest = text.rpartition(f"</{tag}>")
        found = _object_within(rest.strip(), field) if closing else Malformed("")
        if not isinstance(found, Malformed):
            return found
    return _object_within(text, field) if text else Malformed("it holds thoughts and no answer")


def _object_within(text: str, field: str) -> dict[str, object] | Malformed:
    try:
        whole = json.loads(text)
    except RecursionError:
        return Malformed("it is nested too deeply")
    except json.JSONDecodeError as error:
        found = list(_objects(text))
        said = f"line {error.lineno}, column {error.colno}: it is not JSON ({error.msg})"
        return next((item for item in found if field in item), found[0]) if found else Malformed(said)
    except ValueError as error:  # an integer with thousands of digits
        return Malformed(f"it is not JSON that can be read ({error})")
    return whole if isinstance(whole, dict) else Malformed(f"it is JSON, but not an object: {_shown(whole)}")


def _without_thoughts(text: str) -> str:
    """Without reasoning blocks; one that is not closed is left for the JSON reader to stumble over."""
    for tag in _THOUGHTS:
        opening, closing = f"<{tag}>", f"</{tag}>"
        kept, at = [], 0
        while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
            kept.append(text[at:start])
            at = end + len(closing)
        text = "".join((*kept, text[at:]))
    return text


def _objects(text: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_MOST_TRIES):
        if at < 0:
            return
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


def _in_words(errors: Sequence[ErrorDetails]) -> str:
    said = [_one_error(error) for error in errors[:_MOST_ERRORS]]
    left = len(errors) - len(said)
    return "; ".join((*said, *((f"and {left} more",) if left > 0 else ())))


def _one_error(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"]))
    said = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{place}: this field is missing"
    if not place:
        return said
    return f"{place}: {said[0].lower()}{said[1:]}, and it is {_shown(error['input'])}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
