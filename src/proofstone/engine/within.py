"""A run that is a part of a larger one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofstone.contracts.budget import Budget


@dataclass(frozen=True)
class Within:
    """What the larger run has decided for it; it has seen to the hygiene of the repository, too."""

    parent: str
    run_id: str
    base_commit: str
    settings_commit: str
    """Whose settings decide: what earlier parts have committed cannot loosen them."""
    agents: Mapping[str, tuple[str, ...]]
    """Who serves each role, the fallbacks behind the first."""
    budget: Budget
    asks: bool = False
    """Whether its agents are asked if they know what they are doing."""
    ref: str = ""
    """Where its commits go, if it makes any: a whole name, which is no branch's."""
