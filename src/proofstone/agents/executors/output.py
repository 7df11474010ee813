"""What flows from a program, with the values that nobody may keep (keys) taken out of it.

A value may come in pieces: what could be the beginning of one is held back until it is known.

Reads what an executor or an architect wrote: JSON of a contract, or the reason why it is not.

The file is hostile until it is read: it may be a link, a pipe, huge, or not text. What stands around the one object
(a fence, a `<think>` block, prose, a second object) is left out; what is in it must be of the schema.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import AnyStr, Final, Generic

from proofstone.agents.rules.answer import Malformed
from proofstone.common.secrets import SecretMask
from proofstone.sandbox.job import Sink

HIDDEN: Final = "…"
"""What stands in its place."""


class Flow(Generic[AnyStr]):
    def __init__(self, values: Sequence[AnyStr], hidden: AnyStr) -> None:
        self._values: Sequence[AnyStr] = values
        self._hidden: AnyStr = hidden
        self._held: AnyStr = hidden[:0]

    def add(self, piece: AnyStr) -> AnyStr:
        """What may be shown by now."""
        known = without(self._held + piece, self._values, self._hidden)
        shown = len(known) - begun(known, self._values)
        self._held = known[shown:]
        return known[:shown]

    def end(self) -> AnyStr:
        """What was held back, and was the beginning of nothing."""
        rest, self._held = self._held, self._hidden[:0]
        return rest


def without(text: AnyStr, values: Sequence[AnyStr], hidden: AnyStr) -> AnyStr:
    for value in values:
        text = text.replace(value, hidden)
    return text


def begun(text: AnyStr, values: Sequence[AnyStr]) -> int:
    """How much of the end of the text may be the beginning of a value: the most, if several begin there."""
    return max((_begun(text, value) for value in values), default=0)


def _begun(text: AnyStr, value: AnyStr) -> int:
    at = text.find(value[:1], max(0, len(text) - len(value) + 1))
    while at >= 0:
        if value.startswith(text[at:]):
            return len(text) - at
        at = text.find(value[:1], at + 1)
    return 0


@dataclass(frozen=True)
class _MaskedSink:
    sink: Sink
    flow: Flow[bytes]

    def write(self, data: bytes, /) -> None:
        if known := self.flow.add(data):
            self.sink.write(known)


@contextmanager
def masked(sink: Sink, values: Sequence[bytes]) -> Iterator[Sink]:
    """The sink, as whoever may print the values is given it."""
    if not values:
        yield sink
        return
    flow = Flow(values, HIDDEN.encode())
    try:
        yield _MaskedSink(sink, flow)
    finally:
        if rest := flow.end():
            sink.write(rest)


MOST_BYTES = 1 << 20
_MOST_MASKED = 64 << 20


def read_written(path: Path, most: int = MOST_BYTES) -> bytes | Malformed | None:
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
        if info.st_size > most:
            return Malformed(f"it has {info.st_size} bytes; {most} are allowed")
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def mask_written(path: Path, mask: SecretMask) -> None:
    """Take secrets out of a file that something in the sandbox may have written. What is not read is not masked."""
    written = read_written(path, _MOST_MASKED) if mask.spellings else None
    if not isinstance(written, bytes) or (safe := mask(written)) == written:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(safe)


def _kind(mode: int) -> str:
    return "directory" if stat.S_ISDIR(mode) else "pipe" if stat.S_ISFIFO(mode) else "special file"


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
