"""Several things done at the same time, and none left to go on by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Final, TypeVar

from proofstone.errors import UnavailableError

Came = TypeVar("Came")
_PIECE: Final = 0.5


def side_by_side(jobs: Sequence[Callable[[], Came]], at_once: int, cancel: threading.Event) -> tuple[Came, ...]:
    """What came of each, in their order. Whatever ends this early, an interruption above all, ends all of them: they
    look at `cancel`, and those that wait for their turn never begin. Only a provider that cannot be reached lets the
    others come to their end, for they may have others, and are paid for. Even a single one has a thread of its own, so
    that an interruption is never heard in its midst."""
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        try:
            futures = [pool.submit(job) for job in jobs]
            left = set(futures)
            while True:
                # In short pieces: a signal that comes just before a wait is heard after it.
                done, left = wait(left, timeout=_PIECE, return_when=FIRST_EXCEPTION)
                for future in done:
                    error = future.exception()
                    if error is not None and not isinstance(error, UnavailableError):
                        raise error
                if not left:
                    return tuple(future.result() for future in futures)
        except BaseException:
            cancel.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
