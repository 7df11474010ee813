"""What is remembered from one task to the next."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from assay.contracts.base import Contract


class MemoryType(StrEnum):
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"


class MemoryEntry(Contract):
    entry_id: str
    task_id: str
    type: MemoryType
    content: str
    criteria_met: bool
    timestamp: str
    tags: tuple[str, ...] = ()
    cost: float = 0.0


class Memory(Protocol):
    """A store of entries. Who may call what is `core.agent.memory_access`."""

    def write(self, entry: MemoryEntry) -> None: ...

    def search(self, words: tuple[str, ...], limit: int = 10) -> tuple[MemoryEntry, ...]:
        """The entries that share the most words with these, newest first among equals."""
        ...

    def forget(self, entry_id: str) -> bool:
        """Whether there was such an entry."""
        ...
