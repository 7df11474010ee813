"""What a person asks the gate for, the commands that they may give to a run, and the observer of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from proofstone.check.context import Progress
from proofstone.common.models import AcceptanceMethod, BudgetUsage
from proofstone.gate.models import Override, RunView
from proofstone.runtime.context import ParentRun


@dataclass(frozen=True)
class GateRequest:
    """The options of `proofstone gate`. Options that are not given come from the settings."""

    executor: str | None = None
    architect: str | None = None
    branch: str | None = None
    """The branch for the commits; else `proofstone/<slug of the plan>`. The checked-out branch is allowed."""
    slots: int | None = None
    hooks: str | None = None
    sign: bool = True
    """Sign commits if git is configured to; False is recorded."""
    allow_dirty: bool = False
    minutes: float | None = None
    """The wall-clock budget of the run."""
    budget: tuple[str, ...] = ()
    """What agents may spend, if not as the settings say: `usd=5`, `task.tokens=200000`."""
    require_sandbox: bool = False
    requires_verified_plan: bool = False
    """Refuse a plan that has not passed the plan gate, even if the settings do not require it."""
    heldout_files: Path | None = None
    """A folder whose files are copied over the tree only for the plan's held-out commands."""
    waits_for_person: bool = True
    """Wait for a person who executes a task, instead of stopping."""
    parent_run: ParentRun | None = None


@dataclass(frozen=True)
class ResumeRequest:
    """The options of `proofstone resume` for a run of the gate."""

    retry: tuple[str, ...] = ()
    """Tasks, or `all`, to try again although they have no attempts left."""
    note: str = ""
    """What the next attempt should do differently."""
    seconds: float | None = None
    """The deadline of the steps of these tasks from now on."""
    by: str = "person"
    minutes: float | None = None
    budget: tuple[str, ...] = ()
    """What agents may spend in total from now on. What they have spent already counts."""
    waits_for_person: bool = True


class UserCommandKind(StrEnum):
    """What a user command does."""

    DONE = "done"
    """A checkpoint is met, a person's work is finished, or the replacement for a skipped task is committed."""
    APPROVED = "approved"
    REJECTED = "rejected"
    RETRY = "retry"
    ACCEPT = "accept"
    """Accept the findings that refuse the task; or agree with what the executor disputes."""
    REJECT = "reject"
    """Reject what the executor disputes: the task stays as it is."""
    AMEND = "amend"
    """Decide a dispute in other words: what the next attempt is to do."""
    SKIP = "skip"
    FORCE = "force"


@dataclass(frozen=True)
class UserCommand:
    """A command of a person about one task of a run."""

    kind: UserCommandKind
    by: str
    text: str = ""
    override: Override | None = None
    method: AcceptanceMethod = AcceptanceMethod.INTERACTIVE
    """How a person accepted something, for `accept`."""
    seconds: float | None = None
    """The deadline of the next attempt, for `retry`."""


class GateObserver(Protocol):
    """Observes a run. An observer decides nothing."""

    def on_run_started(self, view: RunView) -> None: ...

    def on_task_changed(self, view: RunView, task: str) -> None:
        """The state of the task changed."""

    def on_message(self, task: str, line: str) -> None:
        """Show a line to the person."""

    def on_output(self, task: str, data: bytes) -> None:
        """Receive output of the executor. Called from the executor's thread."""

    def on_activity(self, task: str, line: str) -> None:
        """Receive what the task's agent does between two turns. Called from the agent's thread."""

    def on_checks_started(self, task: str) -> Progress:
        """Return the progress observer for the checks of the task."""
        ...

    def on_spending(self, spent: BudgetUsage) -> None:
        """Receive what the run's agents have spent so far. Called from their threads."""
