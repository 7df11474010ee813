"""The commit that git is about to make, as a hook finds it: its tree and its parents.

Nothing of the person's is touched. The index that git hands over may be a temporary one, or the very lock of
`git commit -a`; it is copied, and the tree is written into an object directory that git does not know of.

What the person's own git would do on a commit: their hooks, and whether it would be signed.

Proofstone's git runs no hooks at all, so they are looked up here, and it is said which of them cannot be honoured.

Files of Proofstone's own in the person's work tree, kept out of git's sight by the repository's `info/exclude`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.errors import RepositoryError
from proofstone.git.program import Git, GitFailedError
from proofstone.git.repository import Repository
from proofstone.git.user_hooks import hooks_folder, persons_hook

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
    quoted = os.pathsep.join('"' + str(other).replace("\\", "\\\\").replace('"', '\\"') + '"' for other in others)
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
    listed = [os.fsdecode(record.removeprefix(b"worktree ")) for record in records if record.startswith(b"worktree ")]
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


_RUNNABLE = ("pre-commit", "prepare-commit-msg", "commit-msg")
_IGNORED = ("post-commit", "post-index-change", "reference-transaction")


@dataclass(frozen=True)
class Hooks:
    runnable: tuple[str, ...]
    """Those that decide about a commit or its message, in the order in which git runs them."""
    ignored: tuple[str, ...]
    """Those that a commit would have triggered as well, and that Proofstone does not run."""
    folder: Path | None
    """Where they are, as an absolute path; None if there is no such folder."""


def hooks_of(repository: Repository) -> Hooks:
    folder = Path(os.path.normpath(hooks_folder(repository)))
    if not folder.is_dir():
        return Hooks((), (), None)
    return Hooks(_executable(folder, _RUNNABLE), _executable(folder, _IGNORED), folder)


def wants_signature(repository: Repository) -> bool:
    """Whether the person's git signs every commit."""
    return repository.git.maybe("config", "--type=bool", "--get", "commit.gpgSign") == "true"


def _executable(folder: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Proofstone's own hook is none: it asks for evidence, which the gate brings."""
    return tuple(name for name in names if persons_hook(folder, name))


OWN_FILES = "/.proofstone/"
"""The folder at the root of a work tree in which each run has one of its own."""
_MARK = "# Written by Proofstone: its own files, derived from the ledger."


def own_folder(root: Path, run_id: str) -> Path:
    """The folder of a run in the work tree. Nothing is written through a link: it may lead anywhere."""
    own = root / OWN_FILES.strip("/")
    if own.is_symlink() or (own.exists() and not own.is_dir()):
        raise RepositoryError(
            f"{own}: is no folder of this repository, and nothing is written through it", hint="take it away"
        )
    return own / run_id


def exclude(repository: Repository, patterns: Iterable[str]) -> None:
    """Add what is not there yet. What is tracked stays tracked: git looks at this file for untracked files only."""
    own_folder(repository.root, "")  # what is kept out of sight is ours
    file = repository.common_dir / "info" / "exclude"
    text = file.read_text("utf-8", "surrogateescape") if file.is_file() else ""
    missing = [pattern for pattern in patterns if pattern not in text.splitlines()]
    if not missing:
        return
    head = [] if _MARK in text else [_MARK]
    lines = "".join(f"{line}\n" for line in (*head, *missing))
    file.parent.mkdir(exist_ok=True)
    aside = file.with_name("exclude.proofstone")
    aside.write_text(
        f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{lines}", "utf-8", "surrogateescape"
    )
    aside.replace(file)
