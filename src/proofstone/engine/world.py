"""What the person asked for, and everything outside that a run touches."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proofstone.adapters.git.repository import Repository
from proofstone.adapters.git.snapshot import Snapshot
from proofstone.adapters.git.store import Store
from proofstone.adapters.ledger import Ledger
from proofstone.adapters.ledger.artifacts import ArtifactStore
from proofstone.adapters.sandbox.job import Limits, Sandbox
from proofstone.adapters.slots import Slots
from proofstone.config import Settings
from proofstone.core.masking import NO_SECRETS, SecretMask
from proofstone.engine.progress import Progress


@dataclass(frozen=True)
class CheckRequest:
    """What the person asked for."""

    base: str | None = None
    """A revision; else what the settings say."""
    verify: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    must_pass: tuple[str, ...] = ()
    staged: bool = False
    fresh: bool = False
    compare_bare: bool = False
    own_settings: bool = False
    """Use the settings of the work tree, although the base has others."""
    accept_test_changes: str = ""
    """The person's reason, if what it does to tests and to what decides them is meant."""
    accept: Mapping[str, str] = field(default_factory=dict)
    """Rules of findings that the person takes upon themselves, each with a reason."""
    tree: Snapshot | None = None
    """What is checked instead of the work tree: a tree that was frozen already, compared with the base."""
    verify_seconds: float | None = None
    """The deadline of each verify command; else that of every check."""
    flaky_allowed: bool = False
    """A verify command, or a test, that fails and then passes is a concern, not a failure."""
    heldout: tuple[str, ...] = ()
    """Commands that must exit 0 and that whoever made the change was never shown."""
    heldout_files: Path | None = None
    """A folder whose files are laid over the tree for those commands, and only for them."""


@dataclass(frozen=True)
class World:
    """Everything outside that a run touches, chosen in `app.py`."""

    run_id: str
    task_id: str
    """What rows of checks are filed under: `check`, or a task of a plan."""
    attempt: int
    repository: Repository
    store: Store
    home: Path
    user_home: Path | None
    base_commit: str
    base_tree: str
    settings: Settings
    notes: tuple[str, ...]
    """What the person should know before anything has run."""
    ledger: Ledger
    ledger_path: Path
    artifacts: ArtifactStore
    sandbox: Sandbox
    bare: Sandbox | None
    slots: Slots
    scratch: Path
    cancel: threading.Event
    progress: Progress
    secrets: SecretMask = NO_SECRETS
    """Values of the variables that checks and executors are passed: masked in everything that they say."""

    def job_limits(self, seconds: float, idle_seconds: float | None = None) -> Limits:
        """Return the limits of one job in the sandbox, as the settings have them."""
        sandbox = self.settings.sandbox
        return Limits(
            seconds=seconds,
            memory_mb=sandbox.memory_mb,
            processes=sandbox.processes,
            disk_mb=sandbox.disk_mb,
            allowed=frozenset(sandbox.allow),
            idle_seconds=idle_seconds,
        )
