"""Several things done at the same time, and none left to go on by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Came = TypeVar("Came")


def side_by_side(jobs: Sequence[Callable[[], Came]], at_once: int, cancel: threading.Event) -> tuple[Came, ...]:
    """What came of each, in their order. Whatever ends this early, an interruption above all, ends all of them: they
    look at `cancel`. Even a single one has a thread of its own, so that an interruption is never heard in its midst."""
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return tuple(future.result() for future in futures)
        except BaseException:
            cancel.set()
            raise
