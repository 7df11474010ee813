"""Entries for tests: everything has a default but what a test is about."""

from __future__ import annotations

from proofstone.agents.memory.models import MemoryEntry, MemoryType

EPISODIC, PROCEDURAL, SEMANTIC = MemoryType.EPISODIC, MemoryType.PROCEDURAL, MemoryType.SEMANTIC

ROWS = "count the rows of the table"


def moment(number: int) -> str:
    """The later, the larger."""
    return f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"


def entry(
    id: str,
    content: str = ROWS,
    *,
    at: int = 0,
    type: MemoryType = EPISODIC,
    met: bool = True,
    tags: tuple[str, ...] = (),
    task: str = "",
    run: str = "",
    cost: float = 0.0,
    sources: tuple[str, ...] = (),
    source_runs: tuple[str, ...] = (),
    weight: float = 1.0,
) -> MemoryEntry:
    """Each of a task of its own, unless it is said."""
    return MemoryEntry(
        entry_id=id,
        task_id=task or f"task of {id}",
        type=type,
        content=content,
        criteria_met=met,
        timestamp=moment(at),
        tags=tags,
        cost=cost,
        run_id=run,
        sources=sources,
        source_runs=source_runs,
        weight=weight,
    )


def failure(id: str, content: str = ROWS, *, at: int = 0, tags: tuple[str, ...]) -> MemoryEntry:
    return entry(id, content, at=at, type=PROCEDURAL, met=False, tags=tags, run=f"run of {id}")


def lesson(
    id: str, content: str = ROWS, *, at: int = 0, tags: tuple[str, ...], runs: tuple[str, ...] = ("r1", "r2")
) -> MemoryEntry:
    """Made of what failed, in two runs unless it is said."""
    return entry(id, content, at=at, type=SEMANTIC, met=False, tags=tags, source_runs=runs)
