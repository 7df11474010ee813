"""The entries of the memory, and the interface of a store."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Final, Protocol

from pydantic import Field

from proofstone.common.models import FrozenModel

TOOL_TAG: Final = "tool:"
"""The prefix of a tag that names a tool that worked or failed: `tool:shell`."""
TARGET_TAG: Final = "target:"
"""The prefix of a tag that names a path."""
PROGRAM_TAG: Final = "program:"
"""The prefix of a tag that names a program of a verify command: `program:tox`."""
CLASS_TAG: Final = "class:"
"""The prefix of a tag that names the class of a failure."""


class MemoryType(StrEnum):
    EPISODIC = "episodic"
    """How a task went."""
    PROCEDURAL = "procedural"
    """What to do or avoid during a task."""
    SEMANTIC = "semantic"
    """A lesson that combines several other entries."""


class MemoryEntry(FrozenModel):
    entry_id: str
    task_id: str
    type: MemoryType
    content: str
    criteria_met: bool
    """Whether it worked. A lesson from failures is a constraint, a lesson from successes a preference."""
    timestamp: str
    """The time of the entry; for a lesson, the time of its newest source."""
    tags: tuple[str, ...] = ()
    cost: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """The cost; for a lesson, the cost of all its sources."""

    run_id: str = ""
    repository: str = ""
    """The repository whose run stored the entry; runs in other repositories see it only if they ask for it."""
    request: str = ""
    """What the person wanted from that run, in their words."""
    role: str = ""
    """The role that stored the entry."""
    sources: tuple[str, ...] = ()
    """Ids of the entries that a lesson combines, the oldest first."""
    source_runs: tuple[str, ...] = ()
    """The runs of those entries."""
    weight: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 1.0
    """The remaining weight. It decays with each later task that does not confirm the entry."""
    weighed_at: str = ""
    """The time up to which later tasks were counted; if empty, the entry's own time."""

    @property
    def tools(self) -> tuple[str, ...]:
        return _values_of_tags(self.tags, TOOL_TAG)

    @property
    def targets(self) -> tuple[str, ...]:
        return _values_of_tags(self.tags, TARGET_TAG)

    @property
    def programs(self) -> tuple[str, ...]:
        return _values_of_tags(self.tags, PROGRAM_TAG)


class MemoryRevision(FrozenModel):
    """A change to the memory that is applied atomically."""

    new: tuple[MemoryEntry, ...] = ()
    """Entries to write. They replace entries with the same id."""
    superseded: tuple[str, ...] = ()
    """Ids of the entries to remove."""


class MemoryStore(Protocol):
    """A store of entries. `agents.rules.routes` decides who may use it."""

    def write(self, entry: MemoryEntry) -> None: ...

    def entries(self) -> tuple[MemoryEntry, ...]:
        """Return all entries in the order in which they were written."""
        ...

    def search(self, words: tuple[str, ...], limit: int = 10) -> tuple[MemoryEntry, ...]:
        """Return the entries that share the most words with these, the newest first among equals."""
        ...

    def revise(self, rule: Callable[[tuple[MemoryEntry, ...]], MemoryRevision]) -> MemoryRevision:
        """Apply the change that the rule returns for all entries. No other process writes in the meantime."""
        ...


def _values_of_tags(tags: tuple[str, ...], kind: str) -> tuple[str, ...]:
    return tuple(tag.removeprefix(kind) for tag in tags if tag.startswith(kind) and tag != kind)
