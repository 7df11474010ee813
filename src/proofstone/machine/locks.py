"""Locks between processes: one for each run, and slots that all runs share.

One process drives a run. Its lock is free again when that process ends, however it ends.

Slots are shared by all runs with the same state directory, so that heavy checks of several runs do not starve each
other. A slot is a file lock, so it is free again when its holder dies. Waiting processes queue at one more lock, the
turnstile, which the kernel passes on in order of arrival. The files are in the state directory, which only its owner
can enter: in a folder for temporary files another user could take their names and block every check.
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

_ATTEMPTS, _PAUSE = 10, 0.05


class RunLockedError(InputError):
    """Another process drives the run."""


@contextmanager
def lock_run(home: Path, run_id: str, *, keep: bool = True) -> Iterator[None]:
    """Hold the lock of a run. Raise `RunLockedError` if another process holds it.

    The lock file holds the process id, so that another process can ask this one to stop. Without `keep` the file is
    removed afterwards, for a run that is never resumed.
    """
    folder = home / "runs"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / f"{run_id}.lock").open("a+") as lock:
        for attempt in range(_ATTEMPTS):  # another process may only be reading the status
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == _ATTEMPTS - 1:
                    raise RunLockedError(
                        f"{run_id}: another process is working on this run",
                        hint=f"`proofstone status {run_id}` shows its progress",
                    ) from None
                time.sleep(_PAUSE)
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        try:
            yield
        finally:
            lock.truncate(0)
            if not keep:
                (folder / f"{run_id}.lock").unlink(missing_ok=True)


def find_lock_holder(home: Path, run_id: str) -> int | None:
    """Return the id of the process that holds the lock of the run; None if no process does."""
    if not is_run_locked(home, run_id):
        return None
    text = (home / "runs" / f"{run_id}.lock").read_text(encoding="ascii", errors="replace").strip()
    return int(text) if text.isdecimal() else None


def is_run_locked(home: Path, run_id: str) -> bool:
    """Return whether a process holds the lock of the run."""
    lock = home / "runs" / f"{run_id}.lock"
    if not lock.is_file():
        return False
    with lock.open() as file:  # open for reading: that works in a read-only folder too
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


_SLOTS_PAUSE = 0.05


class CheckSlots:
    """A number of slots for heavy checks; 0 means one for each CPU."""

    def __init__(self, count: int, folder: Path) -> None:
        self._count = count or os.cpu_count() or 1
        self._folder = folder

    @contextmanager
    def acquire(self, cancel: threading.Event) -> Iterator[None]:
        """Hold a slot. Wait for one, unless the run is cancelled."""
        slot = self._wait_for_slot(cancel)
        try:
            yield
        finally:
            if slot:
                slot.close()

    def _wait_for_slot(self, cancel: threading.Event) -> IO[bytes] | None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._open_lock_file("turnstile") as turnstile:
            while not _try_lock(turnstile):
                if cancel.wait(_SLOTS_PAUSE):
                    return None
            while not cancel.is_set():
                for number in range(self._count):
                    slot = self._open_lock_file(f"slot-{number}")
                    if _try_lock(slot):
                        return slot
                    slot.close()
                cancel.wait(_SLOTS_PAUSE)
        return None

    def _open_lock_file(self, name: str) -> IO[bytes]:
        """Open a lock file.

        A lock needs no write permission, so a file that root created in the user's state directory works too.
        """
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


def _try_lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
