"""Sockets that programs of this machine listen on, by path: a network namespace of its own does not keep a check from
them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

_TABLE = Path("/proc/net/unix")


def open_sockets(root: Path, hidden: Sequence[Path], declared: Sequence[Path]) -> list[Path]:
    """The sockets that a check of the repository at `root` could reach by path. `hidden` are folders that it does not
    see; `declared` are the sockets, or folders of them, that it may use."""
    try:
        lines = os.fsdecode(_TABLE.read_bytes()).splitlines()[1:]
    except OSError:
        return []  # no such table: nothing can be known, and `proofstone prove` tries it
    named = {(cells[6], cells[7]) for line in lines if len(cells := line.split(maxsplit=7)) == 8}
    paths = {path for inode, name in named if not name.startswith("@") for path in _places(name, inode, root)}
    return sorted(path for path in paths if _is_socket(path) and not _below(path, (*hidden, *declared)))


def _places(name: str, inode: str, root: Path) -> list[Path]:
    """Where a socket of that name may lie. The kernel keeps a name as it was given: one that is relative is looked for
    where its owners stand, and around the repository."""
    if name.startswith("/"):
        return [Path(name)]
    return [folder / name for folder in (*_owners_folders(inode), root, *root.parents)]


def _owners_folders(inode: str) -> list[Path]:
    """The working directories of the processes that hold the socket."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            held = process.name.isdigit() and any(
                fd.readlink().name == f"socket:[{inode}]" for fd in (process / "fd").iterdir()
            )
            found += [(process / "cwd").readlink()] if held else []
        except OSError:
            continue  # it has ended, or is another user's
    return found


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False  # gone, or in a place that nobody here sees


def _below(path: Path, folders: Sequence[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(folder.resolve()) for folder in folders)
