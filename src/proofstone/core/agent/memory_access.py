"""Who may use the memory: whoever has a route to it. Perceiver, executor, agent validator and controller have none."""

from __future__ import annotations

from typing import Final

from proofstone.contracts.memory import MemoryEntry
from proofstone.core.agent.routes import allowed, role_of

ON_ACCEPTANCE: Final = frozenset({"meta_validator"})
"""Roles that remember nothing but what was accepted."""


def may_search(role: str) -> bool:
    return allowed(role, "memory", "MemoryQuery")


def may_write(role: str, entry: MemoryEntry) -> bool:
    return allowed(role, "memory", "MemoryEntry") and (entry.criteria_met or role_of(role) not in ON_ACCEPTANCE)
