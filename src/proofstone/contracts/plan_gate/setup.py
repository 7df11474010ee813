"""What a run of the plan gate was started with. It is the first row of the run; a resumed run takes it from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from proofstone.contracts.begun import BegunSetup
from proofstone.contracts.budget import Budget


class PlanGateSetup(BegunSetup):
    command: Literal["verify-plan"] = "verify-plan"
    plan_path: str
    plan_artifact: str
    """SHA-256 of the plan's own bytes: editing the file does not change a run that is under way."""
    agents: Mapping[str, tuple[str, ...]] = {}
    """Who serves each role, the fallbacks behind the first. Nobody: the rules decide alone."""
    alone: str = ""
    """Why nobody is asked, if so."""
    beyond: tuple[str, ...] = ()
    """Tools that look further than the tree, as far as there were any: agents were told of these, whatever there is
    when the run goes on."""
    minutes: float = 0.0
    """The longest that it may take at a time; 0: as long as it needs."""
    budget: Budget = Budget()
    answers: Mapping[str, str] = {}
    """What the person has said beforehand, by challenge."""
    notes: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return self.plan_path
