"""What a run of the gate was started with. It is the first row of the run, and a resumed run takes it from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from proofstone.contracts.begun import BegunSetup
from proofstone.contracts.budget import Budget

Hooks = Literal["refuse", "run", "skip"]


class GateSetup(BegunSetup):
    command: Literal["gate"] = "gate"
    plan_path: str
    plan_artifact: str
    """The plan's own bytes: editing the file does not change a run that is under way."""
    branch: str
    executor: str
    architect: str
    fallbacks: Mapping[str, tuple[str, ...]] = {}
    """By role: who is asked where the first does not answer."""
    budget: Budget = Budget()
    """What agents may spend."""
    slots: int
    minutes: float
    hooks: Hooks
    skipped_hooks: tuple[str, ...] = ()
    sign: bool
    author_name: str
    author_email: str
    require_sandbox: bool = False
    asks: bool = False
    """Whether executors are asked if they know what they are doing."""
    heldout_files: str | None = None
    sandbox: str
    notes: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return self.plan_path
