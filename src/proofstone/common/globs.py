"""Patterns of paths, matched in time that no pattern and no path can blow up.

Agents write these patterns, and name the paths. A regular expression with several stars can take longer than anybody
waits; here all places that a match could be at are kept as the bits of one number, and each character moves them on.

Which paths a set of declared patterns covers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache


def matches(pattern: str, path: str) -> bool:
    """`*` and `?` stay within a folder, `**` crosses folders; a folder covers all below it. Square brackets are nothing
    but themselves: `app/[id]/page.tsx` is the name of a file."""
    return _machine(pattern.removeprefix("./").rstrip("/")).accepts(path)


class _Machine:
    """One bit a place: a place between two pieces of the pattern, or within a star."""

    def __init__(self, pattern: str) -> None:
        self._same: defaultdict[str, int] = defaultdict(int)
        self._any = self._star = self._deep = self._folders = self._skips = 0
        bit, at = 1, 0
        while at < len(pattern):
            if pattern.startswith("**/", at):
                self._skips |= bit  # over the folders, or into them
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
                self._same[pattern[at]] |= bit
                at += 1
            bit <<= 1
        self._end, self._below = bit, bit << 1

    def accepts(self, path: str) -> bool:
        places = self._settled(1)
        for char in path:
            places = self._settled(self._moved(places, char))
            if not places:
                return False
        return bool(places & (self._end | self._below))

    def _moved(self, places: int, char: str) -> int:
        moved = (places & self._same.get(char, 0)) << 1 | places & (self._deep | self._folders | self._below)
        if char == "/":
            return moved | (places & (self._folders | self._end)) << 1
        return moved | (places & self._any) << 1 | places & self._star

    def _settled(self, places: int) -> int:
        """With the places that need no character: behind a star, and behind folders that are not there."""
        while True:
            on = places | (places & (self._star | self._deep | self._skips)) << 1 | (places & self._skips) << 2
            if on == places:
                return places
            places = on


@lru_cache(maxsize=128)
def _machine(pattern: str) -> _Machine:
    return _Machine("**" if pattern in ("", ".") else pattern)


def undeclared(paths: Iterable[str], declared: Sequence[str]) -> tuple[str, ...]:
    """The paths that no declared pattern covers."""
    return tuple(path for path in paths if not any(matches(pattern, path) for pattern in declared))


_GLOB = frozenset("*?")


def overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether a file may be covered by both. In doubt, yes."""
    return any(_meet(item, other) for item in some for other in others)


def _meet(one: str, other: str) -> bool:
    if matches(one, other) or matches(other, one):
        return True
    if not (_GLOB & set(one)) and not (_GLOB & set(other)):
        return False
    first, second = _fixed(one), _fixed(other)
    return first.startswith(second) or second.startswith(first)


def _fixed(pattern: str) -> str:
    """What comes before the first wildcard."""
    cut = min((pattern.find(mark) for mark in _GLOB if mark in pattern), default=len(pattern))
    return pattern[:cut]
