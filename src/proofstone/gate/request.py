"""What a person asks the gate for, and what they may say to a run that is under way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from proofstone.check.context import Progress
from proofstone.common.models import Spent
from proofstone.gate.models import Override, RunView
from proofstone.runtime.context import Within


@dataclass(frozen=True)
class GateRequest:
    """What `proofstone gate` was asked for; what is not said comes from the settings."""

    executor: str | None = None
    architect: str | None = None
    branch: str | None = None
    """Where the commits go; else `proofstone/<slug of the plan>`. The branch that is checked out may be named."""
    slots: int | None = None
    hooks: str | None = None
    sign: bool = True
    """Sign commits where git is configured to; False is recorded."""
    allow_dirty: bool = False
    minutes: float | None = None
    """The wall-clock budget of the run."""
    budget: tuple[str, ...] = ()
    """What agents may spend, where it is not as the settings say: `usd=5`, `task.tokens=200000`."""
    require_sandbox: bool = False
    verified: bool = False
    """Refuse a plan that is not through the plan gate, also where the settings do not."""
    heldout_files: Path | None = None
    """A folder whose files are laid over the tree for the plan's held-out commands, and only for them."""
    wait: bool = True
    """Wait for a person who executes a task, instead of stopping with what is left."""
    within: Within | None = None


@dataclass(frozen=True)
class ResumeRequest:
    retry: tuple[str, ...] = ()
    """Tasks, or `all`, that are to be tried again although they have no attempts left."""
    note: str = ""
    """What the next attempt is to do differently."""
    by: str = "person"
    minutes: float | None = None
    budget: tuple[str, ...] = ()
    """What agents may spend from now on, in all: what they have spent already counts."""
    wait: bool = True


class WordKind(StrEnum):
    DONE = "done"
    """A checkpoint is met, a person's work is finished, or what was skipped is committed."""
    APPROVED = "approved"
    REJECTED = "rejected"
    RETRY = "retry"
    SKIP = "skip"
    FORCE = "force"


@dataclass(frozen=True)
class Word:
    """Something a person says about one task of a run."""

    kind: WordKind
    by: str
    text: str = ""
    override: Override | None = None


class Watching(Protocol):
    """Whoever looks on. Watching decides nothing."""

    def began(self, view: RunView) -> None: ...

    def changed(self, view: RunView, task: str) -> None:
        """Something happened to the task."""

    def said(self, task: str, line: str) -> None:
        """A line for the person."""

    def output(self, task: str, data: bytes) -> None:
        """What the executor prints, while it does. Called from its own thread."""

    def doing(self, task: str, line: str) -> None:
        """What the task's agent does between two turns. Called from its own thread."""

    def checks(self, task: str) -> Progress:
        """For the checks of that task."""
        ...

    def spending(self, spent: Spent) -> None:
        """What the run's agents have spent so far. Called from their own threads."""
