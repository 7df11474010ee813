"""What ends a command from outside: SIGINT, SIGTERM and SIGHUP, which are treated alike.

Each is raised as `KeyboardInterrupt` in the main thread, so that whatever a command has open is ended, saved and
removed on the way out. A signal that was ignored when the command started stays ignored: `nohup proofstone run …`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
