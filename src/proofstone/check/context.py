"""The context of a check run: the request, the services that the run uses, its progress observer and its trees."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from proofstone.check.cache import ensure_bytecode_layer
from proofstone.check.environment import CheckEnvironment
from proofstone.check.models import CheckLine
from proofstone.common.models import Acceptance, Finding, Phase
from proofstone.common.secrets import NO_SECRETS, SecretMask
from proofstone.config.settings import Settings
from proofstone.git.checkout import check_out, write_minimal_git
from proofstone.git.repository import Repository
from proofstone.git.snapshot import Snapshot
from proofstone.git.store import Store
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import external_folders
from proofstone.machine.locks import CheckSlots
from proofstone.sandbox.job import BindMount, JobLimits, Sandbox, SandboxView


class Progress(Protocol):
    """An observer of a check run. It decides nothing."""

    def on_step(self, text: str) -> None:
        """Called when a stage of the run begins."""

    def on_start(self, check: str, phase: Phase) -> None: ...

    def on_output(self, check: str, phase: Phase, data: bytes) -> None:
        """Called from the thread that runs the check."""

    def on_end(self, check: str, phase: Phase, *, reused: bool) -> None: ...

    def on_check_judged(self, line: CheckLine) -> None: ...


class NullProgress:
    """A progress observer that ignores everything."""

    def on_step(self, text: str) -> None:
        return None

    def on_start(self, check: str, phase: Phase) -> None:
        return None

    def on_output(self, check: str, phase: Phase, data: bytes) -> None:
        return None

    def on_end(self, check: str, phase: Phase, *, reused: bool) -> None:
        return None

    def on_check_judged(self, line: CheckLine) -> None:
        return None


AskAcceptance = Callable[[Sequence[Finding]], Sequence[Acceptance]]
"""Asks a person about the findings of a check, and returns what they accept."""


@dataclass(frozen=True)
class CheckRequest:
    """What the user asked to check."""

    base: str | None = None
    """A revision; if None, the base is chosen by `check.rules.base`."""
    verify: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    must_pass: tuple[str, ...] = ()
    staged: bool = False
    no_cache: bool = False
    rerun_unsandboxed: bool = False
    use_worktree_config: bool = False
    """Use the settings of the work tree although the base has others."""
    setup: tuple[str, ...] = ()
    """Commands that install the dependencies, if the settings name none."""
    accepted: tuple[Acceptance, ...] = ()
    """What a person has accepted already: an approver, or a decision about a task or a dispute."""
    ask_acceptance: AskAcceptance | None = None
    """Asks a person at a terminal about findings that refuse the change; None if nobody can be asked."""
    tree: Snapshot | None = None
    """A frozen tree to check instead of the work tree. It is compared with the base."""
    verify_seconds: float | None = None
    """The deadline of each verify command; if None, the deadline of every check."""
    flaky_allowed: bool = False
    """If true, a verify command or a test that fails and then passes is a concern and not a failure."""
    expectations_only: bool = False
    """If true, only the base's oracle is compared: no linters, and no layer besides the old tests."""
    strength: str | None = None
    """How thoroughly the strength of the tests is measured (`StrengthLevel`); if None, as the settings say."""
    heldout: tuple[str, ...] = ()
    """Commands that must exit with 0 and that the author of the change was never shown."""
    heldout_files: Path | None = None
    """A folder whose files are laid over the tree for the held-out commands only."""


