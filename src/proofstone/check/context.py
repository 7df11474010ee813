"""What a run tells whoever watches it. Watching decides nothing.

What the person asked for, and everything outside that a run touches.

A tree under check: its files, checked out when first needed, and the view that its checks get of the world.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from proofstone.check.cache import bytecode_layer
from proofstone.check.environment import Environment
from proofstone.check.models import CheckLine
from proofstone.common.models import Phase
from proofstone.common.secrets import NO_SECRETS, SecretMask
from proofstone.config.settings import Settings
from proofstone.git.checkout import check_out, write_minimal_git
from proofstone.git.repository import Repository
from proofstone.git.snapshot import Snapshot
from proofstone.git.store import Store
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import folders_elsewhere
from proofstone.machine.locks import Slots
from proofstone.sandbox.job import Bind, Limits, Sandbox, View


class Progress(Protocol):
    def step(self, text: str) -> None:
        """A stage of the run begins."""

    def started(self, check: str, phase: Phase) -> None: ...

    def output(self, check: str, phase: Phase, data: bytes) -> None:
        """Called from the thread that runs the check."""

    def ended(self, check: str, phase: Phase, *, reused: bool) -> None: ...

    def judged(self, line: CheckLine) -> None: ...


class Silent:
    """Nobody watches."""

    def step(self, text: str) -> None:
        return None

    def started(self, check: str, phase: Phase) -> None:
        return None

    def output(self, check: str, phase: Phase, data: bytes) -> None:
        return None

    def ended(self, check: str, phase: Phase, *, reused: bool) -> None:
        return None

    def judged(self, line: CheckLine) -> None:
        return None


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


_OBJECTS = Path("/run/proofstone/objects")


@dataclass
class TreeUnderCheck:
    """One of the two trees of a run. Several checks of it run at once and share one checkout."""

    phase: Phase
    tree: str
    commit: str
    """The base commit: HEAD of the `.git` that checks see."""
    folder: Path
    store: Store
    environment: Environment
    state: Path
    """Proofstone's own home, which no check may see."""
    changed: tuple[str, ...] = ()
    """The changed files that this tree has."""
    under: tuple[Path, ...] = ()
    """What the set-up commands wrote."""
    is_derived: bool = False
    """Made from a tree whose objects are known to be sound, and from the engine's own."""
    built: dict[str, Path] = field(default_factory=dict)
    """What builds of this tree wrote, by check."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _view: View | None = None

    def view(self, needs: tuple[str, ...] = ()) -> View:
        """What a check sees that needs these builds."""
        with self._lock:
            if self._view is None:
                self._view = self._make()
        over = tuple(self.built[name] for name in needs if name in self.built)
        return replace(self._view, over=over, under=self.under)

    def derived(self, tree: str, folder: Path) -> TreeUnderCheck:
        """A tree made from this one, under check in the same way, with nothing built yet."""
        return replace(self, tree=tree, folder=folder, is_derived=True, built={}, _lock=threading.Lock(), _view=None)

    def _make(self) -> View:
        checkout = check_out(self.store, self.tree, self.folder, verified=not self.is_derived)
        repository, environment = self.store.repository, self.environment
        stores = [self.store.git_dir / "objects", *repository.object_dirs]
        objects = tuple(Bind(path, _OBJECTS / str(number)) for number, path in enumerate(stores))
        git = write_minimal_git(
            self.store, checkout, self.commit, self.folder / "dot-git", [str(bind.at) for bind in objects]
        )
        return View(
            root=repository.root,
            files=checkout.files,
            git=git,
            objects=objects,
            home=environment.home,
            dependencies=environment.dependencies,
            bytecode=self._bytecode(),
            includes=environment.includes,
            masked=(self.state, *folders_elsewhere(self.state), *environment.masked),
            visible=environment.visible,
            sockets=tuple(Path(path) for path in environment.settings.sockets),
            network=environment.settings.network,
        )

    def _bytecode(self) -> dict[Path, Path]:
        cache = self.state / "cache" / "bytecode"
        layers = {folder: bytecode_layer(folder, cache, self.store.repairs) for folder in self.environment.dependencies}
        return {folder: layer for folder, layer in layers.items() if layer is not None}
