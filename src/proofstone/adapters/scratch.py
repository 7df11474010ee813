"""Scratch folders of a run: gone when the run ends, and swept by the next run if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder(home: Path, run_id: str) -> Iterator[Path]:
    """`home/scratch/<run>`, held by a lock for as long as the run lives."""
    parent = home / "scratch"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = parent / run_id
    with (parent / "lock").open("w") as gate:
        # Held while sweeping and while making our own, so that nobody sweeps a folder that is not locked yet.
        fcntl.flock(gate, fcntl.LOCK_EX)
        _sweep(parent)
        folder.mkdir(mode=0o700)
        lock = (folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        try:
            yield folder
        finally:
            remove(folder)


def _sweep(parent: Path) -> None:
    """Remove what killed runs left: their locks are free."""
    for folder in parent.iterdir():
        if not folder.is_dir():
            continue
        try:
            lock = (folder / "lock").open("r+")
        except OSError:  # no lock, or something else in its place: nobody holds it
            remove(folder)
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            remove(folder)


def remove(folder: Path) -> None:
    """Delete a tree, also where a check or overlayfs took its permissions away."""

    def retry(function: object, path: str, _error: object) -> None:
        parent = os.path.dirname(path)  # noqa: PTH120  shutil speaks in strings
        for place in (parent, path):
            if os.path.lexists(place) and not stat.S_ISLNK(os.lstat(place).st_mode):
                os.chmod(place, 0o700)  # noqa: PTH101
        if os.path.isdir(path):  # noqa: PTH112
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)

    try:
        if sys.version_info >= (3, 12):
            shutil.rmtree(folder, onexc=retry)
        else:
            shutil.rmtree(folder, onerror=retry)
    except (RecursionError, OSError):
        # Folders nested deeper than Python or a path can go: rm walks them one by one.
        subprocess.run(["rm", "-rf", "--", folder], check=True)
