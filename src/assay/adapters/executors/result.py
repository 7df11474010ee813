"""Reads what an executor or an architect wrote: JSON of a contract, or the reason why it is not.

The file is hostile until it is read: it may be a link, a pipe, huge, or not text. What stands around the one object
(a fence, a `<think>` block, prose, a second object) is left out; what is in it must be of the schema.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

MOST_BYTES = 1 << 20
_MOST_TRIES = 64
"""Openings of an object that are tried: each try may read all of the text."""
_MOST_ERRORS = 5
_SHOWN = 60

Said = TypeVar("Said", bound=BaseModel)


@dataclass(frozen=True)
class Malformed:
    why: str


def read_written(path: Path) -> bytes | Malformed | None:
    """The bytes of a file that something in the sandbox may have written. None: it was not."""
    try:
        # NONBLOCK: opening a pipe would wait for somebody to write to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Malformed("it is a symbolic link" if path.is_symlink() else f"it cannot be read: {error.strerror}")
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return Malformed(f"it is a {_kind(info.st_mode)}, not a file")
        if info.st_size > MOST_BYTES:
            return Malformed(f"it has {info.st_size} bytes; {MOST_BYTES} are allowed")
        return os.read(descriptor, MOST_BYTES)
    finally:
        os.close(descriptor)


def _kind(mode: int) -> str:
    return "directory" if stat.S_ISDIR(mode) else "pipe" if stat.S_ISFIFO(mode) else "special file"


def parse(data: bytes, contract: type[Said]) -> Said | Malformed:
    """The contract that is written there."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Malformed(f"line {line}: byte {error.start} is not UTF-8")
    found = _object(text, _first_field(contract))
    if isinstance(found, Malformed):
        return found
    try:
        json.dumps(found, ensure_ascii=False).encode()  # JSON can spell half a character, which no file can hold
        return contract.model_validate(found)
    except UnicodeEncodeError as error:
        return Malformed(f"{_shown(error.object[error.start])} is half of a character")
    except ValidationError as error:
        return Malformed(_in_words(error.errors()))


def _first_field(contract: type[BaseModel]) -> str:
    """By its first field, the one that it must have, the object is known among others."""
    return next(iter(contract.model_fields))


def _object(text: str, field: str) -> dict[str, object] | Malformed:
    """The whole text if it is JSON; else the first object in it that has the field, else the first one."""
    text = _without_thoughts(text).strip()
    if not text:
        return Malformed("it is empty")
    try:
        whole = json.loads(text)
    except RecursionError:
        return Malformed("it is nested too deeply")
    except json.JSONDecodeError as error:
        found = list(_objects(text))
        said = f"line {error.lineno}, column {error.colno}: it is not JSON ({error.msg})"
        return next((one for one in found if field in one), found[0]) if found else Malformed(said)
    except ValueError as error:  # an integer with thousands of digits
        return Malformed(f"it is not JSON that can be read ({error})")
    return whole if isinstance(whole, dict) else Malformed(f"it is JSON, but not an object: {_shown(whole)}")


def _without_thoughts(text: str) -> str:
    """Without `<think>` blocks; one that is not closed is left for the JSON reader to stumble over."""
    kept, at = [], 0
    while (start := text.find("<think>", at)) >= 0 and (end := text.find("</think>", start)) >= 0:
        kept.append(text[at:start])
        at = end + len("</think>")
    return "".join((*kept, text[at:]))


def _objects(text: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_MOST_TRIES):
        if at < 0:
            return
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


def _in_words(errors: Sequence[ErrorDetails]) -> str:
    said = [_one_error(error) for error in errors[:_MOST_ERRORS]]
    left = len(errors) - len(said)
    return "; ".join((*said, *((f"and {left} more",) if left > 0 else ())))


def _one_error(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"]))
    said = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{place}: this field is missing"
    if not place:
        return said
    return f"{place}: {said[0].lower()}{said[1:]}, and it is {_shown(error['input'])}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Tail:
    """The last of what a program printed, for an error message."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._kept = b""

    def add(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-self._size :]

    def lines(self, count: int) -> str:
        text = self._kept.decode("utf-8", "replace").replace("\0", "").strip()
        return "\n".join(text.splitlines()[-count:])
