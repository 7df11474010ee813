"""Commits of exactly the verified tree, and the moving of a branch to them.

A commit is made in the private store from an intent that holds everything it consists of, so that making it again
gives the same one. Publishing it copies its objects, brings work trees in which the branch is checked out along, and
moves the branch from where it was expected to be, or not at all. Each step can be repeated: whoever dies on the way
publishes again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from proofstone.adapters.git.checked_out import bring_along, standing_on, take_back
from proofstone.adapters.git.program import Git, GitFailedError
from proofstone.adapters.git.repository import Repository
from proofstone.adapters.git.store import Store
from proofstone.errors import InputError, RepositoryError
from proofstone.faults import fault_point

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
