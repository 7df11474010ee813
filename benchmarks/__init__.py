"""How fast it is: `make bench`. Each measurement compares two ways within one run, so that the machine cancels out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

NO_AIM = "–"
"""Of a figure that is shown, and can be neither met nor missed."""


@dataclass(frozen=True)
class Measurement:
    name: str
    value: float
    unit: str
    aim: str
    met: bool

    def __str__(self) -> str:
        word = "" if self.aim == NO_AIM else "met" if self.met else "MISSED"
        return f"{self.name:<60} {self.value:>10.3f} {self.unit:<4} aim {self.aim:<10} {word}".rstrip()


def timed(action: Callable[[], object]) -> float:
    """Seconds that it takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def show(run: Callable[[bool], Iterable[Measurement]]) -> None:
    """One benchmark as a program of its own; `--quick` for a small one."""
    for measurement in run("--quick" in sys.argv[1:]):
        print(measurement)
