"""Read what programs print: lines, mostly of JSON, about which nothing is certain.

Nothing here raises for anything that a program can print. A value of an unexpected shape counts as missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import FaultKind

MAX_LINE_BYTES: Final = 32 << 20
"""In bytes. A longer line is not an event or a message of any program."""
_MAX_NUMBER: Final = 10**15
"""Tokens or dollars. A larger number is an error or a lie."""
_MAX_SHOWN_CHARS = 2000
"""Characters of a text that goes into an activity."""


class LineSplitter:
    """Split data that arrives in pieces into lines. A line that is too long is skipped up to its end."""

    def __init__(self, longest: int = MAX_LINE_BYTES) -> None:
        self._longest = longest
        self._line = bytearray()
        self._too_long = False

    def add(self, data: bytes) -> Iterator[bytes]:
        """Add data and yield the lines that are now complete."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._append(end)
            if not self._too_long:
                yield bytes(self._line)
            self._line.clear()
            self._too_long = False
        self._append(rest)

    def take_rest(self) -> bytes:
        """Return what follows the last line end."""
        return bytes(self._line)

    def _append(self, data: bytes) -> None:
        self._too_long = self._too_long or len(self._line) + len(data) > self._longest
        if self._too_long:
            self._line.clear()
        else:
            self._line += data


def parse_object(line: str) -> Mapping[str, JsonValue] | None:
    """Return the JSON object in the line, or None. Unpaired surrogates, which UTF-8 cannot encode, become question
    marks."""
    try:
        parsed = json.loads(line)
        if "\\ud" in line or "\\uD" in line:
            parsed = json.loads(json.dumps(parsed, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def get_value(value: JsonValue | Mapping[str, JsonValue], *path: str) -> JsonValue:
    """Return the value at the path of keys, or None."""
    value_found: object = value
    for key in path:
        if not isinstance(value_found, Mapping):
            return None
        value_found = value_found.get(key)
    return value_found  # type: ignore[return-value]  # a part of a JsonValue is a JsonValue


def get_text(value: JsonValue | Mapping[str, JsonValue], *path: str) -> str:
    """Return the text at the path, or an empty text."""
    value_found = get_value(value, *path)
    return value_found if isinstance(value_found, str) else ""


def get_count(value: JsonValue | Mapping[str, JsonValue], *path: str) -> int:
    """Return the whole number at the path, such as a number of tokens, or 0."""
    return int(_check_number(get_value(value, *path)) or 0)


def get_amount(value: JsonValue | Mapping[str, JsonValue], *path: str) -> float | None:
    """Return the amount of money at the path, or None."""
    value_found = _check_number(get_value(value, *path))
    return None if value_found is None else float(value_found)


def parse_amount(text: str | None) -> float | None:
    """Return the number that the text spells, such as an amount of money, or None."""
    try:
        return None if text is None else _check_number(float(text))
    except ValueError:
        return None


def _check_number(value_found: object) -> float | None:
    """Return the number if it can be a count of tokens or an amount of money, else None."""
    if isinstance(value_found, bool) or not isinstance(value_found, int | float):
        return None
    return value_found if 0 <= value_found <= _MAX_NUMBER else None


def get_objects(value: JsonValue | Mapping[str, JsonValue], *path: str) -> Sequence[Mapping[str, JsonValue]]:
    """Return the objects in the list at the path. If there is no list, return an empty one."""
    value_found = get_value(value, *path)
    return [element for element in value_found if isinstance(element, dict)] if isinstance(value_found, list) else []


def make_relative(path: str, root: str | Path) -> str:
    """Return the path relative to the root if it is below the root, else the path unchanged."""
    pure = PurePosixPath(path)
    return str(pure.relative_to(root)) if pure.is_absolute() and pure.is_relative_to(root) else path


def shorten(text: str) -> str:
    """Shorten the text to what an activity carries."""
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"


def classify_status(status: int) -> FaultKind:
    """Return the kind of fault that follows from the last HTTP status of the provider."""
    if status in (401, 402, 403, 404):
        return FaultKind.DENIED
    if status in (408, 409, 429) or status >= 500:
        return FaultKind.UNAVAILABLE
    return FaultKind.REJECTED if 400 <= status < 500 else FaultKind.FAILED
