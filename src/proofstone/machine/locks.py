"""One process drives a run; the lock is free again when that process has ended, however it ended.

Slots shared by all runs with the same state directory: heavy checks of several runs do not starve each other.

A slot is a lock on a file, so it is free again when its holder dies, however it dies. Whoever waits stands at one
turnstile, which the kernel hands on in order: first come, first served. The files lie in the state directory, which
only its owner can enter: in a folder for temporary files another user could take their names and stop every check.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from proofstone.errors import InputError, MachineError

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


_SLOTS_PAUSE = 0.05


class Slots:
    def __init__(self, count: int, folder: Path) -> None:
        self._count = count or os.cpu_count() or 1
        self._folder = folder

    @contextmanager
    def taken(self, cancel: threading.Event) -> Iterator[None]:
        """Hold a slot; waits for one, unless the run is cancelled."""
        slot = self._wait(cancel)
        try:
            yield
        finally:
            if slot:
                slot.close()

    def _wait(self, cancel: threading.Event) -> IO[bytes] | None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._open("turnstile") as turnstile:
            while not _try(turnstile):
                if cancel.wait(_SLOTS_PAUSE):
                    return None
            while not cancel.is_set():
                for number in range(self._count):
                    slot = self._open(f"slot-{number}")
                    if _try(slot):
                        return slot
                    slot.close()
                cancel.wait(_SLOTS_PAUSE)
        return None

    def _open(self, name: str) -> IO[bytes]:
        """A lock needs no right to write: a file that root made, working in somebody's state directory, serves too."""
        path = self._folder / name
        flags = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            try:
                return os.fdopen(os.open(path, os.O_RDWR | flags, 0o644), "r+b", buffering=0)
            except PermissionError:
                return os.fdopen(os.open(path, os.O_RDONLY | flags, 0o644), "rb", buffering=0)
        except OSError as error:
            raise MachineError(
                f"{path}: cannot be opened: {error.strerror}",
                hint=f"remove {self._folder} if it belongs to another user, or set PROOFSTONE_HOME to a folder "
                f"of your own",
            ) from error


def _try(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
