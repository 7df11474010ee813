"""The files of the base commit, as a plan may speak of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cached_property
from itertools import accumulate

from assay.core.globs import matches
from assay.core.risk import is_test

_AS_GOOD_AS = 0.9
"""`pars.py` for `parse.py`, but not `cart.py` for `card.py`."""


class Tree:
    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)

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
        folder, _, name = path.rpartition("/")
        if is_test(path) or is_pattern(path):
            return None
        close = [other for other in self._names.get(folder, ()) if abs(len(other) - len(name)) <= 2]
        alike = get_close_matches(name, [one for one in close if not _differ_by_number(one, name)], 1, _AS_GOOD_AS)
        if alike:
            return f"{folder}/{alike[0]}" if folder else alike[0]
        return None if self.has_folder_of(path) else self._from_another_root(path)

    def _from_another_root(self, path: str) -> str | None:
        """`shop/cart.py` for `src/shop/cart.py`, or the other way round."""
        shorter = next((one for one in _endings(path) if "/" in one and one in self._paths), None)
        return shorter or self._endings.get(path)

    def _is_matched(self, pattern: str) -> bool:
        begins = pattern.partition("*")[0].partition("?")[0]
        return begins != pattern and any(one.startswith(begins) and matches(pattern, one) for one in self._paths)

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(folder for path in self._paths for folder in folders_of(path))

    @cached_property
    def _endings(self) -> dict[str, str]:
        """By its last parts: a path."""
        whole = sorted((*self._paths, *self._folders))
        return {ending: path for path in whole for ending in _endings(path)}

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, []).append(name)
        return found


def is_pattern(path: str) -> bool:
    """Whether it covers more than one file: a folder with its slash, or a glob."""
    return path.endswith("/") or "*" in path or "?" in path


def uncovered(paths: Iterable[str], declared: Iterable[str]) -> tuple[str, ...]:
    """The paths that nothing declared covers, each once."""
    known = frozenset(declared)
    left = [path for path in dict.fromkeys(paths) if path not in known]
    for pattern in sorted(one for one in known if is_pattern(one)):
        left = [path for path in left if not matches(pattern, path)]
    return tuple(left)


def covers_any(patterns: Iterable[str], path: str) -> bool:
    """Whether one of the declared patterns covers the path."""
    return any(matches(pattern, path) for pattern in patterns)


def folders_of(path: str) -> Iterable[str]:
    """`a` and `a/b` of `a/b/c.py`."""
    return accumulate(path.rstrip("/").split("/")[:-1], "{}/{}".format)


def _endings(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[at:]) for at in range(1, len(parts)))


def _differ_by_number(one: str, other: str) -> bool:
    """`0002_users.py` is not meant by `0001_users.py`."""
    return one.translate(_WITHOUT_DIGITS) == other.translate(_WITHOUT_DIGITS)


_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")
