"""Standard streams that cannot break a command.

What a command does must not depend on whether its output can be written. A write to standard output or standard error
that fails (a closed descriptor, a full device, a reader that went away) is remembered and dropped, and so is everything
after it; the command goes on to its end and keeps its exit code. `main` asks afterwards what was lost.

Descriptors 0, 1 and 2 that were closed on entry are opened on the null device, so that no file which the command opens
later, a ledger for instance, takes the number of a standard stream.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class GuardedFile(io.FileIO):
    """A file descriptor whose write errors are remembered instead of raised."""

    def __init__(self, descriptor: int, error: OSError | None = None) -> None:
        """`error`: why nothing can be written, if that is known from the beginning."""
        super().__init__(descriptor, "w", closefd=False)
        self._known = error
        self.lost: OSError | None = None
        """The first error that cost output."""
        self.has_written = False

    def write(self, data: ReadableBuffer, /) -> int:
        with memoryview(data) as view, view.cast("B") as left:
            size = len(left)
            if size and self.lost is None:
                self.has_written = True
                self._write_all(left)
        return size

    def _write_all(self, data: memoryview) -> None:
        if self._known is not None:
            self.lost = self._known
            return
        done = 0
        while done < len(data):
            try:
                done += os.write(self.fileno(), data[done:])
            except BlockingIOError:  # somebody who shares the terminal or the pipe has made it non-blocking
                select.select([], [self.fileno()], [])
            except OSError as error:
                self.lost = error
                return


def guard_standard_streams() -> None:
    """Replace the standard streams that stand for a real descriptor; those of a test or of an embedding stay."""
    if sys.stdin is None:
        sys.stdin = open(_open_null(), encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _guard(sys.stdout, 1)
    sys.stderr = _guard(sys.stderr, 2)


def lost_output() -> OSError | None:
    """Return the error that cost a part of the output, if there was one; what is still buffered was not tried."""
    file = _guarded_file(sys.stdout)
    return file.lost if file else None


def has_output() -> bool:
    """Whether anything went to standard output so far."""
    sys.stdout.flush()
    file = _guarded_file(sys.stdout)
    return file.has_written if file else False


def _guard(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        closed = OSError(errno.EBADF, os.strerror(errno.EBADF))
        return _text_stream(GuardedFile(_open_null(), closed), line_buffering=True)
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # `io.UnsupportedOperation` is both
        descriptor = -1
    if descriptor != number:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        return stream
    stream.flush()
    # `write_through` stands for PYTHONUNBUFFERED and `python -u`.
    line_buffering = bool(stream.line_buffering or getattr(stream, "write_through", False))
    return _text_stream(GuardedFile(number), line_buffering=line_buffering, encoding=stream.encoding)


def _text_stream(file: GuardedFile, *, line_buffering: bool, encoding: str = "utf-8") -> io.TextIOWrapper:
    """File names need not be valid in the terminal's encoding: they are shown escaped instead of raising."""
    return io.TextIOWrapper(
        io.BufferedWriter(file), encoding=encoding, errors="backslashreplace", line_buffering=line_buffering
    )


def _guarded_file(stream: object) -> GuardedFile | None:
    file = getattr(getattr(stream, "buffer", None), "raw", None)
    return file if isinstance(file, GuardedFile) else None


def _open_null() -> int:
    """A descriptor of the null device: the lowest that is free, which is that of the closed stream itself."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(descriptor, descriptor <= 2)
    return descriptor
