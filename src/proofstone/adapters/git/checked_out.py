"""Work trees that stand on a branch which is to move: brought along first, and only if nothing in them can be lost.

Index and files must be as in the old tree, or already as in the new one, which is how an interrupted call leaves
them. Moving the branch alone would show the change as its own reverse, and the person's next commit would undo it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from proofstone.adapters.git.listing import GITLINK, SYMLINK
from proofstone.adapters.git.program import Git, GitFailedError, readable
from proofstone.adapters.git.repository import Repository
from proofstone.adapters.git.snapshot import Entry, difference, discard_index, raw_entries, set_entries
from proofstone.adapters.git.store import Store
from proofstone.contracts.change import ChangeKind
from proofstone.errors import RepositoryError


class CheckedOutError(RepositoryError):
    """The branch is checked out, and moving it would lose something there."""


def standing_on(repository: Repository, branch: str) -> list[Git]:
    """The work trees that stand on the branch. One whose folder is gone has nothing to lose."""
    places = []
    for block in repository.git.out("worktree", "list", "--porcelain", "-z").split(b"\0\0"):
        said = dict(line.partition(b" ")[::2] for line in block.split(b"\0"))
        folder = Path(os.fsdecode(said.get(b"worktree", b"")))
        if said.get(b"branch") == os.fsencode(f"refs/heads/{branch}") and os.path.lexists(folder / ".git"):
            places.append(repository.git_in(folder))
    return places


def bring_along(store: Store, git: Git, branch: str, old: str, new: str) -> None:
    """Index and files from the old tree to the new one, both under git's own lock, or an error and nothing done."""
    changed = difference(git, old, new)
    already, staged = _staged(git, old, changed)
    scratch = store.folder / f"index.standing-{secrets.token_hex(4)}"
    try:
        doubtful = {*already, *_dirty(git, scratch), *_in_the_way(git.directory, changed)}
    finally:
        discard_index(scratch)
    there = [entry for entry in changed if entry.path in doubtful and _stands(git, entry)]
    if lost := sorted(staged | (doubtful - {entry.path for entry in there})):
        raise CheckedOutError(
            f"{git.directory}: the branch {branch} is checked out here, with changes of its own or files in the way: "
            f"{', '.join(readable(path) for path in lost[:5])}{' …' if len(lost) > 5 else ''}",
            hint="commit them, stash them or move them away; or let the work go to another branch",
        )
    try:
        _adopt(git, there)
        git.run("read-tree", "-m", "-u", old, new)
    except GitFailedError as error:
        said = error.stderr.splitlines()[0] if error.stderr else error.message
        raise CheckedOutError(
            f"{git.directory}: the branch {branch} is checked out here and cannot be moved: {said}", hint=error.hint
        ) from error


def take_back(git: Git, branch: str, old: str, new: str) -> None:
    """The branch did not come along. Unless somebody has just committed what stands here, it is put back."""
    if git.run("diff-index", "--cached", "--quiet", f"refs/heads/{branch}", accept=range(256)).returncode != 0:
        git.run("read-tree", "-m", "-u", new, old)


def _staged(git: Git, old: str, changed: Sequence[Entry]) -> tuple[set[bytes], set[bytes]]:
    """Paths whose index entry is not the old tree's: those that have the new one's already, and others."""
    wanted = {(entry.path, entry.mode, entry.blob) for entry in changed}
    found = raw_entries(git.records("diff-index", "--cached", "-z", "--raw", "--no-renames", old))
    already = {entry.path for entry in found if (entry.path, entry.mode, entry.blob) in wanted}
    return already, {entry.path for entry in found} - already


def _dirty(git: Git, scratch: Path) -> list[bytes]:
    """Files that are not as in the index, asked of a copy of it. Those that a mark of the person's hides (assume
    unchanged, skip) git itself finds, if they are to change."""
    index = git.directory / git.line("rev-parse", "--git-path", "index")
    if not index.is_file():
        return []
    shutil.copy2(index, scratch)  # with its time: git reads a file again only if it is not older than the index
    copy = replace(git, index=scratch)
    copy.run("update-index", "-q", "--refresh", accept=(0, 1))
    return copy.records("diff-files", "-z", "--name-only", "--ignore-submodules=all")


def _in_the_way(root: Path, changed: Sequence[Entry]) -> list[bytes]:
    """New paths where something lies that is not the old tree's: git would keep most of it, but not what is ignored."""
    gone = {entry.path for entry in changed if entry.kind is ChangeKind.DELETED}
    added = [entry.path for entry in changed if entry.kind is ChangeKind.ADDED]
    return [path for path in added if _is_blocked(root, path, gone)]


def _is_blocked(root: Path, path: bytes, gone: set[bytes]) -> bool:
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        folder = b"/".join(parts[:depth])
        place = root / os.fsdecode(folder)
        if place.is_symlink() or place.is_file():
            return folder not in gone
    place = root / os.fsdecode(path)
    if place.is_dir() and not place.is_symlink():
        below = (os.path.join(at, name) for at, _, names in os.walk(place) for name in names)  # noqa: PTH118
        return any(os.fsencode(os.path.relpath(file, root)) not in gone for file in below)
    return os.path.lexists(place)


def _stands(git: Git, entry: Entry) -> bool:
    """Whether the file is, already, what the new tree has there."""
    place = git.directory / os.fsdecode(entry.path)
    if entry.kind is ChangeKind.DELETED:
        return not place.is_file() and not place.is_symlink()
    if entry.mode == GITLINK or not os.path.lexists(place):
        return False
    mode = place.lstat().st_mode
    if entry.mode == SYMLINK:
        if not stat.S_ISLNK(mode):
            return False
        held = git.out("hash-object", "--stdin", stdin=os.fsencode(place.readlink()))
    else:
        if not stat.S_ISREG(mode) or bool(mode & stat.S_IXUSR) != (entry.mode == "100755"):
            return False
        held = git.out("hash-object", b"--path=" + entry.path, "--", place)
    return held.decode("ascii").strip() == entry.blob


def _adopt(git: Git, there: Sequence[Entry]) -> None:
    """The index says what already stands there, so that git finds nothing to overwrite."""
    if not there:
        return
    set_entries(git, [(e.mode if e.kind is not ChangeKind.DELETED else "0", e.blob, e.path) for e in there])
    git.run("update-index", "-q", "--refresh", accept=(0, 1))
