"""Slots shared by all runs on the machine: heavy checks of several runs do not starve each other.

A slot is a lock on a file, so it is free again when its holder dies, however it dies. Whoever waits stands at one
turnstile, which the kernel hands on in order: first come, first served.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from assay.errors import MachineError

_PAUSE = 0.05


class Slots:
    def __init__(self, count: int, folder: Path | None = None) -> None:
        self._count = count or os.cpu_count() or 1
        self._folder = folder or _shared_folder()

    @contextmanager
    def taken(self, cancel: threading.Event) -> Iterator[None]:
        """Hold a slot; waits for one, unless the run is cancelled."""
        slot = self._wait(cancel)
        try:
            yield
        finally:
            if slot:
                slot.close()

    def _wait(self, cancel: threading.Event) -> IO[str] | None:
        with (self._folder / "turnstile").open("w") as turnstile:
            while not _try(turnstile):
                if cancel.wait(_PAUSE):
                    return None
            while not cancel.is_set():
                for number in range(self._count):
                    slot = (self._folder / f"slot-{number}").open("w")
                    if _try(slot):
                        return slot
                    slot.close()
                cancel.wait(_PAUSE)
        return None


def _try(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _shared_folder() -> Path:
    """One for all runs of this user, wherever their ASSAY_HOME is."""
    folder = Path(tempfile.gettempdir()) / f"assay-slots-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or folder.is_symlink():
        raise MachineError(f"{folder}: belongs to someone else", hint="remove it, or set TMPDIR to a folder of yours")
    return folder
