"""Limits on memory and processes by control group, where the machine lets us have one.

Rlimits are no substitute: RLIMIT_NPROC counts per user and RLIMIT_AS breaks programs that reserve address space.
Both versions of control groups are spoken; without either the run is watched instead.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Group:
    """One control group (version 2), or one in each hierarchy (version 1)."""

    folders: tuple[Path, ...]

    @property
    def procs(self) -> tuple[str, ...]:
        """Files into which the launcher writes its own pid."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def exceeded(self) -> str:
        """The limit that the kernel enforced, in words."""
        for folder in self.folders:
            if _counter(folder / "memory.events", "oom_kill") or _counter(folder / "memory.oom_control", "oom_kill"):
                return "the memory limit"
        return ""

    def close(self) -> None:
        """Kill whatever is still in it and remove it."""
        for _ in range(100):
            if not self._kill():
                break
            time.sleep(0.02)
        for folder in self.folders:
            _remove(folder)

    def _kill(self) -> bool:
        alive = False
        for folder in self.folders:
            for pid in _members(folder):
                alive = True
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        return alive


@contextmanager
def limited(memory_mb: int, processes: int) -> Iterator[Group | None]:
    """A group that is gone afterwards, whatever happens; None where we may not have one."""
    group = make_group(memory_mb, processes)
    try:
        yield group
    finally:
        if group:
            group.close()


def make_group(memory_mb: int, processes: int) -> Group | None:
    """A new group with these limits (0: none), or None where we may not have one."""
    name = f"proofstone-{os.getpid()}-{secrets.token_hex(4)}"
    unified = (MOUNT / "cgroup.controllers").is_file()
    try:
        return _version_2(name, memory_mb, processes) if unified else _version_1(name, memory_mb, processes)
    except OSError:
        return None  # not ours to have: read-only, not delegated, or not mounted


def _own_paths() -> dict[str, str]:
    """Controller → path of our own group; version 2 under the empty name."""
    paths: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _version_2(name: str, memory_mb: int, processes: int) -> Group | None:
    own = MOUNT / _own_paths().get("", "/").lstrip("/")
    for parent in (own, *own.parents):
        if not parent.is_relative_to(MOUNT):
            break
        enabled = (parent / "cgroup.subtree_control").read_text().split()
        if not {"pids", "memory"} <= set(enabled) or not os.access(parent / "cgroup.procs", os.W_OK):
            continue
        _sweep(parent)
        folder = parent / name
        folder.mkdir()
        _limit(folder / "pids.max", processes)
        _limit(folder / "memory.max", memory_mb << 20)
        return Group((folder,))
    return None


def _version_1(name: str, memory_mb: int, processes: int) -> Group | None:
    own = _own_paths()
    made: list[Path] = []
    limits = (("pids", "pids.max", processes), ("memory", "memory.limit_in_bytes", memory_mb << 20))
    try:
        for controller, file, value in limits:
            parent = MOUNT / controller / own[controller].lstrip("/")
            _sweep(parent)
            folder = parent / name
            folder.mkdir()
            made.append(folder)
            _limit(folder / file, value)
    except (OSError, KeyError):
        for folder in made:
            _remove(folder)
        return None
    return Group(tuple(made))


def _sweep(parent: Path) -> None:
    """Remove the groups of engines that were killed. One that is not empty stays: the kernel refuses."""
    for folder in parent.glob("proofstone-*-*"):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with suppress(OSError):
                folder.rmdir()


def _limit(file: Path, value: int) -> None:
    if value:
        file.write_text(str(value))


def _members(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []


def _counter(file: Path, name: str) -> int:
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)


def _remove(folder: Path) -> None:
    for _ in range(50):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)  # the kernel lets go of the last process a moment later
        else:
            return
