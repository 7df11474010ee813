"""What is remembered from one task to the next."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Final, Protocol

from pydantic import Field

from proofstone.common.models import Contract

TOOL: Final = "tool:"
"""A tag that begins so names a tool that worked, or failed: `tool:shell`."""
TARGET: Final = "target:"
"""One that begins so names a path."""
CLASS: Final = "class:"
"""One that begins so says of what class a failure was."""


class MemoryType(StrEnum):
    EPISODIC = "episodic"
    """How a task went."""
    PROCEDURAL = "procedural"
    """What to do, or not to do, in the course of one."""
    SEMANTIC = "semantic"
    """A lesson that was made of several of the others."""


class MemoryEntry(Contract):
    entry_id: str
    task_id: str
    type: MemoryType
    content: str
    criteria_met: bool
    """Whether it worked. A lesson made of what failed is a constraint, and one of what worked a preference."""
    timestamp: str
    """Of a lesson: when the newest that it was made of came about."""
    tags: tuple[str, ...] = ()
    cost: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Of a lesson: of all that it was made of."""

    run_id: str = ""
    role: str = ""
    """Who had it remembered."""
    sources: tuple[str, ...] = ()
    """Entries that a lesson was made of, the oldest first."""
    source_runs: tuple[str, ...] = ()
    """The runs that those came from."""
    weight: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 1.0
    """How much of it is left. It halves with the tasks that came since and did not confirm it."""
    weighed_at: str = ""
    """Up to when those were counted; empty: its own time."""

    @property
    def tools(self) -> tuple[str, ...]:
        return _tagged(self.tags, TOOL)

    @property
    def targets(self) -> tuple[str, ...]:
        return _tagged(self.tags, TARGET)


class Revision(Contract):
    """A change to the whole memory, which is made as one."""

    new: tuple[MemoryEntry, ...] = ()
    """To be written; one that is there already under the same id is replaced."""
    superseded: tuple[str, ...] = ()
    """Ids of those to be let go."""


class Memory(Protocol):
    """A store of entries. Who may call what is `agents.rules.tool_rules`."""

    def write(self, entry: MemoryEntry) -> None: ...

    def entries(self) -> tuple[MemoryEntry, ...]:
        """All of them, in the order in which they were written."""
        ...

    def search(self, words: tuple[str, ...], limit: int = 10) -> tuple[MemoryEntry, ...]:
        """The entries that share the most words with these, newest first among equals."""
        ...

    def forget(self, entry_id: str) -> bool:
        """Whether there was such an entry."""
        ...

    def revise(self, rule: Callable[[tuple[MemoryEntry, ...]], Revision]) -> Revision:
        """Make the change that the rule wants, seeing all entries; nobody else writes meanwhile."""
        ...


def _tagged(tags: tuple[str, ...], kind: str) -> tuple[str, ...]:
    return tuple(tag.removeprefix(kind) for tag in tags if tag.startswith(kind) and tag != kind)
