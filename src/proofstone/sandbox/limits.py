"""Limit the memory, processes and disk space of a job.

*Control groups* limit memory and processes, where the machine allows Proofstone to create one. Both versions are
supported. Rlimits are no substitute: RLIMIT_NPROC counts per user, and RLIMIT_AS breaks programs that reserve address
space. The engine holds a lock on its groups, which ends with it: a group that nobody holds was left by an engine that
was killed. The process id in the name says nothing about it, because the engine may have a pid namespace of its own.

*Measuring* enforces the disk limit always, and the other limits where there is no control group. A measurement is made
twice a second, so a check can exceed a limit for a moment before it is ended. Cheap measurements come first: files are
counted only when the file system has lost as much space as the check may use, and now and then in case somebody else
has freed space meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proofstone.sandbox.job import JobLimits

CGROUP_MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class ControlGroup:
    """One control group (version 2), or one in each hierarchy (version 1)."""

    folders: tuple[Path, ...]
    locks: ExitStack
    """Keeps the folders open and locked, so that nobody else takes the groups for left over."""

    @property
    def procs_files(self) -> tuple[str, ...]:
        """The files into which the launcher writes its own pid."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def describe_exceeded(self) -> str:
        """Return a description of the limit that the kernel enforced, or an empty string."""
        for folder in self.folders:
            if _read_counter(folder / "memory.events", "oom_kill") or _read_counter(
                folder / "memory.oom_control", "oom_kill"
            ):
                return "the memory limit"
        return ""

    def close(self) -> None:
        """Kill the processes that are still in the group, and remove it. Closing it again does nothing."""
        for _ in range(100):
            if not self._kill():
                break
            time.sleep(0.02)
        for folder in self.folders:
            _remove_group(folder)
        self.locks.close()

    def _kill(self) -> bool:
        has_members = False
        for folder in self.folders:
            for pid in _read_members(folder):
                has_members = True
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        return has_members


@contextmanager
def limit_resources(memory_mb: int, processes: int) -> Iterator[ControlGroup | None]:
    """Provide a control group while the block runs; None if this machine does not allow one."""
    group = create_control_group(memory_mb, processes)
    try:
        yield group
    finally:
        if group:
            group.close()


def create_control_group(memory_mb: int, processes: int) -> ControlGroup | None:
    """Create a group with these limits (0: none); return None if this machine does not allow one."""
    is_version_2 = (CGROUP_MOUNT / "cgroup.controllers").is_file()
    try:
        return _create_version_2(memory_mb, processes) if is_version_2 else _create_version_1(memory_mb, processes)
    except OSError:
        return None  # not allowed: read-only, not delegated, or not mounted


def _read_own_paths() -> dict[str, str]:
    """Return the path of this process's own group for each controller; version 2 has the empty name."""
    paths: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _create_version_2(memory_mb: int, processes: int) -> ControlGroup | None:
    own = CGROUP_MOUNT / _read_own_paths().get("", "/").lstrip("/")
    for parent in (own, *own.parents):
        if not parent.is_relative_to(CGROUP_MOUNT):
            break
        enabled = (parent / "cgroup.subtree_control").read_text().split()
        if not {"pids", "memory"} <= set(enabled) or not os.access(parent / "cgroup.procs", os.W_OK):
            continue
        with ExitStack() as locks:  # what fails now is left over, for the next engine to remove
            folder = _make_group(parent, locks)
            _write_limit(folder / "pids.max", processes)
            _write_limit(folder / "memory.max", memory_mb << 20)
            return ControlGroup((folder,), locks.pop_all())
    return None


def _create_version_1(memory_mb: int, processes: int) -> ControlGroup | None:
    own = _read_own_paths()
    folders: list[Path] = []
    locks = ExitStack()
    limits = (("pids", "pids.max", processes), ("memory", "memory.limit_in_bytes", memory_mb << 20))
    try:
        for controller, file, value in limits:
            parent = CGROUP_MOUNT / controller / own[controller].lstrip("/")
            folder = _make_group(parent, locks)
            folders.append(folder)
            _write_limit(folder / file, value)
    except (OSError, KeyError):
        ControlGroup(tuple(folders), locks).close()
        return None
    return ControlGroup(tuple(folders), locks)


