"""Reading what programs print: JSON, a line at a time, of which nothing is certain.

Rules: nothing here raises for anything that a program can print; what is not of the expected shape is simply not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from assay.contracts.agent import FaultKind

_MOST_SHOWN = 2000
"""Characters of a text that goes into an activity."""


def fields(line: str) -> Mapping[str, JsonValue] | None:
    """The object that the line holds; None: it holds none."""
    try:
        read = json.loads(line)
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
    found = value_at(value, *path)
    return int(found) if isinstance(found, int | float) and 0 <= found < 1 << 53 else 0


def amount_at(value: JsonValue | Mapping[str, JsonValue], *path: str) -> float | None:
    """The sum of money there; None: it is not told."""
    found = value_at(value, *path)
    told = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 1 << 53
    return float(found) if told else None  # type: ignore[arg-type]  # it is a number


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
