"""How long a run may take. It is counted anew each time that a person goes on with it.

A run that is a part of a larger one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from proofstone.common.models import Budget

_LEAST: Final = 1e-3
"""Minutes that a part is left with: it stops by itself and says so."""


@dataclass(frozen=True)
class Deadline:
    minutes: float
    at: float
    """By the monotonic clock."""

    @classmethod
    def after(cls, minutes: float) -> Deadline:
        """0: it may take as long as it needs."""
        return cls(minutes, time.monotonic() + 60 * minutes if minutes else math.inf)

    @property
    def minutes_left(self) -> float | None:
        """That a part may take; None: as long as it needs."""
        return max(_LEAST, (self.at - time.monotonic()) / 60) if self.minutes else None

    def refuse_if_over(self) -> None:
        if time.monotonic() >= self.at:
            raise OutOfBudgetError(f"it has taken {self.minutes:g} minutes, which is as long as it may")


class OutOfBudgetError(Exception):
    """An agent was stopped by a budget: everything is kept."""


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
