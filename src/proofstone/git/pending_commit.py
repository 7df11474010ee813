"""Read what git is about to do, and hide Proofstone's own files from it.

*The pending commit*, as a hook finds it: its tree and its parents. Nothing of the user's is changed. The index that git
passes may be temporary, or the lock file of `git commit -a`; it is copied, and the tree is written to an object
directory that git does not know.

*What the user's own git would do on a commit*: which hooks run, and whether it is signed. Proofstone's git runs no
hooks, so they are listed here, together with those that cannot be run.

*Proofstone's own files* in the user's work tree, hidden from git by the repository's `info/exclude`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.errors import RepositoryError
from proofstone.git.program import Git, GitCommandError
from proofstone.git.repository import Repository
from proofstone.git.user_hooks import find_hooks_folder, find_user_hook


@dataclass(frozen=True)
class PendingCommit:
    """The commit that git is about to create."""

    parent: str
    """The first parent, which is HEAD; of an amended commit, which git does not report, the commit that is replaced.
    Empty if there is none."""
    parent_tree: str
    index: Path


def read_pending_commit(repository: Repository, variables: Mapping[str, str]) -> PendingCommit:
    """Return the commit that git is about to create. `variables` is the environment of the hook."""
    _validate_git_dir(repository, variables)
    index = variables.get("GIT_INDEX_FILE") or str(repository.git_dir / "index")
    head = repository.git.try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}") or ""
    return PendingCommit(head, repository.git.find_tree(head) if head else "", repository.root / index)


def write_index_tree(repository: Repository, index: Path, objects: Path) -> str:
    """Return the tree that git would write from this index; new objects go to `objects`."""
    with tempfile.TemporaryDirectory(prefix="proofstone-index-") as folder:
        copy = Path(folder) / "index"
        if index.is_file():  # before the first `git add` there is no index, and the tree is empty
            shutil.copyfile(index, copy)
        git = replace(with_object_stores(repository.git, objects, repository.object_dirs), index=copy)
        try:
            return git.run_line("write-tree", "--missing-ok")
        except GitCommandError as error:
            reason = error.stderr.splitlines()[0] if error.stderr else error.message
            raise RepositoryError(
                f"{index}: the index cannot be written as a tree: {reason}",
                hint="resolve the conflicts that `git status` lists, and `git add` the files",
            ) from error


def with_object_stores(git: Git, objects: Path, others: tuple[Path, ...]) -> Git:
    """Return a git that writes objects to `objects` and reads those of the other stores too."""
    quoted = os.pathsep.join('"' + str(other).replace("\\", "\\\\").replace('"', '\\"') + '"' for other in others)
    variables = {"GIT_OBJECT_DIRECTORY": str(objects), "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted}
    return replace(git, variables={**git.variables, **variables})


def has_no_commits(repository: Repository) -> bool:
    """Return whether the repository has no commit at all, on any branch."""
    return not repository.git.run_output("rev-list", "--all", "--max-count=1")


def is_ancestor(repository: Repository, commit: str, descendant: str) -> bool:
    """Return whether `commit` is `descendant` or an ancestor of it."""
    return repository.git.run("merge-base", "--is-ancestor", commit, descendant, accept=range(256)).returncode == 0


def find_work_tree_roots(repository: Repository) -> tuple[str, ...]:
    """Return the root of every work tree of the repository: a check in one of them counts for all."""
    return tuple(dict.fromkeys((str(repository.root), *map(str, _list_work_trees(repository)))))


def find_main_work_tree(repository: Repository) -> Path:
    """Return the root of the repository's main work tree.

    A folder that names another repository's git directory without being registered there as a work tree is a repository
    of its own.
    """
    work_trees = _list_work_trees(repository)
    return work_trees[0] if repository.root in work_trees else repository.root


def _list_work_trees(repository: Repository) -> list[Path]:
    """Return the work trees that git knows of, the main one first."""
    records = repository.git.run_records("worktree", "list", "--porcelain", "-z")
    paths = [os.fsdecode(record.removeprefix(b"worktree ")) for record in records if record.startswith(b"worktree ")]
    return [Path(path).resolve() for path in paths]


def _validate_git_dir(repository: Repository, variables: Mapping[str, str]) -> None:
    """Raise an error if the hook belongs to another repository than the one it runs in: it would
    check the wrong one.
    """
    git_dir = variables.get("GIT_DIR")
    if git_dir and (repository.root / git_dir).resolve() != repository.git_dir.resolve():
        raise RepositoryError(
            f"{repository.root}: git commits to {git_dir}, but its own repository is {repository.git_dir}",
            hint="do not use GIT_DIR or --git-dir here: Proofstone cannot check such a work tree",
        )


_RUNNABLE = ("pre-commit", "prepare-commit-msg", "commit-msg")
_IGNORED = ("post-commit", "post-index-change", "reference-transaction")


@dataclass(frozen=True)
class CommitHooks:
    """The user's hooks that a commit would trigger."""

    runnable: tuple[str, ...]
    """Hooks that decide about a commit or its message, in the order in which git runs them."""
    ignored: tuple[str, ...]
    """Hooks that a commit would trigger as well, and that Proofstone does not run."""
    folder: Path | None
    """The absolute path of their folder; None if there is no such folder."""


def find_commit_hooks(repository: Repository) -> CommitHooks:
    folder = Path(os.path.normpath(find_hooks_folder(repository)))
    if not folder.is_dir():
        return CommitHooks((), (), None)
    return CommitHooks(_find_user_hooks(folder, _RUNNABLE), _find_user_hooks(folder, _IGNORED), folder)


def signs_commits(repository: Repository) -> bool:
    """Return whether the user's git signs every commit."""
    return repository.git.try_line("config", "--type=bool", "--get", "commit.gpgSign") == "true"


def _find_user_hooks(folder: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the user's hooks with these names, without Proofstone's own: that one asks for evidence, which the gate
    provides.
    """
    return tuple(name for name in names if find_user_hook(folder, name))


OWN_FOLDER_PATTERN = "/.proofstone/"
"""The folder at the root of a work tree in which each run has its own folder."""
_MARK = "# Written by Proofstone: its own files, derived from the ledger."


def find_run_folder(root: Path, run_id: str) -> Path:
    """Return the folder of a run in the work tree. Refuse to write through a link, which may lead anywhere."""
    own = root / OWN_FOLDER_PATTERN.strip("/")
    if own.is_symlink() or (own.exists() and not own.is_dir()):
        raise RepositoryError(
            f"{own}: is not a folder of this repository, so nothing is written to it", hint="remove it"
        )
    return own / run_id


def exclude_from_git(repository: Repository, patterns: Iterable[str]) -> None:
    """Add the missing patterns. Tracked files stay tracked: git uses this file for untracked files only."""
    find_run_folder(repository.root, "")  # only Proofstone's own folder may be hidden
    file = repository.common_dir / "info" / "exclude"
    text = file.read_text("utf-8", "surrogateescape") if file.is_file() else ""
    missing = [pattern for pattern in patterns if pattern not in text.splitlines()]
    if not missing:
        return
    header = [] if _MARK in text else [_MARK]
    lines = "".join(f"{line}\n" for line in (*header, *missing))
    file.parent.mkdir(exist_ok=True)
    temporary = file.with_name("exclude.proofstone")
    temporary.write_text(
        f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{lines}", "utf-8", "surrogateescape"
    )
    temporary.replace(file)
