"""Decide which worker of a replay checks which commit.

The tree of a commit is the base of the next one, and results on it are kept. So each worker takes neighbouring commits,
oldest first; one that has finished its own takes the later half of what the busiest has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


@dataclass
class WorkQueue(Generic[ItemT]):
    """What each worker still has to do."""

    shares: list[list[ItemT]]

    @classmethod
    def divide(cls, items: Sequence[ItemT], workers: int) -> WorkQueue[ItemT]:
        """Divide the items into neighbouring shares of nearly the same length."""
        cuts = [len(items) * number // workers for number in range(workers + 1)]
        return cls([list(items[begin:end]) for begin, end in pairwise(cuts)])

    def take(self, worker: int) -> ItemT | None:
        """Return the next item of a worker; None if there is none left for it."""
        if not self.shares[worker]:
            busiest = max(self.shares, key=len)
            half = len(busiest) // 2
            self.shares[worker] = busiest[half:]
            del busiest[half:]
        return self.shares[worker].pop(0) if self.shares[worker] else None
