"""What a run must not leave behind on the machine."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def running(*words: str) -> list[int]:
    """Processes whose command line begins with these words, wherever they are."""
    wanted = [word.encode() for word in words]
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if file.read_bytes().split(b"\0")[: len(wanted)] == wanted:
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


def control_groups(process: int) -> list[Path]:
    """Groups that this run of Proofstone made and did not remove."""
    # Those of other tests come and go meanwhile; a walk does not mind.
    found = ((folder, name) for folder, names, _ in os.walk(CGROUPS) for name in names)
    return [Path(folder, name) for folder, name in found if name.startswith(f"proofstone-{process}-")]


def family_of(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
    family = [pid]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def mounts_below(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {folder}" in line]


def groups_of_the_dead() -> list[Path]:
    """Control groups of Proofstone processes that are no more, where what this process starts makes its own.

    Groups elsewhere are strangers': what another session's killed engine left says nothing about ours.
    """
    found = [group for parent in _own_groups() for group in parent.glob("proofstone-*-*")]
    return [group for group in found if not Path("/proc", group.name.split("-")[1]).exists()]


def _own_groups() -> set[Path]:
    """The groups in which this process stands, and those above: one of them is the parent of any that it makes."""
    found: set[Path] = set()
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            own = CGROUPS / controller / path.lstrip("/")
            found |= {at for at in (own, *own.parents) if at.is_relative_to(CGROUPS)}
    return found


@contextmanager
def greeting(family: socket.AddressFamily, address: str | tuple[str, int]) -> Iterator[socket.socket]:
    """A server at this address, for as long as the block lasts."""
    with socket.socket(family) as server:
        server.bind(address)
        server.listen()
        thread = threading.Thread(target=_greet, args=(server,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _greet(server: socket.socket) -> None:
    while True:
        try:
            visitor, _ = server.accept()
        except OSError:
            return
        with visitor:
            visitor.sendall(b"hello")


@contextmanager
def tcp_service() -> Iterator[int]:
    with greeting(socket.AF_INET, ("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the machine that has nothing to do with any check."""
    with subprocess.Popen(["sleep", "600"], env={"SECRET_OF_ANOTHER": "visible"}) as process:
        try:
            yield process
        finally:
            process.kill()
