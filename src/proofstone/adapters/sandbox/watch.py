"""Limits that the engine enforces by measuring: disk always, memory and processes where there is no control group.

A measurement comes twice a second, so a check can exceed a limit for a moment before it is ended. What is cheap is
asked first: files are only counted when the file system has lost as much room as the check may use, or now and then,
in case somebody else has freed room meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from proofstone.adapters.sandbox.job import Limits

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
