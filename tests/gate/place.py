"""One repository under the gate, and short ways to do to it what the tests do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from proofstone.git.checkout import replace_contents
from proofstone.git.commit import CommitIdentity, CommitIntent, write_commit
from proofstone.git.repository import Repository, open_repository
from proofstone.git.snapshot import Snapshot
from proofstone.git.store import Store, open_store
from proofstone.git.work_tree import WorkTree, create_work_tree, freeze_work_tree
from tests.workshop import Workshop

AUTHOR = CommitIdentity("Tester", "tester@example.org")


@dataclass(frozen=True)
class Place:
    workshop: Workshop
    root: Path

    @cached_property
    def repository(self) -> Repository:
        return open_repository(self.root)

    @cached_property
    def store(self) -> Store:
        return open_store(self.repository, self.workshop.proofstone_home)

    def git(self, *args: str) -> str:
        return self.workshop.git(self.root, *args)

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    @property
    def tree(self) -> str:
        return self.git("rev-parse", "HEAD^{tree}")

    def tree_with(self, files: Mapping[str, str], of: str | None = None) -> str:
        """The tree of the head, or another, with these files."""
        return replace_contents(self.store, of or self.tree, {p.encode(): c.encode() for p, c in files.items()})

    def commit_of(self, tree: str, parent: str | None = None, message: str = "Change\n\nWhy.\n") -> str:
        """A commit that only the private store has."""
        return write_commit(self.store, self.intent(tree, parent, message), sign=False)

    def intent(self, tree: str, parent: str | None = None, message: str = "Change\n\nWhy.\n") -> CommitIntent:
        return CommitIntent(tree, parent or self.head, message, AUTHOR, "1700000000 +0000")

    def work_tree(self, tree: str | None = None, *, sandboxed: bool = False) -> WorkTree:
        folder = self.workshop.folder / "work" / "task"
        return create_work_tree(self.store, folder, base_commit=self.head, tree=tree or self.tree, sandboxed=sandboxed)

    def frozen(self, work_tree: WorkTree) -> Snapshot:
        return freeze_work_tree(self.store, work_tree, self.tree)

    def listed(self, tree: str) -> dict[str, str]:
        """Path → content of a tree that the main store knows."""
        git = self.store.git()
        names = git.run_output("ls-tree", "-r", "-z", "--name-only", tree).decode().removesuffix("\0").split("\0")
        return {
            name: git.run_output("cat-file", "-p", f"{tree}:{name}").decode("utf-8", "replace")
            for name in names
            if name
        }
