"""What the prover puts on the machine for the attempts to find, and how it watches them from outside."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from proofstone.errors import MachineError

_ADD_KEY: Final = {"x86_64": 248, "aarch64": 217}
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}
_SESSION_KEYRING, _UNLINK = -3, 9
_CREATE_EXCLUSIVELY, _REMOVE = 0o3000, 0

_libc = ctypes.CDLL(None, use_errno=True)

_SERVICE: Final = """
import os, socket, sys
os.chdir(sys.argv[1])
server = socket.socket(socket.AF_UNIX)
server.bind("socket")
os.chmod("socket", 0o666)
server.listen()
print("listening", flush=True)
sys.stdin.read()
"""


@contextmanager
def service(parent: Path) -> Iterator[str]:
    """Keep a process that listens on a socket, open to every user, in a new folder; yields the folder. Whoever connects
    has reached it, also if nobody answers."""
    with tempfile.TemporaryDirectory(prefix="proofstone-", dir=parent) as folder:
        Path(folder).chmod(0o755)
        argv = [sys.executable, "-I", "-c", _SERVICE, folder]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                if process.stdout is None or not process.stdout.readline():
                    raise MachineError(f"no socket can be made in {parent}")
                yield folder
            finally:
                process.kill()


@contextmanager
def bystander(mark: str) -> Iterator[int]:
    """Keep a process of the machine that has this mark in its command line; yields its number."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextmanager
def session_key(name: str) -> Iterator[str]:
    """Keep a key of this name in our session keyring, which children inherit; yields nothing where that cannot be."""
    machine = os.uname().machine
    key = -1
    if machine in _ADD_KEY:
        key = _libc.syscall(_ADD_KEY[machine], b"user", name.encode(), b"secret", 6, _SESSION_KEYRING)
    try:
        yield name if key > 0 else ""
    finally:
        if key > 0:
            _libc.syscall(_KEYCTL[machine], _UNLINK, key, _SESSION_KEYRING)


@contextmanager
def shared_memory(name: str) -> Iterator[int]:
    """Keep a shared memory segment, open to every user; yields its key, 0 where that cannot be."""
    key = zlib.crc32(name.encode()) & 0x7FFFFFFF
    segment = _libc.shmget(key, ctypes.c_size_t(4096), _CREATE_EXCLUSIVELY | 0o666)
    try:
        yield key if segment >= 0 else 0
    finally:
        if segment >= 0:
            _libc.shmctl(segment, _REMOVE, None)


def find_processes(mark: str) -> list[int]:
    """Return the processes of the machine that have this mark in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue  # it has ended meanwhile
    return found


class UserWatch:
    """Looks, from outside, as which users the processes with a mark run, for as long as the block lasts."""

    def __init__(self, mark: str) -> None:
        self.users: set[int] = set()
        self._mark = mark
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> UserWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.1):
            for pid in find_processes(self._mark):
                try:
                    status = Path("/proc", str(pid), "status").read_text("utf-8", "replace")
                except OSError:
                    continue  # it has ended meanwhile
                line = next(line for line in status.splitlines() if line.startswith("Uid:"))
                self.users |= {int(user) for user in line.split()[1:]}
