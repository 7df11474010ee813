"""How much an entry still weighs: half of its weight is left after HALF_LIFE further tasks.

Age is counted in tasks and not in days: a memory that nobody used for a month is no staler for it. Tasks are counted as
far as the memory knows of them. What has faded is still in the memory; it only is not spoken of any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from proofstone.contracts.memory import MemoryEntry

HALF_LIFE: Final = 10
FADED: Final = 0.25
"""Below this weight an entry binds nobody: what once failed may be tried again some day."""


class Ages:
    """Of entries, among all entries that there are."""

    def __init__(self, entries: Iterable[MemoryEntry]) -> None:
        self._last: dict[str, str] = {}
        for entry in entries:
            self._last[entry.task_id] = max(self._last.get(entry.task_id, ""), entry.timestamp)
        self._in_order = sorted(self._last.values())

    def weight(self, entry: MemoryEntry) -> float:
        """As it is by now."""
        return float(entry.weight * 0.5 ** (self._tasks_since(entry) / HALF_LIFE))

    def _tasks_since(self, entry: MemoryEntry) -> int:
        counted_to = entry.weighed_at or entry.timestamp
        later = len(self._in_order) - bisect_right(self._in_order, counted_to)
        return later - (self._last.get(entry.task_id, "") > counted_to)
