"""Run asynchronous work on an event loop in its own thread, shared by all connections to models.

This is the only place where Proofstone is asynchronous; the engine works in threads. A user of the loop leases it and
gives it back. The first lease starts the thread, and the last return ends it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")
OutputCallback = Callable[[str], None]


class ProgressLine(str):
    """A line about the work, among the pieces of its output."""

    __slots__ = ()


_POLL_SECONDS: Final = 0.05
"""Seconds between two checks whether the work has been cancelled."""
_CLOSE_SECONDS: Final = 5.0
"""Seconds that cancelled work has to close its connection."""


class EventLoop:
    """An asyncio event loop in a thread of its own."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="proofstone-models", daemon=True
        )
        self._thread.start()
        self._started.wait()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_log_exception)
        self._stop = asyncio.Event()
        self._started.set()
        await self._stop.wait()

    def run(
        self,
        work: Callable[[OutputCallback], Awaitable[T]],
        hear: OutputCallback = lambda _: None,
        cancel: threading.Event | None = None,
    ) -> T | None:
        """Run the work and return its result, or None if it was cancelled. `hear` is called in the caller's thread."""
        pieces: SimpleQueue[str | None] = SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(_run_until(work(pieces.put), cancel or threading.Event()), self._loop)
        future.add_done_callback(lambda _: pieces.put(None))
        try:
            for piece in iter(pieces.get, None):
                hear(piece)
            return future.result()
        except CancelledError:  # the loop was closed
            return None
        finally:
            future.cancel()  # the caller may have been interrupted

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


async def _run_until(work: Awaitable[T], cancel: threading.Event) -> T | None:
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=_POLL_SECONDS))[0]:
            if cancel.is_set():
                return None
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_CLOSE_SECONDS)


def _log_exception(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what libraries leave behind when a stream breaks. The caller has already seen the break itself."""
    logging.getLogger("proofstone.models").debug("%s", context.get("message"), exc_info=context.get("exception"))


_lock = threading.Lock()
_shared: EventLoop | None = None
_leases = 0


def lease_loop() -> EventLoop:
    """Return the event loop of this process. Call `give_back` when done."""
    global _shared, _leases  # noqa: PLW0603  one loop for the whole process
    with _lock:
        _shared = _shared or EventLoop()
        _leases += 1
        return _shared


def return_loop() -> None:
    """Return a lease. The last one closes the loop."""
    global _shared, _leases  # noqa: PLW0603
    with _lock:
        _leases -= 1
        unused, _shared = (_shared, None) if _leases == 0 else (None, _shared)
        if unused:
            unused.close()
