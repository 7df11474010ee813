"""The commit that git is about to make, as a hook finds it: its tree and its parents.

Nothing of the person's is touched. The index that git hands over may be a temporary one, or the very lock of
`git commit -a`; it is copied, and the tree is written into an object directory that git does not know of.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.adapters.git.program import Git, GitFailedError
from proofstone.adapters.git.repository import Repository
from proofstone.errors import RepositoryError

_MERGED = re.compile(r"GITHEAD_([0-9a-f]{40,64})")
"""`git merge` tells by the names of variables what it merges: MERGE_HEAD is written only after the hook."""


@dataclass(frozen=True)
class Pending:
    parents: Mapping[str, str]
    """Commit → tree; of an amended commit, of which git says nothing, it is the one that is replaced."""
    index: Path

    @property
    def first_of_branch(self) -> bool:
        return not self.parents


def pending(repository: Repository, variables: Mapping[str, str], *, merging: bool) -> Pending:
    """`variables`: the environment that git has started the hook with. `merging`: the hook is one that only `git merge`
    runs. Git sets no GITHEAD_ for any other, so there it is somebody else's word, and makes no parent."""
    _refuse_elsewhere(repository, variables)
    index = variables.get("GIT_INDEX_FILE") or str(repository.git_dir / "index")
    merged = [found[1] for name in variables if (found := _MERGED.fullmatch(name))] if merging else []
    commits = [*_heads(repository), *merged]
    parents = {commit: repository.git.tree_of(commit) for commit in dict.fromkeys(commits)}
    return Pending(parents, repository.root / index)


def tree_of_index(repository: Repository, index: Path, objects: Path) -> str:
    """The tree that git would write of this index; new objects go to `objects`."""
    with tempfile.TemporaryDirectory(prefix="proofstone-index-") as folder:
        copied = Path(folder) / "index"
        if index.is_file():  # before the first `git add` there is none, and its tree is empty
            shutil.copyfile(index, copied)
        git = replace(knowing(repository.git, objects, repository.object_dirs), index=copied)
        try:
            return git.line("write-tree", "--missing-ok")
        except GitFailedError as error:
            said = error.stderr.splitlines()[0] if error.stderr else error.message
            raise RepositoryError(
                f"{index}: what is staged is no tree: {said}",
                hint="resolve conflicts and `git add` them; `git status` names them",
            ) from error


def knowing(git: Git, objects: Path, others: tuple[Path, ...]) -> Git:
    """The same git, that writes objects to a folder and reads those of others as well."""
    quoted = os.pathsep.join('"' + str(one).replace("\\", "\\\\").replace('"', '\\"') + '"' for one in others)
    told = {"GIT_OBJECT_DIRECTORY": str(objects), "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted}
    return replace(git, variables={**git.variables, **told})


def is_empty(repository: Repository) -> bool:
    """Whether it has no commit at all, on any branch."""
    return not repository.git.out("rev-list", "--all", "--max-count=1")


def counting_bases(repository: Repository, parents: Mapping[str, str], bases: set[str]) -> frozenset[str]:
    """Those that are a parent or an ancestor of one."""
    return frozenset(base for base in bases if any(_leads_to(repository, base, parent) for parent in parents))


def worktree_roots(repository: Repository) -> tuple[str, ...]:
    """Every work tree of the repository: what was checked in one of them was checked here."""
    return tuple(dict.fromkeys((str(repository.root), *map(str, _listed_work_trees(repository)))))


def main_work_tree(repository: Repository) -> Path:
    """Return the root of the repository's main work tree. A folder that names another repository's git directory
    without being registered there as a work tree is a repository of its own."""
    listed = _listed_work_trees(repository)
    return listed[0] if repository.root in listed else repository.root


def _listed_work_trees(repository: Repository) -> list[Path]:
    """Return the work trees that git knows of, the main one first."""
    records = repository.git.records("worktree", "list", "--porcelain", "-z")
    listed = [os.fsdecode(one.removeprefix(b"worktree ")) for one in records if one.startswith(b"worktree ")]
    return [Path(path).resolve() for path in listed]


def _leads_to(repository: Repository, base: str, commit: str) -> bool:
    asked = repository.git.run("merge-base", "--is-ancestor", base, commit, accept=range(256))
    return asked.returncode == 0


def _heads(repository: Repository) -> list[str]:
    head = repository.git.maybe("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    merging = repository.git_dir / "MERGE_HEAD"
    merged = merging.read_text("ascii").split() if merging.is_file() else []
    return [*([head] if head else []), *merged]


def _refuse_elsewhere(repository: Repository, variables: Mapping[str, str]) -> None:
    """A hook of one repository that stands in another would look at the wrong one."""
    named = variables.get("GIT_DIR")
    if named and (repository.root / named).resolve() != repository.git_dir.resolve():
        raise RepositoryError(
            f"{repository.root}: git commits to {named} here, and its own repository is {repository.git_dir}",
            hint="Proofstone cannot check a work tree whose repository is named by GIT_DIR or --git-dir",
        )
