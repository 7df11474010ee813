"""What a run of the control loop was started with: its first row, from which a resumed run takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from proofstone.contracts.begun import BegunSetup
from proofstone.contracts.budget import Budget


class SolveSetup(BegunSetup):
    command: Literal["solve"] = "solve"
    goal: str
    """The person's words."""
    tree: str
    """The files that it began with: the person's own, with what they had not committed yet."""
    agents: Mapping[str, tuple[str, ...]]
    """Who serves each role, the fallbacks behind the first."""
    policy: str
    max_replans: int
    time_budget_ms: int
    remembers: bool = True
    """Whether the memory is asked and written."""
    budget: Budget = Budget()
    notes: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return f'"{self.goal}"'
