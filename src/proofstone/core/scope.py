"""Which paths a set of declared patterns covers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proofstone.core.globs import matches as covers

__all__ = ["covers", "undeclared"]


def undeclared(paths: Iterable[str], declared: Sequence[str]) -> tuple[str, ...]:
    """The paths that no declared pattern covers."""
    return tuple(path for path in paths if not any(covers(pattern, path) for pattern in declared))


_GLOB = frozenset("*?")


def overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether a file may be covered by both. In doubt, yes."""
    return any(_meet(one, other) for one in some for other in others)


def _meet(one: str, other: str) -> bool:
    if covers(one, other) or covers(other, one):
        return True
    if not (_GLOB & set(one)) and not (_GLOB & set(other)):
        return False
    first, second = _fixed(one), _fixed(other)
    return first.startswith(second) or second.startswith(first)


def _fixed(pattern: str) -> str:
    """What comes before the first wildcard."""
    cut = min((pattern.find(mark) for mark in _GLOB if mark in pattern), default=len(pattern))
    return pattern[:cut]
