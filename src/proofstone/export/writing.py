"""Files into somebody's folder: all of them or none, over nothing that is not ours, and through no link.

What is there already and the same is left alone. What differs is somebody's work until they say otherwise. Everything
is first written aside, in the same folder; then each file takes its place, and if one cannot, all go back.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.errors import InputError

_ASIDE: Final = ".proofstone-export-"
_MOST_NAMED: Final = 20


@dataclass(frozen=True)
class Written:
    """Paths from the root of the export, in its order."""

    new: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]


def write(root: Path, files: Mapping[str, str], *, force: bool) -> Written:
    """Write the files below the root, which is made if need be."""
    try:
        return _write(root, files, force=force)
    except OSError as error:
        where = error.filename or root
        raise InputError(
            f"{where}: {error.strerror}", hint="nothing was written; name a folder that you may write to"
        ) from error


def _write(root: Path, files: Mapping[str, str], *, force: bool) -> Written:
    if (root.exists() or root.is_symlink()) and not root.is_dir():
        raise InputError(f"{root} is no folder", hint="name the folder that the files shall go to")
    for path in files:
        _refuse_traps(root, path)
    there = {path: (root / path).read_bytes() for path in files if (root / path).is_file()}
    differing = [path for path, content in there.items() if content != files[path].encode()]
    if differing and not force:
        raise _differs(root, differing)
    unchanged = tuple(path for path in there if path not in differing)
    new = tuple(path for path in files if path not in there)
    _put(root, {path: files[path] for path in files if path not in unchanged}, replaced=differing)
    return Written(new, tuple(differing), unchanged)


def _refuse_traps(root: Path, path: str) -> None:
    """A link would lead us out of the folder; a folder where a file belongs, or the reverse, is in the way."""
    target = root / path
    for place in (target, *(parent for parent in target.parents if parent.is_relative_to(root) and parent != root)):
        if place.is_symlink():
            raise InputError(
                f"{place} is a symbolic link, and nothing is written through one",
                hint="remove it, or name another folder",
            )
        expected = place.is_file() if place == target else place.is_dir()
        if place.exists() and not expected:
            what = "no regular file" if place == target else "no folder"
            raise InputError(f"{place} is {what}, and is in the way", hint="move it, or name another folder")


def _differs(root: Path, paths: list[str]) -> InputError:
    more = len(paths) - _MOST_NAMED
    named = "\n".join((*paths[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])))
    return InputError(
        f"{root} has files of these names that differ; nothing was written:\n{named}",
        hint="--force replaces them; or name another folder, and take over what you want",
    )


def _put(root: Path, files: Mapping[str, str], *, replaced: list[str]) -> None:
    if not files:
        return
    with ExitStack() as made:
        _make(root, made)
        with tempfile.TemporaryDirectory(prefix=_ASIDE, dir=root) as name, ExitStack() as undo:
            aside = Path(name)
            for number, text in enumerate(files.values()):
                (aside / f"new-{number}").write_text(text, encoding="utf-8", newline="\n")
            for number, path in enumerate(files):
                _swap(aside / f"new-{number}", root / path, aside / f"old-{number}" if path in replaced else None, undo)
            undo.pop_all()
        made.pop_all()


def _swap(new: Path, target: Path, kept: Path | None, undo: ExitStack) -> None:
    """The new file into its place. What was there is kept until everything has found its own."""
    _make(target.parent, undo)
    if kept is not None:
        shutil.copy2(target, kept)
        shutil.copymode(target, new)
    new.replace(target)
    if kept is not None:
        undo.callback(kept.replace, target)
    else:
        undo.callback(target.unlink)


def _make(folder: Path, undo: ExitStack) -> None:
    """The folder, and those on the way to it; each goes again if it all comes to nothing."""
    for place in reversed((folder, *folder.parents)):
        if not place.exists():
            place.mkdir()
            undo.callback(place.rmdir)
