"""Watch an answer while it arrives: how long a model may be silent, and what is said about the waiting.

A local server may read a long prompt for minutes before the first token, and then write steadily; a broken one is
silent in the middle. So the two waits have limits of their own. Every few seconds a line says what is being waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from proofstone.agents.backends.api.event_loop import OutputCallback, ProgressLine

T = TypeVar("T")

TICK_SECONDS: Final = 5.0
"""Seconds between two lines about the waiting."""
_CHARS_PER_TOKEN: Final = 4


class SilenceError(Exception):
    """The model sent nothing for longer than its settings allow."""

    def __init__(self, has_begun: bool, seconds: float) -> None:
        super().__init__(f"nothing for {seconds:g} s")
        self.has_begun = has_begun
        self.seconds = seconds


class AnswerWatch:
    """Limits the waits of one answer, and counts what has arrived."""

    def __init__(self, first: float | None, pause: float | None, hear: OutputCallback) -> None:
        self._first = first
        self._pause = pause
        self._hear = hear
        self._began = time.monotonic()
        self.characters = 0

    def count(self, added: int) -> None:
        self.characters += added

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Wait for the next part of the answer. Raise a SilenceError if it takes longer than it may."""
        has_begun = self.characters > 0
        seconds = self._pause if has_begun else self._first
        if seconds is None:
            return await awaited
        try:
            async with asyncio.timeout(seconds) as limit:
                return await awaited
        except TimeoutError as error:
            if limit.expired():
                raise SilenceError(has_begun, seconds) from error
            raise

    @asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Say every few seconds what is being waited for."""
        task = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            task.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._hear(ProgressLine(self.describe(time.monotonic() - self._began)))

    def describe(self, seconds: float) -> str:
        """Return what is being waited for, in words."""
        if not self.characters:
            return f"waiting for the first token, {seconds:.0f} s so far"
        return f"about {self.characters // _CHARS_PER_TOKEN} tokens of the answer in {seconds:.0f} s"
