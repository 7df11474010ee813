"""Limits on memory and processes by control group, where the machine lets us have one.

Rlimits are no substitute: RLIMIT_NPROC counts per user and RLIMIT_AS breaks programs that reserve address space.
Both versions of control groups are spoken; without either the run is watched instead.

Limits that the engine enforces by measuring: disk always, memory and processes where there is no control group.

A measurement comes twice a second, so a check can exceed a limit for a moment before it is ended. What is cheap is
asked first: files are only counted when the file system has lost as much room as the check may use, or now and then,
in case somebody else has freed room meanwhile.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proofstone.sandbox.job import Limits

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


_EVERY_SECONDS = 0.5
_COUNT_FILES_EVERY_SECONDS = 30.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


class Watch:
    """Measures one job. `exceeded` says which limit it has passed."""

    def __init__(self, limits: Limits, leader: int, folders: Sequence[Path], *, has_group: bool) -> None:
        self._limits = limits
        self._leader = leader
        self._folders = [folder for folder in folders if folder.is_dir()]
        self._has_group = has_group
        self._next = 0.0
        self._next_count = 0.0
        self._before = 0 if has_group else _count_processes()
        self._free = self._free_bytes()
        self._used, _ = _used_bytes(self._folders[1:])

    def exceeded(self, now: float) -> str:
        """Return the limit that was passed, in words; empty if none was, or if it is too early to measure again."""
        if now < self._next:
            return ""
        self._next = now + _EVERY_SECONDS
        return self._processes() or self._memory() or self._disk(now)

    def _processes(self) -> str:
        most = self._limits.processes
        if self._has_group or _count_processes() <= self._before + most:
            return ""
        return f"more than {most} processes"

    def _memory(self) -> str:
        most = self._limits.memory_mb << 20
        if self._has_group or not most:
            return ""
        members = descendants(self._leader)
        if sum(map(_resident_bytes, members)) <= most or sum(map(_share_bytes, members)) <= most:
            return ""
        return f"the memory limit of {self._limits.memory_mb} MiB"

    def _disk(self, now: float) -> str:
        most = self._limits.disk_mb << 20
        if not most or not self._folders:
            return ""
        lost = self._free - self._free_bytes()
        if lost <= most and now < self._next_count:
            return ""
        self._next_count = now + _COUNT_FILES_EVERY_SECONDS
        used, is_complete = _used_bytes(self._folders)
        if used - self._used > most or (not is_complete and lost > most):
            return f"the disk limit of {self._limits.disk_mb} MiB"
        return ""

    def _free_bytes(self) -> int:
        if not self._folders:
            return 0
        room = os.statvfs(self._folders[0])
        return room.f_bavail * room.f_frsize


def _count_processes() -> int:
    return sum(path.name.isdigit() for path in _PROC.iterdir()) if (_PROC / "self").exists() else 0


def descendants(leader: int) -> list[int]:
    """Return the process and everything below it, found by parent."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, waiting = [leader], [leader]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir() if _PROC.is_dir() else ():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            yield int(folder.name), int(fields[1])


def _resident_bytes(pid: int) -> int:
    """Return what the process has in memory, pages that it shares with others included."""
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _share_bytes(pid: int) -> int:
    """Return the process's share of the memory that it uses; what it has resident where the kernel does not tell."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return _resident_bytes(pid)
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def _used_bytes(folders: Sequence[Path]) -> tuple[int, bool]:
    """Return what the folders take on disk, and whether all of it could be counted."""
    total, is_complete, waiting = 0, True, [str(folder) for folder in folders]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            is_complete = False
    return total, is_complete
