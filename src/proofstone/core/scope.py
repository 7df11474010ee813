"""Which paths a set of declared patterns covers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proofstone.core.globs import matches as covers

__all__ = ["covers", "undeclared"]


def undeclared(paths: Iterable[str], declared: Sequence[str]) -> tuple[str, ...]:
    """The paths that no declared pattern covers."""
    return tuple(path for path in paths if not any(covers(pattern, path) for pattern in declared))
