"""Work trees that stand on a branch which is to move: brought along first, and only if nothing in them can be lost.

Index and files must be as in the old tree, or already as in the new one, which is how an interrupted call leaves
them. Moving the branch alone would show the change as its own reverse, and the person's next commit would undo it.

Commits of exactly the verified tree, and the moving of a branch to them.

A commit is made in the private store from an intent that holds everything it consists of, so that making it again
gives the same one. Publishing it copies its objects, brings work trees in which the branch is checked out along, and
moves the branch from where it was expected to be, or not at all. Each step can be repeated: whoever dies on the way
publishes again.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.common.models import ChangeKind
from proofstone.errors import InputError, RepositoryError
from proofstone.faults import fault_point
from proofstone.git.objects import GITLINK, SYMLINK
from proofstone.git.program import Git, GitFailedError, readable
from proofstone.git.repository import Repository
from proofstone.git.snapshot import Entry, difference, discard_index, raw_entries, set_entries
from proofstone.git.store import Store


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


# What gpg and ssh-keygen need to find keys and to ask for a passphrase.
_SIGNING = (
    "GNUPGHOME", "GPG_TTY", "TERM", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
    "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
)  # fmt: skip

# A branch must never point to objects that a power failure can take away.
_DURABLE = ("core.fsync=loose-object,reference", "core.fsyncMethod=batch")


class BranchMovedError(RepositoryError):
    """The branch is not where it was expected to be: somebody else has moved it."""

    def __init__(self, branch: str, expected: str | None, found: str | None) -> None:
        super().__init__(
            f"the branch {branch} has moved: expected {_named(expected)}, found {_named(found)}",
            hint="whoever moved it decides; the work can be merged onto where it is now",
        )
        self.branch = branch
        self.expected = expected
        self.found = found


@dataclass(frozen=True)
class Identity:
    name: str
    email: str


@dataclass(frozen=True)
class Intent:
    """Everything that a commit consists of."""

    tree: str
    parent: str
    message: str
    author: Identity
    date: str
    """`<unix seconds> +0000`."""


def identity(repository: Repository) -> Identity:
    """Whom the person commits as."""
    found = configured_identity(repository)
    if found is None:
        raise InputError(
            f"{repository.root}: git does not know whom to commit as",
            hint='git config --global user.name "Your Name" && git config --global user.email you@example.org',
        )
    return found


def configured_identity(repository: Repository) -> Identity | None:
    """As git finds it, but never guessed from the machine's name."""
    named = {name: os.environ[name] for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL") if name in os.environ}
    git = repository.git
    asked = replace(git, settings=("user.useConfigOnly=true",), variables={**git.variables, **named})
    line = asked.maybe("var", "GIT_AUTHOR_IDENT")
    if line is None:
        return None
    name, _, rest = line.rpartition(" <")
    return Identity(name, rest.partition(">")[0])


def write_commit(store: Store, intent: Intent, *, sign: bool) -> str:
    """The commit as an object of the private store; signed as the person has it configured, if asked."""
    git = _lent(store, store.repository.git) if sign else store.git()
    who, when = intent.author, f"@{intent.date}"
    made = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", who.name), ("EMAIL", who.email), ("DATE", when))
    }
    keys = {name: os.environ[name] for name in _SIGNING if sign and name in os.environ}
    git = replace(git, settings=("i18n.commitEncoding=UTF-8",), variables={**git.variables, **made, **keys})
    args = ("commit-tree", *(("-S",) if sign else ()), "-p", intent.parent, "-F", "-", intent.tree)
    try:
        return git.out(*args, stdin=intent.message.encode()).decode("ascii").strip()
    except GitFailedError as error:
        if not sign:
            raise
        raise RepositoryError(
            f"the commit could not be signed: {'; '.join(error.stderr.splitlines()) or error.message}",
            hint="`git commit -S` must work here: see user.signingKey, gpg.format and gpg.program",
        ) from error


def ref_of(branch: str) -> str:
    """A whole name of a ref is one that git shows nobody as a branch: where a run keeps what is not to be seen yet."""
    return branch if branch.startswith("refs/") else f"refs/heads/{branch}"


def contains(repository: Repository, branch: str, commit: str) -> bool:
    """Whether the branch is at the commit, or has it in its history."""
    asked = repository.git.run("merge-base", "--is-ancestor", commit, ref_of(branch), accept=range(256))
    return asked.returncode == 0


def refuse_bad_name(repository: Repository, wanted: str) -> None:
    if repository.git.maybe("check-ref-format", f"refs/heads/{wanted}") is None or wanted.startswith("-"):
        raise InputError(
            f"{wanted}: git does not allow such a name for a branch",
            hint="letters, digits, dashes and single slashes are safe: proofstone/my-change",
        )


