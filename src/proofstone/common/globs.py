"""Match paths against glob patterns, in linear time for every pattern and path.

Agents write the patterns and choose the paths. A regular expression with several stars can take practically forever;
here the possible positions in the pattern are the bits of one integer, and each character of the path advances all of
them at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache


def matches(pattern: str, path: str) -> bool:
    """Return whether the pattern covers the path.

    `*` and `?` stay within a folder, and `**` crosses folders. A folder covers everything below it. Square brackets are
    literal: `app/[id]/page.tsx` is the name of a file.
    """
    return _machine(pattern.removeprefix("./").rstrip("/")).accepts(path)


class _Machine:
    """A pattern as a state machine, with one bit for each position between two pieces or within a star."""

    def __init__(self, pattern: str) -> None:
        self._literals: defaultdict[str, int] = defaultdict(int)
        self._any = self._star = self._deep = self._folders = self._skips = 0
        bit, at = 1, 0
        while at < len(pattern):
            if pattern.startswith("**/", at):
                self._skips |= bit  # skip the folders, or enter them
                bit <<= 1
                self._folders |= bit
                at += 3
            elif pattern.startswith("**", at):
                self._deep |= bit
                at += 2
            elif pattern[at] == "*":
                self._star |= bit
                at += 1
            elif pattern[at] == "?":
                self._any |= bit
                at += 1
            else:
                self._literals[pattern[at]] |= bit
                at += 1
            bit <<= 1
        self._end, self._below = bit, bit << 1

    def accepts(self, path: str) -> bool:
        places = self._expand(1)
        for char in path:
            places = self._expand(self._advance(places, char))
            if not places:
                return False
        return bool(places & (self._end | self._below))

    def _advance(self, places: int, char: str) -> int:
        advanced = (places & self._literals.get(char, 0)) << 1 | places & (self._deep | self._folders | self._below)
        if char == "/":
            return advanced | (places & (self._folders | self._end)) << 1
        return advanced | (places & self._any) << 1 | places & self._star

    def _expand(self, places: int) -> int:
        """Add the positions that need no character: after a star, and after optional folders."""
        while True:
            expanded = places | (places & (self._star | self._deep | self._skips)) << 1 | (places & self._skips) << 2
            if expanded == places:
                return places
            places = expanded


@lru_cache(maxsize=128)
def _machine(pattern: str) -> _Machine:
    return _Machine("**" if pattern in ("", ".") else pattern)


def find_undeclared(paths: Iterable[str], declared: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that no declared pattern covers."""
    return tuple(path for path in paths if not any(matches(pattern, path) for pattern in declared))


_WILDCARDS = frozenset("*?")


def may_overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether some file may be covered by both sets of patterns. If in doubt, return True."""
    return any(_may_overlap(pattern, other) for pattern in some for other in others)


def _may_overlap(pattern: str, other: str) -> bool:
    if matches(pattern, other) or matches(other, pattern):
        return True
    if not (_WILDCARDS & set(pattern)) and not (_WILDCARDS & set(other)):
        return False
    first, second = _literal_prefix(pattern), _literal_prefix(other)
    return first.startswith(second) or second.startswith(first)


def _literal_prefix(pattern: str) -> str:
    """Return the part of the pattern before its first wildcard."""
    cut = min((pattern.find(mark) for mark in _WILDCARDS if mark in pattern), default=len(pattern))
    return pattern[:cut]
