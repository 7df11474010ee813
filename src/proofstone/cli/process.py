"""Handle what concerns the process as a whole: signals, standard streams, and reports of internal errors.

SIGINT, SIGTERM and SIGHUP are treated alike. Each is raised as `KeyboardInterrupt` in the main thread, so that whatever
a command has open is closed, saved and removed on the way out. A signal that was ignored when the command started stays
ignored: `nohup proofstone run …`.

What a command does must not depend on whether its output can be written. If a write to standard output or standard
error fails (a closed descriptor, a full device, a reader that went away), the error is remembered, and this and all
later output is dropped. The command continues to its end and keeps its exit code; `main` then asks what was lost.

Descriptors 0, 1 and 2 that are closed on entry are opened on the null device. Otherwise a file that the command opens
later, such as a ledger, would get the number of a standard stream.

A report of an internal error is kept where only its owner can read it.
"""

from __future__ import annotations

import errno
import io
import os
import platform
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from proofstone import __version__
from proofstone.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def write_report(args: Sequence[str], error: BaseException) -> Path:
    """Write a report under `PROOFSTONE_HOME/reports`, or in the temporary directory if that fails. Return its path."""
    text = _format_report(args, error)
    try:
        from proofstone.config.home import find_proofstone_home

        folder = find_proofstone_home() / "reports"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _write(folder, text)
    except (ImportError, OSError, ConfigError):
        return _write(Path(tempfile.gettempdir()), text)


def _write(folder: Path, text: str) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    descriptor, name = tempfile.mkstemp(prefix=f"proofstone-{stamp}-", suffix=".txt", dir=folder)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as report:
        report.write(text)
    return Path(name)


def _format_report(args: Sequence[str], error: BaseException) -> str:
    return "\n".join(
        [
            f"proofstone {__version__}",
            f"python {platform.python_version()} on {platform.platform()}",
            f"command: {['proofstone', *args]}",
            f"interpreter: {sys.executable}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )


_TERMINATION: Final = (signal.SIGTERM, signal.SIGHUP)
_REPEAT_SECONDS: Final = 10.0
"""A closing terminal sends SIGHUP more than once, and a service manager sends SIGTERM to each process of a group. A
repeated signal must not interrupt the cleanup that the first one started. Ctrl-C does."""


class SignalRecord:
    """The signal that ended the command, for its message and exit code."""

    def __init__(self) -> None:
        self._number = signal.SIGINT
        self._at: float | None = None

    @property
    def exit_code(self) -> int:
        return 128 + self._number

    @property
    def message(self) -> str:
        return "interrupted" if self._number is signal.SIGINT else f"interrupted by {self._number.name}"

    def handle(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        if self._at is not None and now - self._at < _REPEAT_SECONDS:
            return
        self._number, self._at = signal.Signals(number), now
        raise KeyboardInterrupt


@contextmanager
def handle_termination_signals() -> Iterator[SignalRecord]:
    """Let SIGTERM and SIGHUP interrupt the block like Ctrl-C, and restore their handlers afterwards."""
    received = SignalRecord()
    previous = {}
    if threading.current_thread() is threading.main_thread():
        for number in _TERMINATION:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                previous[number] = signal.signal(number, received.handle)
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def unmask_interrupts() -> Iterator[None]:
    """Raise the `KeyboardInterrupt` that another error hides.

    A signal may arrive just after a lock was released (in `Condition.wait`, for instance); the lock is then released
    twice, which is a RuntimeError. While pydantic builds the schema of a model, it turns every exception into a
    SchemaError that only quotes the original one.
    """
    try:
        yield
    except Exception as error:
        if _hides_interrupt(error):
            raise KeyboardInterrupt from None
        raise


def _hides_interrupt(error: Exception) -> bool:
    if isinstance(error, RuntimeError):
        return isinstance(error.__context__, KeyboardInterrupt)
    # The class is named instead of imported: a command that needs no model must not load pydantic for this.
    return type(error).__name__ == "SchemaError" and KeyboardInterrupt.__name__ in str(error)


class WriteGuard(io.FileIO):
    """A file descriptor whose write errors are remembered instead of raised."""

    def __init__(self, descriptor: int, error: OSError | None = None) -> None:
        """`error` says why nothing can be written, if that is known from the start."""
        super().__init__(descriptor, "w", closefd=False)
        self._known = error
        self.lost: OSError | None = None
        """The first error that lost output."""
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
            except BlockingIOError:  # another process that shares the terminal or the pipe made it non-blocking
                select.select([], [self.fileno()], [])
            except OSError as error:
                self.lost = error
                return


def guard_standard_streams() -> None:
    """Replace the standard streams that use a real descriptor. Streams of a test or an embedding program stay."""
    if sys.stdin is None:
        sys.stdin = open(_open_null(), encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _guard(sys.stdout, 1)
    sys.stderr = _guard(sys.stderr, 2)


def find_output_error() -> OSError | None:
    """Return the error that lost a part of the output, if any. Output that is still buffered has not been tried."""
    file = _guarded_file(sys.stdout)
    return file.lost if file else None


def has_output() -> bool:
    """Return whether anything was written to standard output so far."""
    sys.stdout.flush()
    file = _guarded_file(sys.stdout)
    return file.has_written if file else False


def _guard(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        closed = OSError(errno.EBADF, os.strerror(errno.EBADF))
        return _text_stream(WriteGuard(_open_null(), closed), line_buffering=True)
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # `io.UnsupportedOperation` is both
        descriptor = -1
    if descriptor != number:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        return stream
    stream.flush()
    # `write_through` means PYTHONUNBUFFERED and `python -u`.
    line_buffering = bool(stream.line_buffering or getattr(stream, "write_through", False))
    return _text_stream(WriteGuard(number), line_buffering=line_buffering, encoding=stream.encoding)


def _text_stream(file: WriteGuard, *, line_buffering: bool, encoding: str = "utf-8") -> io.TextIOWrapper:
    """Open a text stream. File names that the encoding cannot represent are escaped instead of raising an error."""
    return io.TextIOWrapper(
        io.BufferedWriter(file), encoding=encoding, errors="backslashreplace", line_buffering=line_buffering
    )


def _guarded_file(stream: object) -> WriteGuard | None:
    file = getattr(getattr(stream, "buffer", None), "raw", None)
    return file if isinstance(file, WriteGuard) else None


def _open_null() -> int:
    """Open the null device at the lowest free descriptor, which is that of the closed stream."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(descriptor, descriptor <= 2)
    return descriptor
