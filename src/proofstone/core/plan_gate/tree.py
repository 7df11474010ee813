"""The files of the base commit, as a plan may speak of them.

Repositories are large, and a plan may name thousands of files and patterns. So nothing here goes through all files for
each of them: what is near a name stands beside it in sorted lists, and patterns are tried on paths only so often.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import accumulate

from proofstone.core.globs import matches
from proofstone.core.risk import is_test

MOST_BESIDE = 48
"""So many names are compared with one that is not there."""
MOST_TRIES = 500_000
"""Steps that trying patterns may take: one for a glance, one a character for a match."""
_AS_GOOD_AS = 0.9
"""`pars.py` for `parse.py`, but not `cart.py` for `card.py`."""
_LONGEST = 400
"""Characters of a path or a pattern beyond which it is not looked at."""
_DEEPEST = 40
"""Folders of a path that are looked at."""
_WILD = re.compile(r"\*\*/?|\*|\?")


class Patterns:
    """Some patterns, tried so often. After that all is taken to be covered: what was not looked at is not held against
    a plan."""

    def __init__(self, patterns: Iterable[str] = (), tries: int = MOST_TRIES) -> None:
        self._all = dict.fromkeys(patterns)
        self.tries = tries

    def add(self, patterns: Iterable[str]) -> None:
        self._all.update(dict.fromkeys(patterns))

    def cover(self, path: str) -> bool:
        """Whether one of them covers the path."""
        return any(self.matches(pattern, path) for pattern in self._all)

    def matches(self, pattern: str, path: str) -> bool:
        if self.tries <= 0 or len(pattern) > _LONGEST or len(path) > _LONGEST:
            return True
        self.tries -= 1
        if not _has_in_order(path, _pieces(pattern)):
            return False
        self.tries -= len(pattern) + len(path)
        return matches(pattern, path)


class Tree:
    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._patterns = Patterns()

    def __bool__(self) -> bool:
        return bool(self._paths)

    def has(self, path: str) -> bool:
        """A file, a folder, or a pattern that something matches."""
        bare = path.rstrip("/")
        return bare in self._paths or bare in self._folders or self._is_matched(path)

    def has_ending_in(self, path: str) -> bool:
        """The same for how people write: `parse.py` may be `src/parse.py`."""
        return self.has(path) or path.rstrip("/") in self._endings

    def has_folder_of(self, path: str) -> bool:
        folder = path.rstrip("/").rpartition("/")[0]
        return not folder or folder in self._folders

    def meant_by(self, path: str) -> str | None:
        """The file that somebody may have meant who wrote this one."""
        if is_test(path) or is_pattern(path):
            return None
        folder, _, name = path.rpartition("/")
        alike = get_close_matches(name, self.beside(path), 1, _AS_GOOD_AS)
        if alike:
            return f"{folder}/{alike[0]}" if folder else alike[0]
        return None if self.has_folder_of(path) else self._from_another_root(path)

    def beside(self, path: str) -> list[str]:
        """The names in its folder that begin or end most like it and are about as long."""
        folder, _, name = path.rpartition("/")
        forwards, backwards = self._names.get(folder, ((), ()))
        near = dict.fromkeys((*_around(forwards, name), *(one[::-1] for one in _around(backwards, name[::-1]))))
        return [one for one in near if abs(len(one) - len(name)) <= 2 and not _differ_by_number(one, name)]

    def _from_another_root(self, path: str) -> str | None:
        """`shop/cart.py` for `src/shop/cart.py`, or the other way round."""
        shorter = next((one for one in endings_of(path) if "/" in one and one in self._paths), None)
        return shorter or self._endings.get(path)

    def _is_matched(self, pattern: str) -> bool:
        begins = pattern.partition("*")[0].partition("?")[0]
        if begins == pattern:
            return False
        first, last = bisect_left(self._sorted, begins), bisect_left(self._sorted, f"{begins}\U0010ffff")
        return any(self._patterns.matches(pattern, self._sorted[at]) for at in range(first, last))

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._paths)

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(folder for path in self._paths for folder in folders_of(path))

    @cached_property
    def _endings(self) -> dict[str, str]:
        """By its last parts: a path."""
        whole = sorted((*self._paths, *self._folders))
        return {ending: path for path in whole for ending in endings_of(path)}

    @cached_property
    def _names(self) -> dict[str, tuple[list[str], list[str]]]:
        """By folder: the names in it, sorted by how they begin and by how they end, the latter spelt backwards."""
        found: dict[str, list[str]] = {}
        for path in self._sorted:
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, []).append(name)
        return {folder: (sorted(names), sorted(name[::-1] for name in names)) for folder, names in found.items()}


def is_pattern(path: str) -> bool:
    """Whether it covers more than one file: a folder with its slash, or a glob."""
    return path.endswith("/") or "*" in path or "?" in path


def uncovered(paths: Iterable[str], declared: Iterable[str]) -> tuple[str, ...]:
    """The paths that nothing declared covers, each once."""
    known = frozenset(declared)
    patterns = Patterns(sorted(one for one in known if is_pattern(one)))
    return tuple(path for path in dict.fromkeys(paths) if path not in known and not patterns.cover(path))


def folders_of(path: str) -> Iterable[str]:
    """`a` and `a/b` of `a/b/c.py`."""
    return accumulate(path.rstrip("/").split("/")[:-1][:_DEEPEST], "{}/{}".format)


def endings_of(path: str) -> Iterable[str]:
    """`b/c.py` and `c.py` of `a/b/c.py`."""
    parts = path.split("/")
    return ("/".join(parts[at:]) for at in range(max(1, len(parts) - _DEEPEST), len(parts)))


def _around(names: Sequence[str], name: str) -> Iterable[str]:
    """Those that would stand beside it: they share more of their beginning with it than any other."""
    at = bisect_left(names, name)
    return names[max(0, at - MOST_BESIDE // 4) : at + MOST_BESIDE // 4]


def _has_in_order(path: str, pieces: Iterable[str]) -> bool:
    """What any match needs, and quickly seen."""
    closed, at = f"{path}/", 0
    for piece in pieces:
        found = closed.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


@lru_cache(maxsize=1024)
def _pieces(pattern: str) -> tuple[str, ...]:
    """What stands between the wildcards. A pattern also covers what is below: its end is that of a name."""
    bare = pattern.removeprefix("./").rstrip("/")
    return () if bare in ("", ".") else tuple(_WILD.split(f"{bare}/"))


def _differ_by_number(one: str, other: str) -> bool:
    """`0002_users.py` is not meant by `0001_users.py`."""
    return one.translate(_WITHOUT_DIGITS) == other.translate(_WITHOUT_DIGITS)


_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")
