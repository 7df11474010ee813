"""Once a day, what can be made again and was not used lately is thrown away. Evidence never is.

Kept results, environments and bytecode are trimmed to `limits.cache_gb`, least recently used first; objects of the
private git directory that no run has needed for two weeks are pruned; what a killed run left half-written is removed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from proofstone.adapters.file_times import seconds_since_use
from proofstone.adapters.git.store import Store
from proofstone.adapters.scratch import remove

_DAY = 24 * 3600.0
_FOLDERS = ("cache/results", "cache/bytecode", "environments")


def keep_house(home: Path, store: Store, gigabytes: int, *, now: float | None = None) -> bool:
    """Tidy up if it was not done within a day; whether it was."""
    now = time.time() if now is None else now
    stamp = home / "cache" / "tidied"
    if stamp.is_file() and 0 <= now - stamp.stat().st_mtime < _DAY:  # a time in the future says nothing
        return False
    stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp.touch()
    os.utime(stamp, (now, now))
    _trim(home, gigabytes << 30, now)
    for left in (*(home / "artifacts").glob("tmp-*"), *(home / "cache" / "results").glob("*/*.json.*")):
        if seconds_since_use(left, now) > _DAY:
            left.unlink(missing_ok=True)
    with store.locked():
        for thing in store.objects.glob("??/*"):
            seconds_since_use(thing, now)  # git prunes by the time stamp, too
        store.git().run("prune", "--expire=14.days.ago")
    return True


def _trim(home: Path, most: int, now: float) -> None:
    """Least recently used first, but nothing that a run of today may be using."""
    entries = sorted(((seconds_since_use(path, now), _size(path), path) for path in _entries(home)), reverse=True)
    total = sum(size for _, size, _ in entries)
    for age, size, path in entries:
        if total <= most or age < _DAY:
            return
        if path.is_dir():
            remove(path)
        else:
            path.unlink(missing_ok=True)
        total -= size


def _entries(home: Path) -> Iterator[Path]:
    for name in _FOLDERS:
        folder = home / name
        if folder.is_dir():
            yield from folder.glob("*/*.json") if name == "cache/results" else folder.iterdir()


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(os.lstat(f"{folder}/{name}").st_size for folder, _, names in os.walk(path) for name in names)
