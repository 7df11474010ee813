"""Find what a session of a coding agent leaves outside of the work tree that it was started in.

A check sees one work tree and the commits of its branch. Work can also be left in a stash, on a branch that is not
checked out any more, or in another work tree of the same repository. `read_repository_state` says what there was when
the session began, and `find_left_work` what has been added since.

Commits that were fetched are no work of this session: git writes in the log of a remote-tracking branch whether it
moved because of a fetch or because the user pushed. A commit that no branch, tag or work tree names is left to nobody.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.git.program import Git, is_object_id
from proofstone.git.repository import Repository

_STASH: Final = "refs/stash"
_FETCHED: Final = ("fetch", "pull", "clone", "remote")
"""How git's log of a remote-tracking branch begins if others moved it."""
_STASHED_ON: Final = re.compile(r"(?:WIP on|On) ([^:]+):")


@dataclass(frozen=True)
class WorkTreeState:
    """One work tree of the repository."""

    path: str
    branch: str
    """`refs/heads/topic`; empty for a detached HEAD."""
    commit: str
    status: str = ""
    """A digest of what `git status` shows. It is read only if asked for."""


@dataclass(frozen=True)
class RepositoryState:
    """The work that a repository holds at one time."""

    refs: Mapping[str, str]
    """Every branch, tag and remote-tracking branch, with the commit that it names."""
    stashes: tuple[str, ...]
    """The commits of the stash, newest first."""
    work_trees: tuple[WorkTreeState, ...]


@dataclass(frozen=True)
class LeftCommits:
    """Commits of the session that are in no work tree that is checked, and a commit of the stash."""

    name: str
    """`the branch topic`, `stash@{0}`."""
    commit: str
    tree: str
    merge_base: str
    """The last commit that it shares with the commit at which the session began; empty if there is none."""
    count: int = 1
    has_untracked: bool = False
    """Whether a stash holds untracked files too, which are not in its tree."""


@dataclass(frozen=True)
class LeftWork:
    """What a session has left outside of its work tree."""

    commits: tuple[LeftCommits, ...]
    new_work_trees: tuple[Path, ...]
    """Work trees that were added since the session began, and that no other session was started in."""
    other_work_trees: tuple[str, ...]
    """Work trees that were there already, and those in which other sessions work."""
    changed_work_trees: tuple[str, ...]
    """Those of them that have changed since or are new, by this session or by somebody else."""


def read_repository_state(repository: Repository) -> RepositoryState:
    """Return the refs, stashes and work trees of the repository as they are now."""
    git = repository.git
    fields = "%(refname)%00%(objectname)%00%(*objectname)"
    lines = git.run_output("for-each-ref", f"--format={fields}", "refs/heads", "refs/tags", "refs/remotes")
    named = (line.split("\0") for line in os.fsdecode(lines).splitlines())
    stashes = git.try_line("log", "--walk-reflogs", "--format=%H", _STASH, "--")
    return RepositoryState(
        refs={name: peeled or commit for name, commit, peeled in named},
        stashes=tuple((stashes or "").split()),
        work_trees=tuple(_read_work_trees(repository)),
    )


def _read_work_trees(repository: Repository) -> Iterable[WorkTreeState]:
    records = repository.git.run_records("worktree", "list", "--porcelain", "-z")
    blocks = [block.split("\0") for block in "\0".join(map(os.fsdecode, records)).split("\0\0")]
    for block in blocks:
        values = dict(line.partition(" ")[::2] for line in block if line)
        path = Path(values.get("worktree", ""))
        if "HEAD" not in values or not path.is_dir():
            continue  # bare, or removed
        resolved = path.resolve()
        status = "" if resolved == repository.root else _digest_status(repository.git_in(resolved))
        yield WorkTreeState(str(resolved), values.get("branch", ""), values["HEAD"], status)


def _digest_status(git: Git) -> str:
    result = git.run("status", "--porcelain=v1", "-z", "--untracked-files=normal", accept=range(256))
    return hashlib.sha256(result.stdout).hexdigest()[:20]


