"""What a run of the control loop was started with: its first row, from which a resumed run takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from assay.contracts.base import Contract
from assay.contracts.budget import Budget


class SolveSetup(Contract):
    command: Literal["solve"] = "solve"
    version: str
    """Of the engine: another one may decide otherwise, so it does not go on with this run."""
    repository: str
    goal: str
    """The person's words."""
    base_commit: str
    tree: str
    """The files that it began with: the person's own, with what they had not committed yet."""
    agents: Mapping[str, tuple[str, ...]]
    """Who serves each role, the fallbacks behind the first."""
    policy: str
    max_replans: int
    time_budget_ms: int
    settings_commit: str = ""
    """Whose settings decide, if it is not the base."""
    remembers: bool = True
    """Whether the memory is asked and written."""
    budget: Budget = Budget()
    notes: tuple[str, ...] = ()

    @property
    def plan_path(self) -> str:
        """How it is named where runs are named by their plan."""
        return f'"{self.goal}"'