@dataclass(frozen=True)
class RunContext:
    """The services and facts outside the change that a run uses. `app` chooses them."""

    run_id: str
    task_id: str
    """The task under which check rows are recorded: `check`, or a task of a plan."""
    attempt: int
    repository: Repository
    store: Store
    home: Path
    user_home: Path | None
    base_commit: str
    base_tree: str
    settings: Settings
    notes: tuple[str, ...]
    """Notes for the user that are known before anything has run."""
    ledger: Ledger
    ledger_path: Path
    artifacts: ArtifactStore
    sandbox: Sandbox
    bare: Sandbox | None
    slots: CheckSlots
    scratch: Path
    cancel: threading.Event
    progress: Progress
    accepted: tuple[Acceptance, ...] = ()
    """What the settings of the base accept."""
    held_out: tuple[Path, ...] = ()
    """What held-out checks consist of. No sandbox shows it but that of a held-out check."""
    secrets: SecretMask = NO_SECRETS
    """Masks the values of variables that are passed to checks and executors, in everything they print."""
    base_reason: str = ""
    """Why this base was chosen; empty if the caller gave it."""

    def job_limits(self, seconds: float, idle_seconds: float | None = None) -> JobLimits:
        """Return the limits of one sandbox job, from the settings."""
        sandbox = self.settings.sandbox
        return JobLimits(
            seconds=seconds,
            memory_mb=sandbox.memory_mb,
            processes=sandbox.processes,
            disk_mb=sandbox.disk_mb,
            allowed=frozenset(sandbox.allow),
            idle_seconds=idle_seconds,
        )


_OBJECTS_FOLDER = Path("/run/proofstone/objects")


@dataclass
class TreeUnderCheck:
    """One of the two trees of a run. Its checks run in parallel and share one checkout."""

    phase: Phase
    tree: str
    commit: str
    """The base commit. It is HEAD in the `.git` that checks see."""
    folder: Path
    store: Store
    environment: CheckEnvironment
    state: Path
    """Proofstone's own home folder, which no check may see."""
    held_out: tuple[Path, ...] = ()
    """What held-out checks consist of."""
    changed: tuple[str, ...] = ()
    """The changed files that exist in this tree."""
    under: tuple[Path, ...] = ()
    """Layers below the tree that the set-up commands wrote."""
    is_derived: bool = False
    """Whether the tree was made from a tree whose objects were verified and from objects of the engine."""
    built: dict[str, Path] = field(default_factory=dict)
    """Layers that builds of this tree wrote, by check name."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _view: SandboxView | None = None

    def view(self, needs: tuple[str, ...] = ()) -> SandboxView:
        """Return the sandbox view for a check that needs these builds."""
        with self._lock:
            if self._view is None:
                self._view = self._check_out_view()
        over = tuple(self.built[name] for name in needs if name in self.built)
        return replace(self._view, overlays=over, underlays=self.under)

    def derive(self, tree: str, folder: Path) -> TreeUnderCheck:
        """Return a tree made from this one, with the same settings and no builds."""
        return replace(self, tree=tree, folder=folder, is_derived=True, built={}, _lock=threading.Lock(), _view=None)

    def _check_out_view(self) -> SandboxView:
        checkout = check_out(self.store, self.tree, self.folder, verified=not self.is_derived)
        repository, environment = self.store.repository, self.environment
        stores = [self.store.git_dir / "objects", *repository.object_dirs]
        objects = tuple(BindMount(path, _OBJECTS_FOLDER / str(number)) for number, path in enumerate(stores))
        git = write_minimal_git(
            self.store, checkout, self.commit, self.folder / "dot-git", [str(bind.at) for bind in objects]
        )
        return SandboxView(
            root=repository.root,
            files=checkout.files,
            git=git,
            objects=objects,
            home=environment.home,
            dependencies=environment.dependencies,
            bytecode=self._bytecode_layers(),
            includes=environment.includes,
            masked=(self.state, *external_folders(self.state), *environment.masked_paths, *self.held_out),
            visible=environment.visible_folders,
            sockets=tuple(Path(path) for path in environment.settings.sockets),
            network=environment.settings.network,
        )

    def _bytecode_layers(self) -> dict[Path, Path]:
        cache = self.state / "cache" / "bytecode"
        layers = {
            folder: ensure_bytecode_layer(folder, cache, self.store.repairs) for folder in self.environment.dependencies
        }
        return {folder: layer for folder, layer in layers.items() if layer is not None}
