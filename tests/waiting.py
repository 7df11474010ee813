"""How tests wait for what another process or thread does. Not how long it takes is tested, only that it comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 300.0
"""Seconds after which something is taken for hanging: far more than anything takes on a machine that has no time."""


def wait_until(true: Callable[[], object], otherwise: Callable[[], str] = lambda: "it did not come to that") -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.02)
