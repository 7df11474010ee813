"""The work tree in which a goal is pursued: every executor finds it as the previous one left it.

When an executor has ended, its files are frozen to a tree, and that tree is recorded with the result. The next
executor, in this process or in one that resumes the run, gets a work tree made from it. So only what the user will
receive counts: ignored files and changes to the executor's own `.git` prove nothing.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofstone.agents.executors.context import SandboxedShell
from proofstone.agents.sandbox_shell import Standing, secret_files, shell_in
from proofstone.agents.tools.tool_context import Ground
from proofstone.check.context import World
from proofstone.common.models import Assurance, ChangedPath
from proofstone.errors import RepositoryError
from proofstone.git.snapshot import Snapshot, difference
from proofstone.git.store import hold, let_go
from proofstone.git.work_tree import WorkTree, freeze, make_work_tree, remove_work_tree, too_heavy
from proofstone.ledger.artifacts import ArtifactWriter
from proofstone.machine.files import remove
from proofstone.sandbox.job import Limits

_TREE_PIN: Final = "tree"
BEGINNING: Final = "beginning"
"""The names under which its trees are pinned."""


@dataclass
class Workspace:
    world: World
    began_with: str
    """The tree with the user's own files."""
    tree: str
    """The tree of the last freeze."""
    _work_tree: WorkTree | None = None
    _counter: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._demand_tree(self.began_with)

    @property
    def place(self) -> WorkTree:
        with self._lock:
            if self._work_tree is None:
                self._demand_tree(self.tree)
                self._work_tree = make_work_tree(
                    self.world.store,
                    self._folder,
                    base_commit=self.world.base_commit,
                    tree=self.tree,
                    sandboxed=self.world.sandbox.level is Assurance.BUBBLEWRAP,
                )
            return self._work_tree

    def stand_at(self, tree: str) -> None:
        """Continue from a tree that is recorded for a step."""
        if tree != self.tree:
            self.tree, self._work_tree = tree, None

    def frozen(self) -> str:
        """Freeze the current files and return the tree. If that fails, raise RepositoryError and go back to the
        previous tree.
        """
        work_tree, self._work_tree = self.place, None
        if reason := too_heavy(work_tree.files):
            raise RepositoryError(f"the work tree cannot be frozen: {reason}")
        tree = freeze(self.world.store, work_tree, self.world.base_tree).tree
        hold(self.world.store, self.world.run_id, _TREE_PIN, tree)
        self.tree = tree
        return tree

    @contextmanager
    def shell(self, sink: ArtifactWriter, limits: Limits, *, keeps: bool) -> Iterator[SandboxedShell]:
        """Open a shell in the work tree. With `keeps` false, and outside of the work tree, its changes are
        discarded.
        """
        world, place = self.world, self.place
        scratch = world.scratch / f"at-{next(self._counter)}"
        scratch.mkdir(mode=0o700)
        hidden = secret_files(world, self.tree)
        standing = Standing(place, world.base_commit, scratch, limits, keeps=keeps, hidden=hidden)
        try:
            yield shell_in(world, standing, sink)
        finally:
            remove(scratch)

    def ground(self, shell: SandboxedShell | None = None) -> Ground:
        """Return the context of tools. With a shell they may change everything, without one nothing."""
        world = self.world
        return Ground(
            files=self.place.files,
            scope=("**",) if shell is not None else (),
            run=shell,
            git=world.store.git(),
            commit=world.base_commit,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
            mask=world.secrets,
        )

    def changed(self, since: str = "") -> tuple[ChangedPath, ...]:
        """Return the files that differ from an earlier tree, or from the tree at the start."""
        old = since or self.began_with
        return Snapshot(self.tree, old, tuple(difference(self.world.store.git(), old, self.tree)), ()).change.paths

    @property
    def untouched(self) -> bool:
        """Whether the files are the same as at the start."""
        return self.tree == self.began_with

    def patch(self) -> bytes:
        """Return the patch from the user's own files to the current ones."""
        return self.world.store.git().out("diff-tree", "-p", "--binary", self.began_with, self.tree)

    def close(self) -> None:
        """Remove the work tree. Only recorded trees remain."""
        remove_work_tree(self._folder)
        if self._folder.parent.is_dir():
            self._folder.parent.rmdir()

    def let_go(self) -> None:
        """Unpin the trees: the run is over, and its result is in its patch."""
        let_go(self.world.store, self.world.run_id)

    def _demand_tree(self, tree: str) -> None:
        world = self.world
        if world.store.git().maybe("rev-parse", "--verify", "--quiet", f"{tree}^{{tree}}") is None:
            raise RepositoryError(
                f"{world.run_id}: the files to continue from ({tree[:12]}) are no longer in {world.store.folder}",
                hint="start a new run with `proofstone solve`; the ledger keeps this record",
            )

    @property
    def _folder(self) -> Path:
        return self.world.home / "work" / self.world.run_id / "goal"
