"""The goal of `assay solve`: the person's words as they are, from the command line, a file or standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO, Final

from assay.errors import InputError
from assay.surfaces.cli.words import plain

MOST_BYTES: Final = 200_000
"""That are read at all. How long a goal may be is no matter of where it comes from."""
_STDIN: Final = "-"


def goal_from(goal: str | None, file: Path | None) -> str:
    """The one of them that was given."""
    if file is not None:
        return _decoded(str(file), _content(file))
    if goal == _STDIN:
        return _decoded("standard input", _read(sys.stdin.buffer))
    return plain("GOAL", goal or "")


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _read(file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"--goal-file {path}: {why}", hint="name a text file that is there") from error


def _read(file: BinaryIO) -> bytes:
    return file.read(MOST_BYTES + 1)


def _decoded(name: str, raw: bytes) -> str:
    if len(raw) > MOST_BYTES:
        raise InputError(
            f"{name} is larger than {MOST_BYTES:,} bytes", hint="say what you want; your files can be read"
        )
    if b"\0" in raw:
        raise InputError(f"{name} is not text", hint="a goal is text, in UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: this is not UTF-8", hint="save it as UTF-8") from error
