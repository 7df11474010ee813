"""One process drives a run; the lock is free again when that process has ended, however it ended."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proofstone.errors import InputError

_TRIES, _PAUSE = 10, 0.05


class RunHeldError(InputError):
    """Another process drives the run."""


@contextmanager
def held(home: Path, run_id: str) -> Iterator[None]:
    folder = home / "runs"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / f"{run_id}.lock").open("w") as lock:
        for patience in range(_TRIES):  # somebody may just be looking
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if patience == _TRIES - 1:
                    raise RunHeldError(
                        f"{run_id}: another process is at work on it",
                        hint=f"`proofstone status {run_id}` shows how far it is",
                    ) from None
                time.sleep(_PAUSE)
        yield


def is_held(home: Path, run_id: str) -> bool:
    lock = home / "runs" / f"{run_id}.lock"
    if not lock.is_file():
        return False
    with lock.open() as file:  # for reading: also where nothing can be written
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
