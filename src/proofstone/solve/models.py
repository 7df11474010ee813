"""The report of a run of the control loop, and its configuration, which a resumed run reads from its first row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import JsonValue

from proofstone.agents.roles.models.solve_messages import (
    CriterionVerdict,
    FinalResult,
    PlanDirective,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.common.models import Budget, BudgetUsage, ChangedPath, FrozenModel
from proofstone.ledger.models import RunConfig


class SolveRound(FrozenModel):
    number: int
    directive: PlanDirective
    """The decision at the end of the round, with the loss, the gradient and the rationale."""
    nabla: float
    """The value that the decision was based on; `directive.grad_l` is the change of L itself."""
    elapsed_ms: int
    subtasks: tuple[SubTask, ...] = ()
    outcomes: tuple[SubTaskOutcome, ...] = ()
    merged: tuple[CriterionVerdict, ...] = ()
    """The verdicts on the merged result, if there was one."""


class SolveReport(FrozenModel):
    """The result of `proofstone solve`, for people and programs."""

    run_id: str
    repository: str
    task: TaskSpec
    result: FinalResult | None = None
    """None while a question is waiting."""
    question: str = ""
    rounds: tuple[SolveRound, ...] = ()
    rejected: tuple[str, ...] = ()
    """The rejected plans, with the reasons."""
    changed: tuple[ChangedPath, ...] = ()
    """The files that differ from those at the start of the run."""
    patch: str = ""
    """The file with these changes, for `git apply`. Nothing is committed."""
    remembered: int = 0
    """The number of entries written to the memory."""
    agents: Mapping[str, str] = {}
    policy: str
    elapsed_ms: int
    dispatches: int = 0
    spent: BudgetUsage = BudgetUsage()
    notes: tuple[str, ...] = ()
    audit: tuple[Mapping[str, JsonValue], ...] = ()
    """What the auditor found in the run, once a session with it has ended."""
    unused_answer: bool = False
    """Whether an answer was given in advance and no question was asked."""
    next_step: str = ""
    """The command to continue with, if there is one."""


class SolveRunConfig(RunConfig):
    command: Literal["solve"] = "solve"
    goal: str
    """The user's own words."""
    tree: str
    """The tree that the run started with: the user's files, including uncommitted changes."""
    agents: Mapping[str, tuple[str, ...]]
    """The agents of each role: the first one serves, the others are its fallbacks."""
    policy: str
    max_replans: int
    time_budget_ms: int
    weights: Mapping[str, float] = {}
    """The weights and thresholds of the controller."""
    remembers: bool = True
    """Whether the run reads and writes the memory."""
    budget: Budget = Budget()
    notes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return f'"{self.goal}"'
