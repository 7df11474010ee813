"""Who looks on while a goal is pursued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proofstone.contracts.budget import Spent
from proofstone.contracts.solve.messages import SubTask, SubTaskOutcome
from proofstone.contracts.solve.report import SolveRound


@dataclass(frozen=True)
class Beginning:
    """What is known before anybody is asked."""

    run_id: str
    goal: str
    agents: Mapping[str, str]
    """Who serves whom."""
    policy: str
    max_replans: int
    time_budget_ms: int
    notes: tuple[str, ...] = ()
    resumed: bool = False


class Watching(Protocol):
    """Told from several threads at once while executors work beside each other."""

    def began(self, beginning: Beginning) -> None: ...

    def asked(self, agent: str, about: str) -> None:
        """An agent begins: `planner`, about `round 2`; `executor`, about the intent of its subtask."""
        ...

    def doing(self, agent: str, line: str) -> None:
        """What it does, in a line, in the place of what it did before."""
        ...

    def said(self, agent: str, line: str) -> None:
        """For the person who looks on: a question to them, a pause, a warning."""
        ...

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        """In one line what came of it: `3 subtasks`, or why there is no answer."""
        ...

    def rejected(self, round: int, why: str) -> None:
        """A plan was not taken; the planner is told why."""
        ...

    def planned(self, round: int, subtasks: Sequence[SubTask]) -> None:
        """A plan was taken."""
        ...

    def pursued(self, outcome: SubTaskOutcome) -> None:
        """A subtask has ended."""
        ...

    def decided(self, round: SolveRound) -> None:
        """A round has ended: where the loop stands, and what is next. The last one ends with accept or abandon."""
        ...

    def spending(self, spent: Spent) -> None: ...
