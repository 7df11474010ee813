"""Write exported files into a folder: all of them or none, without overwriting foreign files or following links.

Identical files are left alone. A file that differs counts as the user's work and is replaced only with `--force`. All
files are first written to a temporary folder next to their targets and then moved into place. If one move fails, all of
them are undone.
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

_TEMPORARY_PREFIX: Final = ".proofstone-export-"
_MAX_LISTED: Final = 20


@dataclass(frozen=True)
class ExportResult:
    """The paths of an export relative to its root, in their order."""

    new: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]


def write_exported_files(root: Path, files: Mapping[str, str], *, force: bool) -> ExportResult:
    """Write the files below the root, which is created if it does not exist."""
    try:
        return _write(root, files, force=force)
    except OSError as error:
        where = error.filename or root
        raise InputError(
            f"{where}: {error.strerror}", hint="nothing was written; choose a folder that you can write to"
        ) from error


def _write(root: Path, files: Mapping[str, str], *, force: bool) -> ExportResult:
    if (root.exists() or root.is_symlink()) and not root.is_dir():
        raise InputError(f"{root} is not a folder", hint="choose a folder for the exported files")
    for path in files:
        _refuse_obstacles(root, path)
    existing = {path: (root / path).read_bytes() for path in files if (root / path).is_file()}
    differing = [path for path, content in existing.items() if content != files[path].encode()]
    if differing and not force:
        raise _conflict_error(root, differing)
    unchanged = tuple(path for path in existing if path not in differing)
    new = tuple(path for path in files if path not in existing)
    _replace_files(root, {path: files[path] for path in files if path not in unchanged}, replaced=differing)
    return ExportResult(new, tuple(differing), unchanged)


def _refuse_obstacles(root: Path, path: str) -> None:
    """Refuse symbolic links, which would lead out of the folder, and folders in place of files or the reverse."""
    target = root / path
    for place in (target, *(parent for parent in target.parents if parent.is_relative_to(root) and parent != root)):
        if place.is_symlink():
            raise InputError(
                f"{place} is a symbolic link, and the export does not write through links",
                hint="remove it, or choose another folder",
            )
        is_expected = place.is_file() if place == target else place.is_dir()
        if place.exists() and not is_expected:
            problem = "not a regular file" if place == target else "not a folder"
            raise InputError(f"{place} is {problem}", hint="move it, or choose another folder")


def _conflict_error(root: Path, paths: list[str]) -> InputError:
    remaining = len(paths) - _MAX_LISTED
    listing = "\n".join((*paths[:_MAX_LISTED], *([f"and {remaining} more"] if remaining > 0 else [])))
    return InputError(
        f"{root} already contains different files with these names; nothing was written:\n{listing}",
        hint="use --force to replace them, or choose another folder and copy what you want",
    )


def _replace_files(root: Path, files: Mapping[str, str], *, replaced: list[str]) -> None:
    if not files:
        return
    with ExitStack() as made_folders:
        _make_folder(root, made_folders)
        with tempfile.TemporaryDirectory(prefix=_TEMPORARY_PREFIX, dir=root) as name, ExitStack() as undo:
            temporary = Path(name)
            for number, text in enumerate(files.values()):
                (temporary / f"new-{number}").write_text(text, encoding="utf-8", newline="\n")
            for number, path in enumerate(files):
                _swap(
                    temporary / f"new-{number}",
                    root / path,
                    temporary / f"old-{number}" if path in replaced else None,
                    undo,
                )
            undo.pop_all()
        made_folders.pop_all()


def _swap(new: Path, target: Path, backup: Path | None, undo: ExitStack) -> None:
    """Move the new file into place. A backup of the old file is kept until every file is in place."""
    _make_folder(target.parent, undo)
    if backup is not None:
        shutil.copy2(target, backup)
        shutil.copymode(target, new)
    new.replace(target)
    if backup is not None:
        undo.callback(backup.replace, target)
    else:
        undo.callback(target.unlink)


def _make_folder(folder: Path, undo: ExitStack) -> None:
    """Create the folder and its missing parents, and register their removal in case the export fails."""
    for place in reversed((folder, *folder.parents)):
        if not place.exists():
            place.mkdir()
            undo.callback(place.rmdir)
