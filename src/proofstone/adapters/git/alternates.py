"""`objects/info/alternates`: where a git directory borrows objects. One path a line, quoted if it would not fit one."""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from proofstone.errors import RepositoryError

_PLACE = Path("objects") / "info" / "alternates"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def write_alternates(git_dir: Path, stores: Iterable[Path | str]) -> None:
    """Whole or not at all: another process may be reading objects through it just now."""
    file, content = git_dir / _PLACE, os.fsencode("".join(f"{_line(str(store))}\n" for store in stores))
    if file.is_file() and file.read_bytes() == content:
        return
    aside = file.with_name(f"alternates.{os.getpid()}.{threading.get_ident()}")
    aside.write_bytes(content)
    aside.replace(file)


def read_alternates(objects: Path) -> list[Path]:
    """What this object store borrows from directly."""
    file = objects / "info" / "alternates"
    if not file.is_file():
        return []
    lines = os.fsdecode(file.read_bytes()).split("\n")
    try:
        return [(objects / _path(line)).resolve() for line in lines if line and not line.startswith("#")]
    except (ValueError, SyntaxError, OSError, RuntimeError) as error:  # quoted wrongly, a NUL, links in a ring
        why = str(error).partition("\n")[0]
        raise RepositoryError(
            f"{file}: a line names no path: {why}", hint="put the line right, or remove it"
        ) from error


def _line(path: str) -> str:
    if "\n" not in path and not path.startswith(('"', "#")):
        return path
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in path) + '"'


def _path(line: str) -> str:
    """Git quotes as C does, bytes above 127 as octal numbers; Python reads the same."""
    if not (line.startswith('"') and line.endswith('"')):
        return line
    ascii_only = "".join(chr(b) if b < 128 else f"\\x{b:02x}" for b in os.fsencode(line))
    return os.fsdecode(ast.literal_eval(f"b{ascii_only}"))
