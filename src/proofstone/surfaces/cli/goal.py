"""What the person wants of `proofstone solve` and `proofstone run`: their words as they are, from the command line, a
file or
standard input."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from proofstone.errors import InputError
from proofstone.surfaces.cli.words import plain

MOST_BYTES: Final = 200_000
"""That are read at all. How long a goal may be is no matter of where it comes from."""
_STDIN: Final = "-"


def goal_from(goal: str | None, file: Path | None, called: str = "GOAL") -> str:
    """The one of them that was given. `called`: as the command calls it."""
    if file is not None:
        return _decoded(str(file), _content(file, called), called)
    if goal == _STDIN:
        return _decoded("standard input", _read(sys.stdin.buffer), called)
    return plain(called, goal or "")


def refuse_loose_words(command: str, goal: str | None, others: Sequence[str], called: str = "GOAL") -> None:
    """A shell hands over each word by itself where nobody has put them in quotes."""
    if others:
        wanted = shlex.join([" ".join((goal or "", *others))])
        raise InputError(f"{called} is one text: put it in quotes", hint=f"proofstone {command} {wanted}")


def _content(path: Path, called: str) -> bytes:
    try:
        with path.open("rb") as file:
            return _read(file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"--{called.lower()}-file {path}: {why}", hint="name a text file that is there") from error


def _read(file: BinaryIO) -> bytes:
    return file.read(MOST_BYTES + 1)


def _decoded(name: str, raw: bytes, called: str) -> str:
    if len(raw) > MOST_BYTES:
        raise InputError(
            f"{name} is larger than {MOST_BYTES:,} bytes", hint="say what you want; your files can be read"
        )
    if b"\0" in raw:
        raise InputError(f"{name} is not text", hint=f"a {called.lower()} is text, in UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: this is not UTF-8", hint="save it as UTF-8") from error
