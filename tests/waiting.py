"""How tests wait for what another process or thread does. Not how long it takes is tested, only that it comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

PATIENCE: Final = 300.0
"""Seconds after which something is taken for hanging: far more than anything takes on a machine that has no time."""


def wait_until(true: Callable[[], object], otherwise: Callable[[], str] = lambda: "it did not come to that") -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.02)


def run_side_by_side(work: Callable[[str], None], names: Iterable[str]) -> None:
    """Do this work for each name, in a thread of its own, and see that nobody waits for anybody for ever."""
    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
