"""A folder for readers that open files, one for each process, in memory where the machine has such a folder."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from zlib import crc32

_MEMORY = Path("/dev/shm")


def folder(name: str) -> Path:
    """Return a folder of this name; it stays until the process ends."""
    place = _root(os.getpid()) / name
    place.mkdir(exist_ok=True)
    return place


@cache
def _root(_pid: int) -> Path:
    where = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
    made = Path(tempfile.mkdtemp(prefix="proofstone-fuzz-", dir=where))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def pick(data: bytes, count: int) -> int:
    """Return a number below `count` that depends on the input alone: which of several variants reads it."""
    return crc32(data) % count


def text_of(data: bytes) -> str:
    """Return the input as text; what is not UTF-8 is replaced, as readers of files and outputs do."""
    return data.decode("utf-8", "replace")
