"""A run of the gate, as people and programs see it: derived from the ledger, at any time."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from proofstone.contracts.base import Contract
from proofstone.contracts.budget import Budget, Spent
from proofstone.contracts.gate import Failure, TaskState
from proofstone.contracts.gate_record import Override, TaskRecord
from proofstone.contracts.plan import Plan
from proofstone.contracts.verdict import Confidence


class RunOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    HALTED = "halted"
    NEEDS_HUMAN = "needs_human"
    BUDGET_EXHAUSTED = "budget_exhausted"


class Step(Contract):
    """When something happened to a task."""

    seq: int = 0
    """Of the ledger's row."""
    at: str
    attempt: int
    kind: str
    """The event's: `started`, `executed`, `checked` …"""
    state: TaskState
    """What the task was after it."""


class TaskView(Contract):
    record: TaskRecord
    steps: tuple[Step, ...] = ()
    waits_for: tuple[str, ...] = ()
    """Tasks that it still waits for."""
    asks: str = ""
    """What a person is asked, if anything: a checkpoint, a review, what to do about a failure."""
    work_tree: str | None = None
    """Where a person works on it, while they do."""
    confidence: Confidence | None = None


class RunView(Contract):
    """Everything that is known of a run."""

    run_id: str
    plan: Plan
    plan_path: str
    repository: str
    branch: str
    base_commit: str
    executor: str
    architect: str
    started_at: str
    updated_at: str
    running: bool
    """A process is at work on it now."""
    outcome: RunOutcome | None
    """None while it goes on, or when it was interrupted."""
    interrupted: bool
    reason: str
    """Why the outcome is not `passed`, in one line."""
    tasks: tuple[TaskView, ...]
    must_haves: tuple[MustHaveResult, ...] = ()
    warnings: tuple[str, ...] = ()
    spent: Spent = Spent()
    """By agents, so far."""
    budget: Budget = Budget()
    ledger: str

    def task(self, id: str) -> TaskView:
        return next(task for task in self.tasks if task.record.id == id)


class MustHaveResult(Contract):
    """One of the plan's must-haves, looked at after the last task."""

    what: str
    holds: bool | None
    """None: only a person or a model can judge it."""
    detail: str = ""


class TaskReport(Contract):
    id: str
    name: str
    state: TaskState
    attempts: int
    confidence: Confidence | None
    commit: str | None
    failures: tuple[Failure, ...]
    concerns: tuple[str, ...] = ()
    override: Override | None = None
    asks: str = ""


class GateReport(Contract):
    """The document of `proofstone gate --json`."""

    run_id: str
    outcome: RunOutcome
    reason: str
    confidence: Confidence | None
    tasks: tuple[TaskReport, ...]
    commit: str | None
    """The last commit that the run made."""
    branch: str
    must_haves: tuple[MustHaveResult, ...] = ()
    bundle: str | None
    """SUMMARY.md, if it was written."""
    state: str
    """STATE.md."""
    ledger: str
    cost: Mapping[str, float] = {}
    notes: tuple[str, ...] = ()


RunView.model_rebuild()
