"""Run several jobs at the same time, and leave none of them running behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Final, TypeVar

from proofstone.errors import UnavailableError

JobResult = TypeVar("JobResult")
_WAIT_SECONDS: Final = 0.5


def run_parallel(
    jobs: Sequence[Callable[[], JobResult]], at_once: int, cancel: threading.Event
) -> tuple[JobResult, ...]:
    """Return the results of the jobs, in their order. Whatever ends this call early, such as an interruption, ends all
    jobs: running jobs check `cancel`, and waiting jobs never start. Only when a provider is unavailable do the other
    jobs run to their end, because they may use other providers and are paid for. Even a single job gets a thread of its
    own, so that an interruption never hits it in the middle.
    """
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        try:
            futures = [pool.submit(job) for job in jobs]
            pending = set(futures)
            while True:
                # Wait in short intervals: a signal that arrives just before a wait is only handled after it.
                done, pending = wait(pending, timeout=_WAIT_SECONDS, return_when=FIRST_EXCEPTION)
                for future in done:
                    error = future.exception()
                    if error is not None and not isinstance(error, UnavailableError):
                        raise error
                if not pending:
                    return tuple(future.result() for future in futures)
        except BaseException:
            cancel.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
