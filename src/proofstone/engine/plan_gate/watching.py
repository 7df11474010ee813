"""Who looks on while a plan is put through the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proofstone.contracts.budget import Spent
from proofstone.contracts.plan_gate.record import Challenge, IterationState, PlanQuality, TeamMode
from proofstone.contracts.plan_gate.report import Complexity, PlanEvent


@dataclass(frozen=True)
class Beginning:
    """What is known before anybody is asked."""

    run_id: str
    plan_path: str
    title: str
    quality: PlanQuality
    complexity: Complexity
    team_mode: TeamMode
    agents: Mapping[str, str]
    """Who serves whom. Nobody: the rules alone."""
    note: str = ""
    """Why nobody is asked, if so."""


class Watching(Protocol):
    """Told from several threads at once while agents work beside each other."""

    def began(self, beginning: Beginning) -> None: ...

    def iterating(self, iteration: int) -> None: ...

    def asked(self, agent: str) -> None:
        """An agent begins: `challenger`, `researcher:resolve`."""
        ...

    def doing(self, agent: str, line: str) -> None:
        """What it does, in a line, in the place of what it did before."""
        ...

    def said(self, agent: str, line: str) -> None:
        """For the person who looks on: a question to them, a pause, a warning."""
        ...

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        """In one line: `4 challenges`, or why there is no answer."""
        ...

    def decided(self, state: IterationState, challenges: Sequence[Challenge], events: Sequence[PlanEvent]) -> None:
        """An iteration has ended; `events` are those of this iteration."""
        ...

    def spending(self, spent: Spent) -> None: ...
