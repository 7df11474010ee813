"""What a program may change of a login folder that it shares with the person: what it renews, and nothing else.

A folder can only be shared as a whole, since a login is renewed by putting a new file in the place of the old one. So
everything else in it is covered for the time of the run: a file by a copy, which the program may do with as it likes, a
folder or a database by an empty one, and what decides the next start is read-only (`home.py`). What nobody has covered,
because it was not there, is found afterwards (`startup.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from proofstone.adapters.sandbox.job import OwnHome

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
