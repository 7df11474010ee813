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
from proofstone.agents.sandbox_shell import WorkShellSetup, build_work_shell, find_secret_files
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.check.context import RunContext
from proofstone.common.models import Assurance, ChangedPath
from proofstone.errors import RepositoryError
from proofstone.git.snapshot import Snapshot, compare_trees
from proofstone.git.store import pin, unpin
from proofstone.git.work_tree import WorkTree, create_work_tree, find_oversized_file, freeze_work_tree, remove_work_tree
from proofstone.ledger.artifacts import ArtifactWriter
from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import JobLimits

_TREE_PIN: Final = "tree"
START_PIN: Final = "beginning"
"""The names under which its trees are pinned."""


@dataclass
class SolveWorkspace:
    context: RunContext
    start_tree: str
    """The tree with the user's own files."""
    tree: str
    """The tree of the last freeze."""
    _work_tree: WorkTree | None = None
    _counter: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._demand_tree(self.start_tree)

    @property
    def work_tree(self) -> WorkTree:
        with self._lock:
            if self._work_tree is None:
                self._demand_tree(self.tree)
                self._work_tree = create_work_tree(
                    self.context.store,
                    self._folder,
                    base_commit=self.context.base_commit,
                    tree=self.tree,
                    sandboxed=self.context.sandbox.level is Assurance.BUBBLEWRAP,
                )
            return self._work_tree

    def restore(self, tree: str) -> None:
        """Continue from a tree that is recorded for a step."""
        if tree != self.tree:
            self.tree, self._work_tree = tree, None

    def freeze(self) -> str:
        """Freeze the current files and return the tree. If that fails, raise RepositoryError and go back to the
        previous tree.
        """
        work_tree, self._work_tree = self.work_tree, None
        if reason := find_oversized_file(work_tree.files):
            raise RepositoryError(f"the work tree cannot be frozen: {reason}")
        tree = freeze_work_tree(self.context.store, work_tree, self.context.base_tree).tree
        pin(self.context.store, self.context.run_id, _TREE_PIN, tree)
        self.tree = tree
        return tree

    @contextmanager
    def open_shell(self, sink: ArtifactWriter, limits: JobLimits, *, keeps: bool) -> Iterator[SandboxedShell]:
        """Open a shell in the work tree. With `keeps` false, and outside of the work tree, its changes are
        discarded.
        """
        world, place = self.context, self.work_tree
        scratch = world.scratch / f"at-{next(self._counter)}"
        scratch.mkdir(mode=0o700)
        hidden = find_secret_files(world, self.tree)
        standing = WorkShellSetup(place, world.base_commit, scratch, limits, keeps_writes=keeps, hidden=hidden)
        try:
            yield build_work_shell(world, standing, sink)
        finally:
            remove_folder(scratch)

    def tool_context(self, shell: SandboxedShell | None = None) -> ToolContext:
        """Return the context of tools. With a shell they may change everything, without one nothing."""
        world = self.context
        return ToolContext(
            files=self.work_tree.files,
            scope=("**",) if shell is not None else (),
            run=shell,
            git=world.store.git(),
            commit=world.base_commit,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
            mask=world.secrets,
        )

    def list_changes(self, since: str = "") -> tuple[ChangedPath, ...]:
        """Return the files that differ from an earlier tree, or from the tree at the start."""
        old = since or self.start_tree
        return Snapshot(self.tree, old, tuple(compare_trees(self.context.store.git(), old, self.tree)), ()).change.paths

    @property
    def is_unchanged(self) -> bool:
        """Whether the files are the same as at the start."""
        return self.tree == self.start_tree

    def build_patch(self) -> bytes:
        """Return the patch from the user's own files to the current ones."""
        return self.context.store.git().run_output("diff-tree", "-p", "--binary", self.start_tree, self.tree)

    def close(self) -> None:
        """Remove the work tree. Only recorded trees remain."""
        remove_work_tree(self._folder)
        if self._folder.parent.is_dir():
            self._folder.parent.rmdir()

    def unpin(self) -> None:
        """Unpin the trees: the run is over, and its result is in its patch."""
        unpin(self.context.store, self.context.run_id)

    def _demand_tree(self, tree: str) -> None:
        world = self.context
        if world.store.git().try_line("rev-parse", "--verify", "--quiet", f"{tree}^{{tree}}") is None:
            raise RepositoryError(
                f"{world.run_id}: the files to continue from ({tree[:12]}) are no longer in {world.store.folder}",
                hint="start a new run with `proofstone solve`; the ledger keeps this record",
            )

    @property
    def _folder(self) -> Path:
        return self.context.home / "work" / self.context.run_id / "goal"
