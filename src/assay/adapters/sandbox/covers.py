"""What a program may change of a login folder that it shares with the person: what it renews, and nothing else.

A folder can only be shared as a whole, since a login is renewed by putting a new file in the place of the old one. So
everything else in it is covered for the time of the run: a file by a copy, which the program may do with as it likes, a
folder by an empty one, and what decides the next start is read-only (`home.py`). What nobody has covered, because it
was not there, is found afterwards (`startup.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from assay.adapters.sandbox.job import OwnHome

_LARGEST = 64 << 20
"""Bytes of a file of which a copy is made; a larger one is read-only."""


def may_change(own: OwnHome, path: str) -> bool:
    """Whether a path from the new HOME is of those that the program renews. Without patterns all of it is."""
    return own.renewed is None or any(fnmatchcase(path, pattern) for pattern in own.renewed)


def covers(own: OwnHome, folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """The words for what covers each thing, and where it is: `(--bind, what, path from the new HOME)`. Copies and empty
    folders are made in `folder`."""
    kept = [Path(path) for _, path in own.kept]
    for number, (source, at) in enumerate(_children(own)):
        if may_change(own, at.as_posix()) or any(path.is_relative_to(at) for path in kept) or source.is_symlink():
            continue
        cover = folder / str(number)
        cover.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            cover.mkdir()
            yield "--bind", cover, at
        elif source.is_file() and source.stat().st_size <= _LARGEST:
            shutil.copy2(source, cover)
            yield "--bind", cover, at
        elif source.is_file():
            yield "--ro-bind", source, at


def _children(own: OwnHome) -> Iterator[tuple[Path, Path]]:
    if own.renewed is None:
        return
    for source, at in own.shared:
        for child in sorted(source.iterdir()) if source.is_dir() else ():
            yield child, Path(at) / child.name
