"""Once a day, what can be made again and was not used lately is thrown away. Evidence never is.

Kept results, environments and bytecode are trimmed to `limits.cache_gb`, least recently used first; objects of the
private git directory that no run has needed for two weeks are pruned; what a killed run left half-written is removed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from assay.adapters.git.store import Store
from assay.adapters.scratch import remove

_DAY = 24 * 3600.0
_FOLDERS = ("cache/results", "cache/bytecode", "environments")


def keep_house(home: Path, store: Store, gigabytes: int, *, now: float | None = None) -> bool:
    """Tidy up if it was not done within a day; whether it was."""
    now = time.time() if now is None else now
    stamp = home / "cache" / "tidied"
    if stamp.is_file() and now - stamp.stat().st_mtime < _DAY:
        return False
    stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp.touch()
    os.utime(stamp, (now, now))
    _trim(home, gigabytes << 30, now)
    for left in (*(home / "artifacts").glob("tmp-*"), *(home / "cache" / "results").glob("*/*.json.*")):
        if now - left.stat().st_mtime > _DAY:
            left.unlink(missing_ok=True)
    with store.locked():
        store.git().run("prune", "--expire=14.days.ago")
    return True


def _trim(home: Path, most: int, now: float) -> None:
    """Least recently used first, but nothing that a run of today may be using."""
    entries = sorted((used, size, path) for path in _entries(home) for used, size in [_use(path)])
    total = sum(size for _, size, _ in entries)
    for used, size, path in entries:
        if total <= most or now - used < _DAY:
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


def _use(path: Path) -> tuple[float, int]:
    """When it was last used, and how much it takes."""
    if path.is_file():
        return path.stat().st_mtime, path.stat().st_size
    sizes = (os.lstat(f"{folder}/{name}").st_size for folder, _, names in os.walk(path) for name in names)
    return path.stat().st_mtime, sum(sizes)
