"""The control loop: what its roles hand each other, what they answer, and what it comes to.

messages.py  the contracts that pass between the roles on the bus
answers.py   what the models behind the roles answer; ids and verdicts that code can give are not theirs
requests.py  what they are asked

What came of a run of the control loop, for people and programs.

What a run of the control loop was started with: its first row, from which a resumed run takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from proofstone.agents.roles.models.solve_messages import (
    CriterionVerdict,
    FinalResult,
    PlanDirective,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.common.models import Budget, ChangedPath, Contract, Spent
from proofstone.ledger.models import BegunSetup


class SolveRound(Contract):
    number: int
    directive: PlanDirective
    """With the loss, the gradient and the rationale: what was decided when the round had ended."""
    nabla: float
    """By which it was decided; `directive.grad_l` is by how much L itself has changed."""
    elapsed_ms: int
    subtasks: tuple[SubTask, ...] = ()
    outcomes: tuple[SubTaskOutcome, ...] = ()
    merged: tuple[CriterionVerdict, ...] = ()
    """What was said of the merged result, where it came to that."""


class SolveReport(Contract):
    run_id: str
    repository: str
    task: TaskSpec
    result: FinalResult | None = None
    """None: a question is waiting."""
    question: str = ""
    rounds: tuple[SolveRound, ...] = ()
    rejected: tuple[str, ...] = ()
    """Plans that were not taken, and why."""
    changed: tuple[ChangedPath, ...] = ()
    """Files that differ from those that it began with."""
    patch: str = ""
    """The file with these changes: `git apply` takes them in. Nothing is committed."""
    remembered: int = 0
    """Entries that were written to the memory."""
    agents: Mapping[str, str] = {}
    policy: str
    elapsed_ms: int
    dispatches: int = 0
    spent: Spent = Spent()
    notes: tuple[str, ...] = ()
    unused_answer: bool = False
    """An answer was given beforehand, and nobody has asked for one."""
    next_step: str = ""
    """The command to go on with, if there is one."""


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
