"""Limit what a program may change in a login folder that it shares with the user: what it renews, and nothing else.

A folder can only be shared as a whole, because a login is renewed by replacing its file with a new one. So everything
else in it is covered during the run: a file by a copy, which the program may change freely, a folder or a database by
an empty one. Files that decide the next start are read-only (`mounts.py`). Files that did not exist before, and so
could not be covered, are found afterwards (`login_guard.py`).

This module also makes the guard's copies, and tells whether a file or folder has changed.
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

from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import PrivateHome

_MAX_COPY_BYTES = 16 << 20
"""The maximum size of a file that is copied, in bytes; a larger file is covered by an empty one."""
_DATABASES = ("*.db", "*.db-*", "*.sqlite*")
"""Databases are not copied: a copy made while a program writes would be broken."""


def may_change(own: PrivateHome, path: str) -> bool:
    """Return whether the program renews this path, relative to the new HOME. Without patterns it may
    change all paths.
    """
    return own.renewable is None or any(fnmatchcase(path, pattern) for pattern in own.renewable)


def create_covers(own: PrivateHome, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Create the covers in `folder`. Yield each cover, and the path of the covered file relative to the new HOME."""
    protected = [Path(path) for _, path in own.read_only]
    for number, (source, at) in enumerate(_list_children(own)):
        if may_change(own, at.as_posix()) or any(path.is_relative_to(at) for path in protected) or source.is_symlink():
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
    is_database = any(fnmatchcase(source.name, pattern) for pattern in _DATABASES)
    if is_database or source.stat().st_size > _MAX_COPY_BYTES:
        cover.touch(mode=0o600)
    else:
        shutil.copy2(source, cover)


def _list_children(private_home: PrivateHome) -> Iterator[tuple[Path, Path]]:
    if private_home.renewable is None:
        return
    for source, at in private_home.shared:
        for child in sorted(source.iterdir()) if source.is_dir() else ():
            yield child, Path(at) / child.name


_BLOCK_BYTES = 4096


def measure(path: Path) -> tuple[str, int]:
    """Return a mark that changes with the content at the path, and the disk space of a copy."""
    digest, size = hashlib.sha256(), 0
    pending = [path]
    while pending:
        current = pending.pop()
        status = current.lstat()
        facts: tuple[int, ...] = (status.st_ino, status.st_mode)
        facts += () if stat.S_ISDIR(status.st_mode) else (status.st_size, status.st_mtime_ns)
        digest.update(os.fsencode(current.relative_to(path)) + repr(facts).encode())
        size += max(status.st_size, _BLOCK_BYTES)
        if stat.S_ISDIR(status.st_mode):
            pending += sorted(current.iterdir())
    return digest.hexdigest(), size


def try_copy(path: Path, to: Path) -> bool:
    """Try to copy, and return whether there is a copy now. If the original cannot be read, its mark must suffice."""
    to.parent.mkdir(mode=0o700, exist_ok=True)
    clear_path(to)  # an incomplete copy of a killed run
    try:
        copy_path(path, to)
    except OSError:
        clear_path(to)
        return False
    return True


def copy_path(path: Path, to: Path) -> None:
    """Copy a file or a folder."""
    if path.is_dir():
        shutil.copytree(path, to, symlinks=True, ignore=lambda folder, _: find_special_files(Path(folder)))
    else:
        shutil.copy2(path, to)


def clear_path(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)


def find_special_files(folder: Path) -> set[str]:
    """Return the pipes and sockets in a folder: they have no content and cannot be copied."""
    return {path.name for path in folder.iterdir() if not (path.is_symlink() or path.is_file() or path.is_dir())}


def is_same_as_copy(copy: Path, path: Path) -> bool:
    """Return whether the path still equals its copy. Only the content of the copy is read, so a program cannot make
    this slow.
    """
    if not os.path.lexists(path) or copy.lstat().st_mode != path.lstat().st_mode:
        return False
    if copy.is_symlink():
        return copy.readlink() == path.readlink()
    if copy.is_file():
        return filecmp.cmp(copy, path, shallow=False)
    names = {child.name for child in copy.iterdir()}
    return names == {child.name for child in path.iterdir()} - find_special_files(path) and all(
        is_same_as_copy(copy / name, path / name) for name in names
    )
