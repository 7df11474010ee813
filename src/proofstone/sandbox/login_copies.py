"""What a program may change of a login folder that it shares with the person: what it renews, and nothing else.

A folder can only be shared as a whole, since a login is renewed by putting a new file in the place of the old one. So
everything else in it is covered for the time of the run: a file by a copy, which the program may do with as it likes, a
folder or a database by an empty one, and what decides the next start is read-only (`home.py`). What nobody has covered,
because it was not there, is found afterwards (`startup.py`).

Copies of what is kept, and how it is told whether something is still what it was.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from proofstone.machine.files import remove
from proofstone.sandbox.job import OwnHome

_LARGEST = 16 << 20
"""Bytes of a file of which a copy is made; in the place of a larger one stands an empty one."""
_DATABASES = ("*.db", "*.db-*", "*.sqlite*")
"""A copy of one that somebody is writing to would be a broken one."""


def may_change(own: OwnHome, path: str) -> bool:
    """Whether a path from the new HOME is of those that the program renews. Without patterns all of it is."""
    return own.renewed is None or any(fnmatchcase(path, pattern) for pattern in own.renewed)


def covers(own: OwnHome, folder: Path) -> Iterator[tuple[Path, Path]]:
    """What covers each thing, made in `folder`, and the path of that thing from the new HOME."""
    kept = [Path(path) for _, path in own.kept]
    for number, (source, at) in enumerate(_children(own)):
        if may_change(own, at.as_posix()) or any(path.is_relative_to(at) for path in kept) or source.is_symlink():
            continue
        cover = folder / str(number)
        cover.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            cover.mkdir()
            yield cover, at
        elif source.is_file():
            _cover_file(source, cover)
            yield cover, at


def _cover_file(source: Path, cover: Path) -> None:
    database = any(fnmatchcase(source.name, pattern) for pattern in _DATABASES)
    if database or source.stat().st_size > _LARGEST:
        cover.touch(mode=0o600)
    else:
        shutil.copy2(source, cover)


def _children(own: OwnHome) -> Iterator[tuple[Path, Path]]:
    if own.renewed is None:
        return
    for source, at in own.shared:
        for child in sorted(source.iterdir()) if source.is_dir() else ():
            yield child, Path(at) / child.name


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
