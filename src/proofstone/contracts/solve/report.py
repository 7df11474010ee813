"""What came of a run of the control loop, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping

from proofstone.contracts.base import Contract
from proofstone.contracts.budget import Spent
from proofstone.contracts.change import ChangedPath
from proofstone.contracts.solve.messages import (
    CriterionVerdict,
    FinalResult,
    PlanDirective,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)


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
