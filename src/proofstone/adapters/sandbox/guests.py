"""What stands in a work tree only while something runs there: mount points, links to dependencies, included files.

A check's checkout is thrown away with all of them; an executor's work tree is kept and frozen afterwards, and must
then hold nothing that the engine put there. Whoever works there may have turned any folder into a link, so nothing
is ever made or removed through one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proofstone.adapters.sandbox.job import View
from proofstone.adapters.scratch import remove


@contextmanager
def mount_points(view: View) -> Iterator[None]:
    """The sandbox makes a file or folder wherever it mounts something: those are removed again."""
    seen_at = (*view.dependencies, *(bind.at for bind in view.includes), *view.sockets)
    with _guests(view, [*seen_at, *(path.resolve() for path in view.masked)]):
        yield


@contextmanager
def linked(view: View) -> Iterator[None]:
    """Dependencies as links and included files as copies, where the work tree has nothing of that name."""
    with _guests(view, [*view.dependencies, *(bind.at for bind in view.includes)]) as absent:
        for folder in view.dependencies:
            if at := _made_room(view, folder, absent):
                at.symlink_to(folder)
        for bind in view.includes:
            if at := _made_room(view, bind.at, absent):
                shutil.copyfile(bind.source, at)
        yield


@contextmanager
def _guests(view: View, paths: list[Path]) -> Iterator[frozenset[Path]]:
    """Yields those of `paths` that the work tree does not have, and sees to it that it does not have them later."""
    inside = [path for path in paths if path.is_relative_to(view.root) and path != view.root]
    for path in inside:
        _forget_link(view, path)
    absent = frozenset(path for path in inside if not os.path.lexists(_there(view, path)))
    folders = {folder for path in absent for folder in _missing_parents(view, path)}
    try:
        yield absent
    finally:
        for path in absent:
            _clear(view, _there(view, path))
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            if _is_own(view, folder) and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _work_tree(view: View) -> Path:
    if view.work_tree is None:
        raise AssertionError("only a work tree has guests")
    return view.work_tree


def _there(view: View, path: Path) -> Path:
    """Where a path of the repository is in the work tree."""
    return _work_tree(view) / path.relative_to(view.root)


def _forget_link(view: View, path: Path) -> None:
    """A link that an interrupted run left behind."""
    at = _there(view, path)
    if _is_own(view, at) and at.is_symlink() and at.readlink() == path:
        at.unlink()


def _missing_parents(view: View, path: Path) -> Iterator[Path]:
    at = _there(view, path).parent
    while at != _work_tree(view) and not os.path.lexists(at):
        yield at
        at = at.parent


def _made_room(view: View, path: Path, absent: frozenset[Path]) -> Path | None:
    """Where a guest goes, with the folders above it; None where there is no room for one."""
    at = _there(view, path) if path in absent else None
    if at is None or not _is_own(view, at) or any(above.is_file() for above in at.parents):
        return None
    at.parent.mkdir(parents=True, exist_ok=True)
    return at


def _is_own(view: View, path: Path) -> bool:
    """Whether the path is in the work tree without a link on the way."""
    top = _work_tree(view)
    return Path(os.path.realpath(path.parent)) == Path(os.path.realpath(top)) / path.parent.relative_to(top)


def _clear(view: View, path: Path) -> None:
    if not os.path.lexists(path) or not _is_own(view, path):
        return
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink()
