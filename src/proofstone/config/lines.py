"""On which line of a TOML text a key stands.

The parser does not say, so we ask it differently: a key stands where the statement begins that first makes it
appear. That is exact for tables, dotted keys, inline tables and multi-line values alike, without a TOML scanner of
our own. It parses the text for each line that could spell the key out, which only a refused configuration pays.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

Path = Sequence[str | int]


def line_of(text: str, path: Path) -> int | None:
    """The line, counted from 1, of the deepest part of `path` that can be found; integers index into arrays."""
    lines = text.split("\n")
    keys = [str(part) for part in path if isinstance(part, str)]
    for depth in range(len(keys), 0, -1):
        found = _statement(lines, keys[:depth])
        if found is None:
            continue
        start, end = found
        rest = path[depth:]
        if rest and isinstance(rest[0], int):
            return _element(lines, start, end, keys[:depth], rest[0])
        return start + 1
    return None


def _statement(lines: Sequence[str], keys: Sequence[str]) -> tuple[int, int] | None:
    """Index of the first line of the statement that makes `keys` appear, and of the line after its last."""
    spelt_out = re.compile(rf"(?<![\w-]){re.escape(keys[-1])}[\"']?\s*[.=\]]")
    for start, line in enumerate(lines):
        if not spelt_out.search(line):
            continue  # saves the parsing
        for end in range(start + 1, len(lines) + 1):
            after = _parse(lines[:end])
            if after is not None:
                if _get(after, keys) is not None:
                    return start, end
                break
    return None


def _element(lines: Sequence[str], start: int, end: int, keys: Sequence[str], index: int) -> int:
    """The line of one element of the array that the lines from `start` to `end` write."""
    for stop in range(start + 1, end):
        cut = _parse([*lines[:stop], "]"])
        value = None if cut is None else _get(cut, keys)
        if isinstance(value, list) and len(value) > index:
            return stop
    return (start if end == start + 1 else end - 1) + 1


def _parse(lines: Sequence[str]) -> dict[str, object] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError):  # no TOML, numbers of thousands of digits, brackets thousands deep
        return None


def _get(document: object, keys: Sequence[str]) -> object | None:
    """The value at `keys`; TOML has no null, so None says that it is not there."""
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document
