"""A report of our own fault: what a person can read and send, kept where only they can see it.

What ends a command from outside: SIGINT, SIGTERM and SIGHUP, which are treated alike.

Each is raised as `KeyboardInterrupt` in the main thread, so that whatever a command has open is ended, saved and
removed on the way out. A signal that was ignored when the command started stays ignored: `nohup proofstone run …`.

Standard streams that cannot break a command.

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
    """Write it under `PROOFSTONE_HOME/reports`, or in the temporary directory if that cannot be, and say where."""
    text = _text(args, error)
    try:
        from proofstone.config.home import proofstone_home

        folder = proofstone_home() / "reports"
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


def _text(args: Sequence[str], error: BaseException) -> str:
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
_REPEATED_WITHIN_S: Final = 10.0
"""A terminal that closes sends SIGHUP more than once, a service manager SIGTERM to each process of a group: a repeated
one does not break off what the first has set in motion. Ctrl-C does."""


class SignalReceived:
    """Which signal ended the command, for its message and its exit code."""

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
        if self._at is not None and now - self._at < _REPEATED_WITHIN_S:
            return
        self._number, self._at = signal.Signals(number), now
        raise KeyboardInterrupt


@contextmanager
def termination_signals() -> Iterator[SignalReceived]:
    """Have SIGTERM and SIGHUP interrupt the block as Ctrl-C does; afterwards they do what they did before."""
    received = SignalReceived()
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
def interruptions() -> Iterator[None]:
    """A signal can be heard between the moment a lock is let go and the moment somebody knows of it (in
    `Condition.wait`, say); the lock is then let go twice on the way out, and it is that error which arrives. What it
    came from is the interruption, and this is what the caller hears of."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise


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