def _make_group(parent: Path, locks: ExitStack) -> Path:
    """Create a group and lock it. Another one is created if somebody removed it before it was locked."""
    _remove_stale_groups(parent)
    while True:
        folder = parent / f"proofstone-{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir()
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            locks.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder


def _remove_stale_groups(parent: Path) -> None:
    """Remove the groups that nobody has locked. The kernel refuses to remove one that is not empty."""
    for folder in parent.glob("proofstone-*-*"):
        with suppress(OSError):  # locked, in use, or removed by somebody else
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder.rmdir()
            finally:
                os.close(lock)


def _write_limit(file: Path, value: int) -> None:
    if value:
        file.write_text(str(value))


def _read_members(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []


def _read_counter(file: Path, name: str) -> int:
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)


def _remove_group(folder: Path) -> None:
    for _ in range(50):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)  # the kernel releases the last process a moment later
        else:
            return


_MEASURE_SECONDS = 0.5
_COUNT_FILES_SECONDS = 30.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


class LimitWatch:
    """Measures one job. `exceeded` tells which limit it has exceeded."""

    def __init__(self, limits: JobLimits, leader: int, folders: Sequence[Path], *, has_group: bool) -> None:
        self._limits = limits
        self._leader = leader
        self._folders = [folder for folder in folders if folder.is_dir()]
        self._has_group = has_group
        self._next_time = 0.0
        self._next_count_time = 0.0
        self._processes_before = 0 if has_group else _count_processes()
        self._free_before = self._free_bytes()
        self._used_before, _ = _measure_disk_usage(self._folders[1:])

    def describe_exceeded(self, now: float) -> str:
        """Return a description of the exceeded limit; empty if there is none, or if it is too early to
        measure again.
        """
        if now < self._next_time:
            return ""
        self._next_time = now + _MEASURE_SECONDS
        return self._check_processes() or self._check_memory() or self._check_disk(now)

    def _check_processes(self) -> str:
        limit = self._limits.processes
        if self._has_group or _count_processes() <= self._processes_before + limit:
            return ""
        return f"more than {limit} processes"

    def _check_memory(self) -> str:
        limit = self._limits.memory_mb << 20
        if self._has_group or not limit:
            return ""
        members = find_descendants(self._leader)
        if sum(map(_resident_bytes, members)) <= limit or sum(map(_share_bytes, members)) <= limit:
            return ""
        return f"the memory limit of {self._limits.memory_mb} MiB"

    def _check_disk(self, now: float) -> str:
        limit = self._limits.disk_mb << 20
        if not limit or not self._folders:
            return ""
        lost_bytes = self._free_before - self._free_bytes()
        if lost_bytes <= limit and now < self._next_count_time:
            return ""
        self._next_count_time = now + _COUNT_FILES_SECONDS
        used, is_complete = _measure_disk_usage(self._folders)
        if used - self._used_before > limit or (not is_complete and lost_bytes > limit):
            return f"the disk limit of {self._limits.disk_mb} MiB"
        return ""

    def _free_bytes(self) -> int:
        if not self._folders:
            return 0
        file_system = os.statvfs(self._folders[0])
        return file_system.f_bavail * file_system.f_frsize


def _count_processes() -> int:
    return sum(path.name.isdigit() for path in _PROC.iterdir()) if (_PROC / "self").exists() else 0


def find_descendants(leader: int) -> list[int]:
    """Return the process and all processes below it, found by parent."""
    children: dict[int, list[int]] = {}
    for pid, parent in _list_parents():
        children.setdefault(parent, []).append(pid)
    result, pending = [leader], [leader]
    while pending:
        below = children.get(pending.pop(), [])
        result += below
        pending += below
    return result


def _list_parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir() if _PROC.is_dir() else ():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue  # the process has ended meanwhile
            yield int(folder.name), int(fields[1])


def _resident_bytes(pid: int) -> int:
    """Return the resident memory of the process, including pages that it shares with others."""
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _share_bytes(pid: int) -> int:
    """Return the process's proportional share of memory, or its resident memory if the kernel does not report the
    share.
    """
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return _resident_bytes(pid)
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def _measure_disk_usage(folders: Sequence[Path]) -> tuple[int, bool]:
    """Return the disk space of the folders, and whether all of it could be counted."""
    total, is_complete, pending = 0, True, [str(folder) for folder in folders]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            is_complete = False
    return total, is_complete
