"""The output of programs: remove secret values from a stream, and read files that a program wrote.

A secret value may arrive in pieces, so text that could be the beginning of one is held back until that is clear. A file
that a program wrote is untrusted: it may be a link, a pipe, huge, or not text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import AnyStr, Final, Generic

from proofstone.agents.rules.answer import MalformedAnswer
from proofstone.common.secrets import SecretMask
from proofstone.sandbox.job import OutputSink

MASK_TEXT: Final = "…"
"""The replacement of a hidden value."""


class MaskingStream(Generic[AnyStr]):
    def __init__(self, values: Sequence[AnyStr], hidden: AnyStr) -> None:
        self._values: Sequence[AnyStr] = values
        self._hidden: AnyStr = hidden
        self._held: AnyStr = hidden[:0]

    def add(self, piece: AnyStr) -> AnyStr:
        """Add a piece and return the text that may be shown by now."""
        text = remove_values(self._held + piece, self._values, self._hidden)
        length = len(text) - partial_match_length(text, self._values)
        self._held = text[length:]
        return text[:length]

    def end(self) -> AnyStr:
        """Return the text that was held back and turned out not to be the beginning of a value."""
        rest, self._held = self._held, self._hidden[:0]
        return rest


def remove_values(text: AnyStr, values: Sequence[AnyStr], hidden: AnyStr) -> AnyStr:
    for value in values:
        text = text.replace(value, hidden)
    return text


def partial_match_length(text: AnyStr, values: Sequence[AnyStr]) -> int:
    """Return the length of the longest end of the text that may be the beginning of a value."""
    return max((_length_of_beginning(text, value) for value in values), default=0)


def _length_of_beginning(text: AnyStr, value: AnyStr) -> int:
    at = text.find(value[:1], max(0, len(text) - len(value) + 1))
    while at >= 0:
        if value.startswith(text[at:]):
            return len(text) - at
        at = text.find(value[:1], at + 1)
    return 0


@dataclass(frozen=True)
class _MaskedSink:
    sink: OutputSink
    flow: MaskingStream[bytes]

    def write(self, data: bytes, /) -> None:
        if safe := self.flow.add(data):
            self.sink.write(safe)


@contextmanager
def mask_sink(sink: OutputSink, values: Sequence[bytes]) -> Iterator[OutputSink]:
    """Wrap the sink so that the values are removed from everything that is written to it."""
    if not values:
        yield sink
        return
    flow = MaskingStream(values, MASK_TEXT.encode())
    try:
        yield _MaskedSink(sink, flow)
    finally:
        if rest := flow.end():
            sink.write(rest)


MAX_OUTPUT_FILE_BYTES = 1 << 20
_MOST_MASKED = 64 << 20


def read_output_file(path: Path, most: int = MAX_OUTPUT_FILE_BYTES) -> bytes | MalformedAnswer | None:
    """Read a file that a program in the sandbox may have written. Return None if it does not exist."""
    try:
        # NONBLOCK, because opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return MalformedAnswer("it is a symbolic link" if path.is_symlink() else f"it cannot be read: {error.strerror}")
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return MalformedAnswer(f"it is a {_describe_kind(info.st_mode)}, not a file")
        if info.st_size > most:
            return MalformedAnswer(f"it has {info.st_size} bytes; {most} are allowed")
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def mask_output_file(path: Path, mask: SecretMask) -> None:
    """Remove secrets from a file that a program in the sandbox may have written. An unreadable file is left alone."""
    written = read_output_file(path, _MOST_MASKED) if mask.spellings else None
    if not isinstance(written, bytes) or (safe := mask(written)) == written:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(safe)


def _describe_kind(mode: int) -> str:
    return "directory" if stat.S_ISDIR(mode) else "pipe" if stat.S_ISFIFO(mode) else "special file"


class OutputTail:
    """Keeps the end of a program's output for an error message."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._kept = b""

    def add(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-self._size :]

    def lines(self, count: int) -> str:
        text = self._kept.decode("utf-8", "replace").replace("\0", "").strip()
        return "\n".join(text.splitlines()[-count:])
