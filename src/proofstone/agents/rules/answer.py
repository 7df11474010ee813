"""Parse the answer of an agent into a contract, or say why it is malformed. Pure.

Anything around the one JSON object (a fence, a `<think>` block, prose, a second object) is ignored. Where there is no
JSON, a YAML mapping is read that has one of the answer's identifying fields: the whole text, or what a fence holds.
What was found must match the schema. `read_answer` also mends its form (`agents.rules.mended_answers`) and says how.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from proofstone.agents.rules.mended_answers import mend_answer
from proofstone.common.parsing import is_bounded, make_yaml_reader

_MOST_TRIES = 64
"""How many opening braces are tried, because each try may read the whole text."""
_MOST_ERRORS = 5
_SHOWN = 60
_MAX_YAML_CHARS: Final = 200_000
_MAX_REASON: Final = 200
_FENCE: Final = re.compile(r"^```[ \t]*(?:ya?ml)?[ \t]*\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
_THOUGHTS: Final = ("think", "thinking", "reasoning")

AnswerT = TypeVar("AnswerT", bound=BaseModel)


@dataclass(frozen=True)
class MalformedAnswer:
    why: str
    places: tuple[tuple[str | int, ...], ...] = ()
    """Where it does not match the schema."""


@dataclass(frozen=True)
class MendedAnswer(Generic[AnswerT]):
    """An answer that matches the schema, with a note for everything that was mended in it."""

    answer: AnswerT
    notes: tuple[str, ...] = ()


def read_answer(found: Mapping[str, object] | str, contract: type[AnswerT]) -> MendedAnswer[AnswerT] | MalformedAnswer:
    """Return the answer in an object or a text. Mend its form only if it does not match the schema as it is."""
    answer = find_answer(found, contract) if isinstance(found, str) else found
    if isinstance(answer, MalformedAnswer):
        return answer
    checked = validate_answer(answer, contract)
    if not isinstance(checked, MalformedAnswer):
        return MendedAnswer(checked)
    mended, notes = mend_answer(answer, contract)
    again = validate_answer(mended, contract)
    return again if isinstance(again, MalformedAnswer) else MendedAnswer(again, notes)


def find_answer(text: str, contract: type[BaseModel]) -> Mapping[str, object] | MalformedAnswer:
    """Return the object in a text that is most likely the answer: JSON, or else YAML."""
    fields = _identifying_fields(contract)
    answer = _find_object(text, fields)
    if not isinstance(answer, MalformedAnswer):
        return answer
    mapping = _find_mapping(_without_thoughts(text), fields)
    if isinstance(mapping, MalformedAnswer):
        return MalformedAnswer(f"{answer.why}, and no YAML ({mapping.why})")
    return answer if mapping is None else mapping


def parse_answer(data: bytes, contract: type[AnswerT]) -> AnswerT | MalformedAnswer:
    """Return the contract that is written in the data, or why it is malformed."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return MalformedAnswer(f"line {line}: byte {error.start} is not UTF-8")
    answer = find_answer(text, contract)
    return answer if isinstance(answer, MalformedAnswer) else validate_answer(answer, contract)


def validate_answer(found: Mapping[str, object], contract: type[AnswerT]) -> AnswerT | MalformedAnswer:
    """Return the object as a contract, or why it does not match the schema."""
    try:
        # JSON can spell half a character and an infinite number, which nothing can store.
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
        return contract.model_validate(found)
    except UnicodeEncodeError as error:
        return MalformedAnswer(f"{_abbreviate(error.object[error.start])} is half of a character")
    except ValidationError as error:
        errors = error.errors()
        return MalformedAnswer(_describe_errors(errors), tuple(detail["loc"] for detail in errors[:_MOST_ERRORS]))
    except ValueError:
        return MalformedAnswer("a number in it is not one that JSON has")


