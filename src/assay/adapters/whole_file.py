"""A file in a person's own folder: all of it is written, or nothing, whatever happens meanwhile."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from assay.errors import InputError


def write_whole(path: Path, data: bytes, *, mode: int | None = None, hint: str = "name another file") -> None:
    """In the place of what is there, with its mode unless another is given. A link there is replaced, not followed."""
    aside: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=".assay-", dir=path.parent)
        aside = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.chmod(_mode(path) if mode is None else mode)
        aside.replace(path)
    except OSError as error:
        if aside is not None:
            aside.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}", hint=hint) from error


def _mode(path: Path) -> int:
    if path.is_file():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
