"""Reading what programs print: lines, of JSON mostly, of which nothing is certain.

Rules: nothing here raises for anything that a program can print; what is not of the expected shape is simply not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import FaultKind

LONGEST_LINE: Final = 32 << 20
"""Bytes; what is longer is no event and no message of any program."""
_MOST_COUNTED: Final = 10**15
"""Of tokens, or of dollars; what is more is a mistake or a lie."""
_MOST_SHOWN = 2000
"""Characters of a text that goes into an activity."""


class Lines:
    """From what comes in pieces to lines. One that is too long is left out, up to its end."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._line = bytearray()
        self._too_long = False

    def add(self, data: bytes) -> Iterator[bytes]:
        """The lines that have come to their end."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._keep(end)
            if not self._too_long:
                yield bytes(self._line)
            self._line.clear()
            self._too_long = False
        self._keep(rest)

    def end(self) -> bytes:
        """What stands behind the last line."""
        return bytes(self._line)

    def _keep(self, data: bytes) -> None:
        self._too_long = self._too_long or len(self._line) + len(data) > self._longest
        if self._too_long:
            self._line.clear()
        else:
            self._line += data


def fields(line: str) -> Mapping[str, JsonValue] | None:
    """The object that the line holds; None: it holds none. JSON can spell half a character, which nothing can keep: it
    becomes a question mark."""
    try:
        read = json.loads(line)
        if "\\ud" in line or "\\uD" in line:
            read = json.loads(json.dumps(read, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def value_at(value: JsonValue | Mapping[str, JsonValue], *path: str) -> JsonValue:
    """What lies at the path of keys; None: nothing does."""
    found: object = value
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found  # type: ignore[return-value]  # a part of a JsonValue is one


def text_at(value: JsonValue | Mapping[str, JsonValue], *path: str) -> str:
    """The text there; empty: there is none."""
    found = value_at(value, *path)
    return found if isinstance(found, str) else ""


def count_at(value: JsonValue | Mapping[str, JsonValue], *path: str) -> int:
    """The whole number there, as of tokens; 0: there is none."""
    return int(_sane(value_at(value, *path)) or 0)


def amount_at(value: JsonValue | Mapping[str, JsonValue], *path: str) -> float | None:
    """The sum of money there; None: it is not told."""
    found = _sane(value_at(value, *path))
    return None if found is None else float(found)


def amount_in(text: str | None) -> float | None:
    """The number that the text is, as of money or tokens; None: it is none."""
    try:
        return None if text is None else _sane(float(text))
    except ValueError:
        return None


def _sane(found: object) -> float | None:
    """The number, if it can be one of tokens or of money."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found if 0 <= found <= _MOST_COUNTED else None


def objects_at(value: JsonValue | Mapping[str, JsonValue], *path: str) -> Sequence[Mapping[str, JsonValue]]:
    """The objects of the list there; empty: there is no list."""
    found = value_at(value, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def relative(path: str, root: str | Path) -> str:
    """The path from the root where it lies below it, and as it is where it does not."""
    pure = PurePosixPath(path)
    return str(pure.relative_to(root)) if pure.is_absolute() and pure.is_relative_to(root) else path


def shown(text: str) -> str:
    """As much of the text as an activity carries."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def kind_of_status(status: int) -> FaultKind:
    """What follows from the status with which a provider answered its program in the end."""
    if status in (401, 402, 403, 404):
        return FaultKind.DENIED
    if status in (408, 409, 429) or status >= 500:
        return FaultKind.UNAVAILABLE
    return FaultKind.REJECTED if 400 <= status < 500 else FaultKind.FAILED
