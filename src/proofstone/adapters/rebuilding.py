"""State that can be rebuilt, put right where it is damaged: caches, indices, folders and locks.

Nothing here is evidence. Whatever stands in the way of rebuilding is removed, and a sentence about it is added to
`repairs`, for the person to read once. The ledger, its artifacts, keys and the journals of runs cannot be rebuilt, and
are never touched.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from proofstone.adapters.scratch import remove
from proofstone.errors import MachineError

_FOLDERS: Final = ("repos", "cache", "cache/results", "cache/bytecode", "environments", "scratch")
_FILES: Final = ("cache/sandbox.json", "cache/tidied", "cache/bytecode.lock", "scratch/lock")


def mend_state(home: Path) -> list[str]:
    """What of the state directory had to be put right, in words."""
    repairs: list[str] = []
    for name in _FOLDERS:
        if os.path.lexists(home / name):
            ensure_folder(home / name, repairs)
    for name in _FILES:
        ensure_place_for_file(home / name, repairs)
    return repairs


def ensure_folder(path: Path, repairs: list[str]) -> None:
    """A folder that we may use stands here afterwards; whatever else stood here is gone."""
    if not path.is_dir() and os.path.lexists(path):
        discard(path)
        repairs.append(f"{path} was no folder; it was made anew")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        _allow(path, 0o700)
        repairs.append(f"{path} could not be used; its permissions were put right")


def ensure_place_for_file(path: Path, repairs: list[str]) -> None:
    """Nothing stands here afterwards but a file of ours that can be read and written, or nothing at all."""
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        discard(path)
        repairs.append(f"{path} was no file; it was removed")
    elif not os.access(path, os.R_OK | os.W_OK):
        _allow(path, 0o600)
        repairs.append(f"{path} could not be read; its permissions were put right")


def discard(path: Path) -> None:
    """Remove a file, a link or a whole folder."""
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink(missing_ok=True)


def _allow(path: Path, mode: int) -> None:
    try:
        path.chmod(mode)
    except OSError as error:
        raise MachineError(
            f"{path}: cannot be used ({error.strerror})", hint="it must belong to you: remove it, and it is made anew"
        ) from error