def _identifying_fields(contract: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields that identify the answer among several objects: the first, then the other required ones."""
    first = next(iter(contract.model_fields))
    required = (name for name, field in contract.model_fields.items() if field.is_required())
    return tuple(dict.fromkeys((first, *required)))


def _find_object(text: str, fields: Sequence[str]) -> dict[str, object] | MalformedAnswer:
    """Return the whole text if it is JSON; else the object in it that has an identifying field; else the first."""
    if not text.strip():
        return MalformedAnswer("it is empty")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):  # only now look around the object, so that texts inside it are left alone
        return _object_around(_without_thoughts(text).strip(), fields)
    return whole if isinstance(whole, dict) else MalformedAnswer(f"it is JSON, but not an object: {_abbreviate(whole)}")


def _find_mapping(text: str, fields: Sequence[str]) -> dict[str, object] | MalformedAnswer | None:
    """Return the first YAML mapping with an identifying field: what a fence holds, or the whole text. If the text looks
    like one, return why it cannot be read; otherwise None."""
    names = "|".join(map(re.escape, fields))
    if not re.search(rf"^[ \t]*[\"']?(?:{names})[\"']?[ \t]*:", text, re.MULTILINE):
        return None
    candidates = (*(match["text"] for match in _FENCE.finditer(text)), text)
    read = [_read_mapping(candidate, fields) for candidate in candidates]
    return next((found for found in read if isinstance(found, dict)), read[0])


def _read_mapping(text: str, fields: Sequence[str]) -> dict[str, object] | MalformedAnswer:
    if len(text) > _MAX_YAML_CHARS:
        return MalformedAnswer(f"it has more than {_MAX_YAML_CHARS:,} characters")
    try:
        value = make_yaml_reader().load(text)
        if not isinstance(value, dict) or not any(name in value for name in fields):
            return MalformedAnswer(f"it is no mapping with {fields[0]}")
        if not is_bounded(value):
            return MalformedAnswer("its references stand for too much")
        plain: dict[str, object] = json.loads(json.dumps(value, default=str))  # dates become texts, as in JSON
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        return MalformedAnswer(_abbreviate_reason(f"{where}{error.problem or 'it cannot be read'}"))
    except (YAMLError, ValueError, TypeError, RecursionError, OverflowError):
        return MalformedAnswer("it cannot be read")
    return plain


def _abbreviate_reason(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_REASON else f"{flat[:_MAX_REASON]}…"


def _object_around(text: str, fields: Sequence[str]) -> dict[str, object] | MalformedAnswer:
    """Return the object in a text without reasoning blocks. If a provider has dropped the opening tag of a block, only
    the closing tag is there: the text after it is then tried first."""
    for tag in _THOUGHTS:
        _, closing, rest = text.rpartition(f"</{tag}>")
        candidate = _object_within(rest.strip(), fields) if closing else MalformedAnswer("")
        if not isinstance(candidate, MalformedAnswer):
            return candidate
    return _object_within(text, fields) if text else MalformedAnswer("it contains only thoughts and no answer")


def _object_within(text: str, fields: Sequence[str]) -> dict[str, object] | MalformedAnswer:
    try:
        whole = json.loads(text)
    except RecursionError:
        return MalformedAnswer("it is nested too deeply")
    except json.JSONDecodeError as error:
        objects = list(_iterate_objects(text))
        reason = f"line {error.lineno}, column {error.colno}: it is not JSON ({error.msg})"
        return _choose_object(objects, fields) if objects else MalformedAnswer(reason)
    except ValueError as error:  # an integer with thousands of digits
        return MalformedAnswer(f"the JSON cannot be read ({error})")
    return whole if isinstance(whole, dict) else MalformedAnswer(f"it is JSON, but not an object: {_abbreviate(whole)}")


def _choose_object(objects: Sequence[dict[str, object]], fields: Sequence[str]) -> dict[str, object]:
    """Return the first object that has the first field; else the first of those with most of the fields."""
    by_first = next((item for item in objects if fields[0] in item), None)
    return by_first or max(objects, key=lambda item: sum(name in item for name in fields))


def _without_thoughts(text: str) -> str:
    """Remove reasoning blocks. A block without a closing tag is left in and makes the JSON invalid."""
    for tag in _THOUGHTS:
        opening, closing = f"<{tag}>", f"</{tag}>"
        outside, at = [], 0
        while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
            outside.append(text[at:start])
            at = end + len(closing)
        text = "".join((*outside, text[at:]))
    return text


def _iterate_objects(text: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_MOST_TRIES):
        if at < 0:
            return
        try:
            decoded, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield decoded
        at = text.find("{", end)


def _describe_errors(errors: Sequence[ErrorDetails]) -> str:
    reasons = [_describe_error(error) for error in errors[:_MOST_ERRORS]]
    remaining = len(errors) - len(reasons)
    return "; ".join((*reasons, *((f"and {remaining} more",) if remaining > 0 else ())))


def _describe_error(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"]))
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{place}: this field is missing"
    if not place:
        return message
    return f"{place}: {message[0].lower()}{message[1:]}, and it is {_abbreviate(error['input'])}"


def _abbreviate(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
