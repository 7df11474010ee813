"""The limits of a run: its deadline, and what a parent run decides for a run that it starts."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from proofstone.common.models import Budget

_MIN_MINUTES: Final = 1e-3
"""The fewest minutes that a child run gets: it then stops by itself and reports why."""


@dataclass
class Deadline:
    minutes: float
    at: float
    """The time of the deadline on the monotonic clock."""

    @classmethod
    def after(cls, minutes: float) -> Deadline:
        """Return the deadline that is `minutes` from now; 0 means no limit. Each resume starts a new deadline."""
        return cls(minutes, time.monotonic() + 60 * minutes if minutes else math.inf)

    @property
    def minutes_left(self) -> float | None:
        """The minutes that a child run may take; None means no limit."""
        return max(_MIN_MINUTES, (self.at - time.monotonic()) / 60) if self.minutes else None

    def extend(self, seconds: float) -> None:
        """Move the deadline by the time that a person took to answer."""
        self.at += seconds

    def raise_if_over(self) -> None:
        if time.monotonic() >= self.at:
            raise OutOfBudgetError(f"the run reached its limit of {self.minutes:g} minutes")


class OutOfBudgetError(Exception):
    """A budget stopped an agent. Everything up to this point is recorded."""


@dataclass(frozen=True)
class ParentRun:
    """What a parent run decides for its child run. The parent has also checked the hygiene of the repository."""

    parent: str
    run_id: str
    base_commit: str
    settings_commit: str
    """The commit whose settings apply, so that the commits of earlier parts cannot loosen them."""
    agents: Mapping[str, tuple[str, ...]]
    """The agents of each role: the first one serves, the others are its fallbacks."""
    budget: Budget
    checks_understanding: bool = False
    """Whether the engine asks the agents if they understand their task."""
    judges_criteria: bool = False
    """Whether the parent run has the criteria judged that no check shows."""
    ref: str = ""
    """The full name of the ref that receives the commits of the run, if there are any. It is not a branch."""
