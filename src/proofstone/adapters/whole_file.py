"""A file in a person's own folder: all of it is written, or nothing, whatever happens meanwhile."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from proofstone.errors import InputError


def write_whole(
    path: Path, data: bytes, *, mode: int | None = None, durable: bool = True, hint: str = "name another file"
) -> None:
    """In the place of what is there, with its mode unless another is given. A link there is replaced, not followed.
    Not `durable`: the disk is not waited for, so that after a power cut it may be empty."""
    aside: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=".proofstone-", dir=path.parent)
        aside = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        aside.chmod(_mode(path) if mode is None else mode)
        aside.replace(path)
    except OSError as error:
        if aside is not None:
            aside.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}", hint=hint) from error


def on_disk(path: Path) -> None:
    """Wait until the disk has it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int:
    if path.is_file():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
