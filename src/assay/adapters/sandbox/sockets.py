"""Sockets that programs of this machine listen on, by path: a network namespace of its own does not keep a check from
them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

_TABLE = Path("/proc/net/unix")


def open_sockets(hidden: Sequence[Path], declared: Sequence[Path]) -> list[Path]:
    """The sockets that could be reached by path. `hidden` are folders that a check does not see; `declared` are the
    sockets, or folders of them, that it may use."""
    try:
        lines = os.fsdecode(_TABLE.read_bytes()).splitlines()[1:]
    except OSError:
        return []  # no such table: nothing can be known, and `assay prove` tries it
    paths = {Path(cells[7]) for line in lines if len(cells := line.split(maxsplit=7)) == 8 and cells[7].startswith("/")}
    return sorted(path for path in paths if _is_socket(path) and not _below(path, (*hidden, *declared)))


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False  # gone, or in a place that nobody here sees


def _below(path: Path, folders: Sequence[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(folder.resolve()) for folder in folders)