def free_branch(repository: Repository, wanted: str, at: str, *, promised: Collection[str] = ()) -> str:
    """A branch that work on top of `at` may go to: one that is not there, or has nothing that `at` has not.
    `promised`: names that others will use."""
    refuse_bad_name(repository, wanted)
    listed = repository.git.out("for-each-ref", "--format=%(refname)", "refs/heads")
    taken = {os.fsdecode(line).removeprefix("refs/heads/") for line in listed.splitlines()}
    names = (name for name in _names(_beside_files(wanted, taken)) if name not in promised)
    return next(name for name in names if _is_free(repository, name, taken, at))


def publish(store: Store, branch: str, commit: str, *, expected: str | None) -> None:
    """Bring the commit into the person's repository, and the branch to it, from where it is expected to be (None: it
    must not exist yet). One commit to a repository at a time."""
    with (store.folder / "publish.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _publish(store, branch, commit, expected)


def _publish(store: Store, branch: str, commit: str, expected: str | None) -> None:
    repository = store.repository
    if contains(repository, branch, commit):
        return
    _refuse_moved(repository, branch, expected)
    _refuse_unrelated(store, branch, commit, expected)
    fault_point("commit.before-objects")
    _copy_objects(store, commit, expected)
    old = _tree_of(repository.git, expected)
    new = _tree_of(repository.git, commit)
    brought: list[Git] = []
    try:
        for place in standing_on(repository, branch):
            bring_along(store, place, branch, old, new)
            brought.append(place)
        fault_point("commit.before-ref")
        _move(store, branch, commit, expected)
    except RepositoryError:
        for place in brought:
            take_back(place, branch, old, new)
        raise
    fault_point("commit.after-ref")


def _lent(store: Store, git: Git) -> Git:
    """The person's git, which sees the private store's objects too, and writes new ones there."""
    return replace(git, variables={**git.variables, "GIT_OBJECT_DIRECTORY": str(store.objects)})


def _named(commit: str | None) -> str:
    return commit[:12] if commit else "no such branch"


def position(repository: Repository, branch: str) -> str | None:
    """The commit that a branch is at; None if there is no such branch."""
    return repository.git.maybe("rev-parse", "--verify", "--quiet", f"{ref_of(branch)}^{{commit}}")


def _refuse_moved(repository: Repository, branch: str, expected: str | None) -> None:
    found = position(repository, branch)
    if found != expected:
        raise BranchMovedError(branch, expected, found)


def _refuse_unrelated(store: Store, branch: str, commit: str, expected: str | None) -> None:
    """Moving the branch to a commit that does not build on it would throw its history away."""
    if expected is None:
        return
    git = _lent(store, store.repository.git)
    if git.run("merge-base", "--is-ancestor", expected, commit, accept=(0, 1)).returncode:
        raise RepositoryError(f"{commit[:12]} does not build on {expected[:12]}, where the branch {branch} is")


def _copy_objects(store: Store, commit: str, expected: str | None) -> None:
    """What the person's repository lacks. Only what a ref reaches counts as there: of what an earlier call copied,
    part may be missing."""
    theirs = store.repository.git
    lent = _lent(store, theirs)
    known = [expected] if expected else ["--branches", "--tags", "--remotes", "HEAD"]
    listed = lent.out("rev-list", "--objects", commit, "--not", *known)
    pack = lent.out("pack-objects", "--stdout", "-q", stdin=listed)
    replace(theirs, settings=_DURABLE).run("unpack-objects", "-q", stdin=pack)


def _tree_of(git: Git, commit: str | None) -> str:
    """The tree of a commit; the empty one, if there is none."""
    return git.tree_of(commit) if commit else git.line("mktree")


def _move(store: Store, branch: str, commit: str, expected: str | None) -> None:
    repository = store.repository
    subject = repository.git.line("log", "-1", "--format=%s", commit)
    git = replace(repository.git, settings=_DURABLE)
    try:
        git.run("update-ref", "-m", f"proofstone: {subject}", ref_of(branch), commit, expected or "0" * len(commit))
    except GitFailedError:
        if contains(repository, branch, commit):
            return
        _refuse_moved(repository, branch, expected)
        raise


def _names(wanted: str) -> Iterator[str]:
    yield wanted
    number = 2
    while True:
        yield f"{wanted}-{number}"
        number += 1


def _beside_files(wanted: str, taken: set[str]) -> str:
    """Where a branch `proofstone` exists there can be no `proofstone/x`, whatever number it had: `proofstone-x`
    then."""
    parts = wanted.split("/")
    name = parts[0]
    for part in parts[1:]:
        name = f"{name}-{part}" if name in taken else f"{name}/{part}"
    return name


def _is_free(repository: Repository, name: str, taken: set[str], at: str) -> bool:
    if any(other.startswith(f"{name}/") for other in taken):
        return False
    if name not in taken:
        return True
    asked = repository.git.run("merge-base", "--is-ancestor", f"refs/heads/{name}", at, accept=(0, 1))
    return asked.returncode == 0
