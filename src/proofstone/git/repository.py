"""The user's repository: where it is, what its base is, and what is in the way of checking it.

The ledger's head, written where the ledger is not: the ref `refs/proofstone/ledger` of the repository.

A chain alone does not show that its tail was cut. The ref points to a blob, so no history shows it and no push
takes it along unless asked. The blob has a line for each ledger that was used with the repository. It is replaced only
as it was read: whoever else wrote meanwhile is not overwritten.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from proofstone.errors import InputError, RepositoryError
from proofstone.faults import fault_point
from proofstone.git.program import Git, GitFailedError
from proofstone.machine.facts import search_outside
from proofstone.machine.files import path_too_long, read_alternates


@dataclass(frozen=True)
class Repository:
    """A git repository with a work tree."""

    root: Path
    """Top of the work tree, with symlinks resolved."""
    git_dir: Path
    common_dir: Path
    """Differs from `git_dir` in a linked worktree."""
    search: str
    """PATH for the programs that Proofstone itself starts: nothing of the work tree is in it."""
    stands_for: Path | None = None
    """For a task's private work tree: the root of the repository whose files it holds, where they will stand. Its git
    directory lies elsewhere then, and whatever calls itself `.git` in it counts for nothing."""

    @cached_property
    def git(self) -> Git:
        if self.stands_for is None:
            return self.git_in(self.root)
        return Git(self.root, git_dir=self.git_dir, work_tree=self.root, variables={"PATH": self.search})

    def git_in(self, directory: Path) -> Git:
        return Git(directory, variables={"PATH": self.search})

    @cached_property
    def object_dirs(self) -> tuple[Path, ...]:
        """The object store and everything it borrows from, nearest first."""
        found: list[Path] = []
        waiting = [self.common_dir / "objects"]
        while waiting:
            objects = waiting.pop(0)
            if objects in found or not objects.is_dir():
                continue
            found.append(objects)
            waiting += read_alternates(objects)
        return tuple(found)

    @cached_property
    def object_format(self) -> str:
        return self.git.maybe("rev-parse", "--show-object-format") or "sha1"

    @cached_property
    def branch(self) -> str | None:
        """The full name of the branch that was checked out when it was first asked for."""
        named = self.git.maybe("symbolic-ref", "--quiet", "HEAD")
        return named if named is not None and named.startswith("refs/heads/") else None

    @cached_property
    def tags(self) -> str:
        """Every tag, as lines of `packed-refs`."""
        return os.fsdecode(self.git.out("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"))

    @cached_property
    def is_partial(self) -> bool:
        """Whether objects may be missing because the clone was filtered."""
        return self.git.maybe("config", "--get-regexp", r"^remote\..*\.promisor$") is not None

    def resolve_base(self, revision: str) -> tuple[str, str]:
        """Commit and tree of the base. Without a single commit there is nothing to compare with."""
        if revision.startswith("-"):
            raise InputError(f"--base {revision}: a revision does not start with a dash")
        commit = self.git.maybe("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if commit is None:
            if self.git.maybe("rev-parse", "--verify", "--quiet", "HEAD") is None:
                raise RepositoryError(
                    f"{self.root}: the repository has no commit yet, so there is no baseline to compare with",
                    hint="make a first commit: git add -A && git commit -m 'First commit'",
                )
            raise InputError(
                f"--base {revision}: git knows no such revision in {self.root}",
                hint="name a branch, tag or commit; `git log --oneline` lists commits",
            )
        return commit, self.git.tree_of(commit)


def repository_around(directory: Path) -> Path | None:
    """Top of the work tree that one stands in, if one stands in one."""
    try:
        return open_repository(directory).root
    except RepositoryError:
        return None


def _is_folder(path: Path) -> bool:
    """False, and no error, for a path that no folder can have; one that is too long is said to be."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  `Path.is_dir` takes some errors for an answer
    except ValueError:  # a NUL character, or what no file name can hold
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise path_too_long(path) from error
        return False


def open_repository(directory: Path) -> Repository:
    """The repository that `directory` is in, or an error that a newcomer can act on."""
    if not _is_folder(directory):
        raise InputError(
            f"{directory}: there is no such directory", hint="--repo names a directory of a git repository"
        )
    search = search_outside(directory)
    git = Git(directory, variables={"PATH": search})
    try:
        root = git.line("rev-parse", "--show-toplevel")
    except GitFailedError as error:
        if "must be run in a work tree" in error.stderr:
            raise RepositoryError(
                f"{directory}: this repository has no work tree (it is bare, or this is its .git directory)",
                hint="run it in a clone that has files",
            ) from error
        if "not a git repository" in error.stderr:
            raise RepositoryError(
                f"{directory.absolute()}: not inside a git repository",
                hint="cd into one, name one with --repo DIR, or start one with `git init` and a first commit",
            ) from error
        raise
    if not directory.resolve().is_relative_to(Path(root).resolve()):
        raise RepositoryError(
            f"{directory.absolute()}: its git says that the work tree is {root} (core.worktree), where this is not",
            hint="run it there, or take the setting out: git config --unset core.worktree",
        )
    return Repository(
        search=search,
        root=Path(root).resolve(),
        git_dir=Path(git.line("rev-parse", "--absolute-git-dir")),
        common_dir=(directory / git.line("rev-parse", "--git-common-dir")).resolve(),
    )


REF = "refs/proofstone/ledger"


@dataclass(frozen=True)
class AnchorBlob:
    """What the ref points to."""

    id: str
    """Object id of the blob; empty if there is no ref."""
    data: bytes


def read_anchor_blob(git: Git) -> AnchorBlob:
    """What the ref says. Raises GitFailedError if there is a ref and it cannot be read, or no repository."""
    found = git.out("for-each-ref", "--format=%(objectname)", REF).decode("ascii").strip()
    return AnchorBlob(found, git.out("cat-file", "blob", found)) if found else AnchorBlob("", b"")


def replace_anchor_blob(git: Git, before: AnchorBlob, lines: Sequence[bytes]) -> bool:
    """Point the ref to these lines if it still is what it was; whether it was."""
    blob = git.run("hash-object", "-w", "--stdin", stdin=b"".join(lines)).stdout.decode("ascii").strip()
    fault_point("anchor.before-ref")
    expected = before.id or "0" * len(blob)
    try:
        git.run("update-ref", "--no-deref", REF, blob, expected)
    except GitFailedError:
        if read_anchor_blob(git).id != before.id:
            return False
        raise
    fault_point("anchor.after-ref")
    return True