def find_left_work(repository: Repository, start: str, before: RepositoryState, foreign: Collection[str]) -> LeftWork:
    """Return what was added since `before`, outside of the work tree of `repository`. `start` is the commit at which
    the session began. `foreign` are the paths of work trees in which other sessions work."""
    now = read_repository_state(repository)
    others = [tree for tree in now.work_trees if tree.path != str(repository.root)]
    known = {tree.path: tree for tree in before.work_trees}
    new = [tree for tree in others if tree.path not in known]
    changed = [
        tree
        for tree in others
        if tree.path not in foreign
        and tree.path in known
        and (tree.commit, tree.status) != (known[tree.path].commit, known[tree.path].status)
    ]
    taken = {tree.branch for tree in others if tree.branch}
    excluded = _list_excluded(repository, before, now)
    branches = [
        (name, commit)
        for name, commit in now.refs.items()
        if not name.startswith("refs/remotes/") and name not in taken
    ]
    commits = [_describe(repository, start, name, commit, excluded) for name, commit in branches]
    stashed = _find_stashes(repository, start, before, now, taken)
    return LeftWork(
        commits=(*(left for left in commits if left is not None), *stashed),
        new_work_trees=tuple(Path(tree.path) for tree in new if tree.path not in foreign),
        other_work_trees=tuple(tree.path for tree in others if tree not in new or tree.path in foreign),
        changed_work_trees=tuple(tree.path for tree in (*changed, *(tree for tree in new if tree.path in foreign))),
    )


def _list_excluded(repository: Repository, before: RepositoryState, now: RepositoryState) -> list[str]:
    """Return the commits whose history is no work of this session: what the refs named when it began, what is part of
    the work tree's own branch, and what was fetched since."""
    fetched = [
        commit
        for name, commit in now.refs.items()
        if name.startswith("refs/remotes/") and before.refs.get(name) != commit and _is_fetched(repository, name)
    ]
    trees = [tree.commit for tree in before.work_trees]
    head = repository.git.try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return [commit for commit in (*before.refs.values(), *trees, *fetched, head or "") if is_object_id(commit)]


def _is_fetched(repository: Repository, ref: str) -> bool:
    """Return whether the last move of a remote-tracking branch was a fetch, as git's own log says."""
    log = repository.git.try_line("log", "--walk-reflogs", "--max-count=1", "--format=%gs", ref, "--")
    return log is not None and log.startswith(_FETCHED)


def _describe(
    repository: Repository, start: str, name: str, commit: str, excluded: Sequence[str]
) -> LeftCommits | None:
    """Return the session's commits that only this ref leads to; None if there are none."""
    if commit in excluded:
        return None
    lines = "".join(f"{line}\n" for line in (commit, *(f"^{other}" for other in excluded)))
    listed = repository.git.run(
        "rev-list", "--count", "--ignore-missing", "--stdin", stdin=lines.encode(), accept=range(256)
    )
    count = int(listed.stdout.strip() or 0) if listed.returncode == 0 else 1
    if not count:
        return None
    kind = "tag" if name.startswith("refs/tags/") else "branch"
    return _build(repository, start, f"the {kind} {name.split('/', 2)[2]}", commit, count)


def _find_stashes(
    repository: Repository, start: str, before: RepositoryState, now: RepositoryState, taken: Collection[str]
) -> Iterable[LeftCommits]:
    """Yield the new commits of the stash, without those that were made in another work tree."""
    for number, commit in enumerate(now.stashes):
        if commit in before.stashes:
            continue
        subject = repository.git.try_line("log", "--max-count=1", "--format=%s", commit, "--") or ""
        on = _STASHED_ON.match(subject)
        if on is not None and f"refs/heads/{on[1]}" in taken:
            continue
        parents = (repository.git.try_line("rev-list", "--parents", "--max-count=1", commit) or "").split()[1:]
        yield _build(repository, start, f"stash@{{{number}}}", commit, has_untracked=len(parents) > 2)


def _build(
    repository: Repository, start: str, name: str, commit: str, count: int = 1, *, has_untracked: bool = False
) -> LeftCommits:
    git = repository.git
    merge_base = git.try_line("merge-base", start, commit) or ""
    return LeftCommits(name, commit, git.find_tree(commit), merge_base, count, has_untracked)
