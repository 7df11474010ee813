"""The user's repository, and the anchor of the ledger that is stored in it.

`open_repository` finds the repository and explains what prevents Proofstone from checking it.

The ref `refs/proofstone/ledger` stores the head of the ledger outside the ledger, because a hash chain alone does not
show that its tail was cut. The ref points to a blob, so no history shows it and no push includes it unless asked. The
blob has a line for each ledger that was used with the repository. The ref is replaced only if it still has the value
that was read, so that concurrent writers do not overwrite each other.
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
from proofstone.git.program import Git, GitCommandError
from proofstone.machine.facts import path_outside_work_tree
from proofstone.machine.files import path_too_long_error, read_alternates


@dataclass(frozen=True)
class Repository:
    """A git repository with a work tree."""

    root: Path
    """The top of the work tree, with symlinks resolved."""
    git_dir: Path
    common_dir: Path
    """The git directory that all work trees share; it differs from `git_dir` in a linked work tree."""
    search: str
    """The PATH for programs that Proofstone itself starts: it contains no folder of the work tree."""
    stands_in_for: Path | None = None
    """For a task's private work tree: the root of the user's repository, for which its files are meant.

    The git directory is elsewhere then, and any `.git` inside the work tree is ignored.
    """

    @cached_property
    def git(self) -> Git:
        if self.stands_in_for is None:
            return self.git_in(self.root)
        return Git(self.root, git_dir=self.git_dir, work_tree=self.root, variables={"PATH": self.search})

    def git_in(self, directory: Path) -> Git:
        return Git(directory, variables={"PATH": self.search})

    @cached_property
    def object_dirs(self) -> tuple[Path, ...]:
        """The object store and all stores that it borrows from, nearest first."""
        stores: list[Path] = []
        pending = [self.common_dir / "objects"]
        while pending:
            objects = pending.pop(0)
            if objects in stores or not objects.is_dir():
                continue
            stores.append(objects)
            pending += read_alternates(objects)
        return tuple(stores)

    @cached_property
    def object_format(self) -> str:
        return self.git.try_line("rev-parse", "--show-object-format") or "sha1"

    @cached_property
    def branch(self) -> str | None:
        """The full name of the branch that was checked out when this was first read; None for a detached HEAD."""
        ref = self.git.try_line("symbolic-ref", "--quiet", "HEAD")
        return ref if ref is not None and ref.startswith("refs/heads/") else None

    @cached_property
    def tags(self) -> str:
        """Every tag, as lines of `packed-refs`."""
        return os.fsdecode(self.git.run_output("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"))

    @cached_property
    def is_partial(self) -> bool:
        """Whether objects may be missing because the clone was filtered."""
        return self.git.try_line("config", "--get-regexp", r"^remote\..*\.promisor$") is not None

    def resolve_base(self, revision: str) -> tuple[str, str]:
        """Return the commit and the tree of the base. A repository without a commit has nothing to compare with."""
        if revision.startswith("-"):
            raise InputError(f"--base {revision}: a revision does not start with a dash")
        found = self.git.find_objects(f"{revision}^{{commit}}", f"{revision}^{{tree}}")
        if found is None:
            if self.git.try_line("rev-parse", "--verify", "--quiet", "HEAD") is None:
                raise RepositoryError(
                    f"{self.root}: the repository has no commit yet, so there is no baseline to compare with",
                    hint="make a first commit: git add -A && git commit -m 'First commit'",
                )
            raise InputError(
                f"--base {revision}: there is no such revision in {self.root}",
                hint="use a branch, tag or commit; `git log --oneline` lists commits",
            )
        commit, tree = found
        return commit, tree


def find_repository_root(directory: Path) -> Path | None:
    """Return the top of the work tree that contains the directory, or None."""
    try:
        return open_repository(directory).root
    except RepositoryError:
        return None


def _is_folder(path: Path) -> bool:
    """Return whether the path is a folder, and False for a path that no file can have. Raise an error for one that is
    too long.
    """
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  `Path.is_dir` hides some errors
    except ValueError:  # a NUL character, or another character that no file name can hold
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise path_too_long_error(path) from error
        return False


def open_repository(directory: Path) -> Repository:
    """Return the repository that contains `directory`, or raise an error that a newcomer can act on."""
    if not _is_folder(directory):
        raise InputError(
            f"{directory}: there is no such directory", hint="--repo names a directory of a git repository"
        )
    search = path_outside_work_tree(directory)
    git = Git(directory, variables={"PATH": search})
    try:
        root, git_dir, common_dir = _locate(git)
    except GitCommandError as error:
        if "must be run in a work tree" in error.stderr:
            raise RepositoryError(
                f"{directory}: this repository has no work tree (it is bare, or this is its .git directory)",
                hint="run it in a clone that has a work tree",
            ) from error
        if "not a git repository" in error.stderr:
            raise RepositoryError(
                f"{directory.absolute()}: not inside a git repository",
                hint="cd into one, use --repo DIR, or create one with `git init` and a first commit",
            ) from error
        raise
    if not directory.resolve().is_relative_to(Path(root).resolve()):
        raise RepositoryError(
            f"{directory.absolute()}: git's setting core.worktree says that the work tree is {root}, "
            "and this directory is not in it",
            hint="run it there, or remove the setting: git config --unset core.worktree",
        )
    return Repository(
        search=search,
        root=Path(root).resolve(),
        git_dir=Path(git_dir),
        common_dir=(directory / common_dir).resolve(),
    )


def _locate(git: Git) -> tuple[str, str, str]:
    """Return the top of the work tree, the git directory and the common git directory, by one call of git if no path
    contains a line end."""
    questions = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    lines = git.run_line("rev-parse", *questions).split("\n")
    root, git_dir, common_dir = (
        lines if len(lines) == len(questions) else (git.run_line("rev-parse", question) for question in questions)
    )
    return root, git_dir, common_dir


LEDGER_REF = "refs/proofstone/ledger"


@dataclass(frozen=True)
class AnchorBlob:
    """The blob that the ref points to."""

    id: str
    """The object id of the blob; empty if there is no ref."""
    data: bytes


def read_anchor_blob(git: Git) -> AnchorBlob:
    """Return the blob that the ref points to. Raise `GitCommandError` if the ref or the repository cannot be read."""
    result = git.run("for-each-ref", "--format=%(objectname) %(objecttype)%00%(raw)", LEDGER_REF, accept=range(256))
    head, _, content = result.stdout.partition(b"\0")
    if result.returncode == 0 and head.endswith(b" blob"):
        return AnchorBlob(head.split()[0].decode("ascii"), content.removesuffix(b"\n"))
    if result.returncode == 0 and not head:
        return AnchorBlob("", b"")
    # Git before 2.34 knows no `raw`; a damaged ref or object is named by the commands themselves.
    blob = git.run_output("for-each-ref", "--format=%(objectname)", LEDGER_REF).decode("ascii").strip()
    return AnchorBlob(blob, git.run_output("cat-file", "blob", blob)) if blob else AnchorBlob("", b"")


def replace_anchor_blob(git: Git, before: AnchorBlob, lines: Sequence[bytes]) -> bool:
    """Point the ref to a blob of these lines if it is unchanged since `before` was read. Return whether it was."""
    blob = git.run("hash-object", "-w", "--stdin", stdin=b"".join(lines)).stdout.decode("ascii").strip()
    fault_point("anchor.before-ref")
    expected = before.id or "0" * len(blob)
    try:
        git.run("update-ref", "--no-deref", LEDGER_REF, blob, expected)
    except GitCommandError:
        if read_anchor_blob(git).id != before.id:
            return False
        raise
    fault_point("anchor.after-ref")
    return True
