"""Copies of what is kept, and how it is told whether something is still what it was."""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import stat
from pathlib import Path

from proofstone.adapters.scratch import remove

_BLOCK = 4096


def measured(path: Path) -> tuple[str, int]:
    """A mark that changes with what is there, and how much room a copy would take."""
    state, size = hashlib.sha256(), 0
    pending = [path]
    while pending:
        at = pending.pop()
        found = at.lstat()
        facts: tuple[int, ...] = (found.st_ino, found.st_mode)
        facts += () if stat.S_ISDIR(found.st_mode) else (found.st_size, found.st_mtime_ns)
        state.update(os.fsencode(at.relative_to(path)) + repr(facts).encode())
        size += max(found.st_size, _BLOCK)
        if stat.S_ISDIR(found.st_mode):
            pending += sorted(at.iterdir())
    return state.hexdigest(), size


def copied(path: Path, to: Path) -> bool:
    """Whether there is a copy now. Of something that cannot be read there is none: its mark must do."""
    to.parent.mkdir(mode=0o700, exist_ok=True)
    clear(to)  # half of one, by somebody who was killed
    try:
        copy(path, to)
    except OSError:
        clear(to)
        return False
    return True


def copy(path: Path, to: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, to, symlinks=True, ignore=lambda folder, _: odd(Path(folder)))
    else:
        shutil.copy2(path, to)


def clear(path: Path) -> None:
    if path.is_dir():
        remove(path)
    else:
        path.unlink(missing_ok=True)


def odd(folder: Path) -> set[str]:
    """Pipes and sockets: they hold nothing, and cannot be copied."""
    return {path.name for path in folder.iterdir() if not (path.is_symlink() or path.is_file() or path.is_dir())}


def same(copy: Path, path: Path) -> bool:
    """Only what the copy has is looked into: a program cannot make this long."""
    if not os.path.lexists(path) or copy.lstat().st_mode != path.lstat().st_mode:
        return False
    if copy.is_symlink():
        return copy.readlink() == path.readlink()
    if copy.is_file():
        return filecmp.cmp(copy, path, shallow=False)
    names = {child.name for child in copy.iterdir()}
    return names == {child.name for child in path.iterdir()} - odd(path) and all(
        same(copy / name, path / name) for name in names
    )
