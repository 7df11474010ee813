"""Where a goal is pursued: a private work tree, which every executor finds as those before it left it.

What it holds is frozen when an executor has ended, and that tree is on record with what came of it. Whoever comes next,
in this process or in one that goes on with the run, finds a work tree that is made from it. So nothing counts but what
the person will get: neither files that git ignores nor what was done to the executor's own `.git` can prove anything.
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

_HELD: Final = "tree"
BEGINNING: Final = "beginning"
"""Under which names its trees are held."""


@dataclass
class Workspace:
    world: World
    began_with: str
    """The tree with the person's own files."""
    tree: str
    """What it holds, as it was last frozen."""
    _place: WorkTree | None = None
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _making: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._refuse_lost(self.began_with)

    @property
    def place(self) -> WorkTree:
        with self._making:
            if self._place is None:
                self._refuse_lost(self.tree)
                self._place = make_work_tree(
                    self.world.store,
                    self._folder,
                    base_commit=self.world.base_commit,
                    tree=self.tree,
                    sandboxed=self.world.sandbox.level is Assurance.BUBBLEWRAP,
                )
            return self._place

    def stand_at(self, tree: str) -> None:
        """On record is that it held this after a step."""
        if tree != self.tree:
            self.tree, self._place = tree, None

    def frozen(self) -> str:
        """What it holds now. One that cannot be frozen is spoilt: RepositoryError, and the one before is back."""
        place, self._place = self.place, None
        if why := too_heavy(place.files):
            raise RepositoryError(f"it cannot be frozen: {why}")
        tree = freeze(self.world.store, place, self.world.base_tree).tree
        hold(self.world.store, self.world.run_id, _HELD, tree)
        self.tree = tree
        return tree

    @contextmanager
    def shell(self, sink: ArtifactWriter, limits: Limits, *, keeps: bool) -> Iterator[SandboxedShell]:
        """A shell there. What it writes elsewhere, or is not to keep, is gone with it."""
        world, place = self.world, self.place
        scratch = world.scratch / f"at-{next(self._numbers)}"
        scratch.mkdir(mode=0o700)
        hidden = secret_files(world, self.tree)
        at = Standing(place, world.base_commit, scratch, limits, keeps=keeps, hidden=hidden)
        try:
            yield shell_in(world, at, sink)
        finally:
            remove(scratch)

    def ground(self, shell: SandboxedShell | None = None) -> Ground:
        """What tools act on. With a shell everything may be changed; without one, nothing."""
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
        """Files that differ from those of an earlier tree, or from those that it began with."""
        old = since or self.began_with
        return Snapshot(self.tree, old, tuple(difference(self.world.store.git(), old, self.tree)), ()).change.paths

    @property
    def untouched(self) -> bool:
        """Whether it holds what it began with."""
        return self.tree == self.began_with

    def patch(self) -> bytes:
        """That which makes the person's own files what these are."""
        return self.world.store.git().out("diff-tree", "-p", "--binary", self.began_with, self.tree)

    def close(self) -> None:
        """Nothing stays behind but what is on record."""
        remove_work_tree(self._folder)
        if self._folder.parent.is_dir():
            self._folder.parent.rmdir()

    def let_go(self) -> None:
        """The run is over: what came of it is in its patch."""
        let_go(self.world.store, self.world.run_id)

    def _refuse_lost(self, tree: str) -> None:
        world = self.world
        if world.store.git().maybe("rev-parse", "--verify", "--quiet", f"{tree}^{{tree}}") is None:
            raise RepositoryError(
                f"{world.run_id}: files that it goes on from ({tree[:12]}) are no longer in {world.store.folder}",
                hint="start anew with `proofstone solve`; the record is kept",
            )

    @property
    def _folder(self) -> Path:
        return self.world.home / "work" / self.world.run_id / "goal"
