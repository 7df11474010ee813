"""What of a source file runs, and when: its functions, what is said only to people and type checkers, its imports.

Offsets are bytes of `text`. A line belongs to the innermost function that covers all of it; what no function covers
runs when the file is loaded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from proofstone.adapters.sources.edits import Edit

ANONYMOUS: Final = ""
MESSAGE: Final = "sabotaged by Proofstone's sensitivity check"

_OPEN_OR_CLOSED = b"()[]{},;"
"""Characters that only close or continue what stands on other lines."""
_NOT_NEWLINE = re.compile(rb"[^\r\n]")


@dataclass(frozen=True)
class Function:
    name: tuple[str, ...]
    """With the classes and functions around it; `ANONYMOUS` for those without a name."""
    start: int
    end: int
    """With decorators, and with the name that it is assigned to."""
    edits: tuple[Edit, ...]
    """What makes it raise as soon as it runs; nothing where that cannot be done."""

    @property
    def named(self) -> bool:
        return ANONYMOUS not in self.name


@dataclass(frozen=True)
class Line:
    """A line with something on it that runs. Its text has no comments, so that only code is compared."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True)
class Outline:
    text: bytes
    functions: tuple[Function, ...]
    silent: tuple[tuple[int, int], ...]
    """Comments, docstrings, types, import and export lists: to be compared by meaning or not at all."""
    load: tuple[Edit, ...]
    """What makes loading the file raise; nothing where the language has no such thing."""
    imports: frozenset[tuple[str, str]] = frozenset()
    """Where from, and the name it has here. Without a name the import is there for what it does."""
    exports: frozenset[str] = frozenset()
    uses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Where imported names are used."""
    indented: bool = False
    """Whether indentation means something."""

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        return tuple(self._lines())

    def _lines(self) -> Iterator[Line]:
        shown = bytearray(self.text)
        for start, end in self.silent:
            shown[start:end] = _NOT_NEWLINE.sub(b" ", bytes(shown[start:end]))
        at = 0
        for raw in bytes(shown).splitlines(keepends=True):
            code = raw.strip()
            if code.strip(_OPEN_OR_CLOSED + b" \t"):
                start = at + raw.index(code)
                end = start + len(code.rstrip(_OPEN_OR_CLOSED + b" \t"))
                yield Line(start, end, raw.rstrip() if self.indented else code)
            at += len(raw)

    def owner(self, start: int, end: int) -> Function | None:
        """The innermost function that covers these bytes: of those that begin before them, the last one."""
        begun = bisect_right(self._ordered, start, key=lambda one: one.start)
        return next((one for one in reversed(self._ordered[:begun]) if end <= one.end), None)

    @cached_property
    def _ordered(self) -> list[Function]:
        return sorted(self.functions, key=lambda one: (one.start, -one.end))

    def around_end(self, line: Line) -> Function | None:
        """The innermost function that goes on after this line."""
        newline = self.text.find(b"\n", line.end)
        return self.owner(line.end, newline + 1) if newline >= 0 else None

    def is_silent(self, at: int) -> bool:
        return any(start <= at < end for start, end in self.silent)
