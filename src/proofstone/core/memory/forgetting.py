"""What goes when a person wants something forgotten: the entries, and every lesson that was made of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from proofstone.contracts.memory import MemoryEntry


def named_by(entries: Iterable[MemoryEntry], ids: Collection[str]) -> tuple[MemoryEntry, ...]:
    """Those with these ids, and lessons made of them. An entry that has been let go lives on in its lesson."""
    return tuple(one for one in entries if one.entry_id in ids or not set(ids).isdisjoint(one.sources))


def from_run(entries: Iterable[MemoryEntry], run_id: str) -> tuple[MemoryEntry, ...]:
    """Those of the run, and lessons made of them."""
    return tuple(one for one in entries if run_id in (one.run_id, *one.source_runs))


def known_ids(entries: Iterable[MemoryEntry]) -> frozenset[str]:
    return frozenset(id for one in entries for id in (one.entry_id, *one.sources))
