"""Create commits of exactly the verified tree, and move branches to them.

A commit is created in the private store from an intent that holds everything it consists of, so that creating it again
gives the same commit. Publishing copies its objects, updates the work trees in which the branch is checked out, and
moves the branch from its expected position, or not at all. Each step can be repeated: after a crash, publish again.

A work tree that has the branch checked out is updated first, and only if nothing in it can be lost: index and files
must match the old tree, or already match the new one, as an interrupted call leaves them. Moving the branch alone would
show the change as its own reverse, and the user's next commit would undo it.
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
from proofstone.git.program import Git, GitCommandError, decode_path
from proofstone.git.repository import Repository
from proofstone.git.snapshot import TreeDifference, compare_trees, discard_index, parse_raw_diff, write_index_entries
from proofstone.git.store import Store


class CheckedOutError(RepositoryError):
    """The branch is checked out, and moving it would lose changes there."""


def find_work_trees(repository: Repository, branch: str) -> list[Git]:
    """Return the work trees that have the branch checked out. One whose folder is gone has nothing to lose."""
    work_trees = []
    for block in repository.git.run_output("worktree", "list", "--porcelain", "-z").split(b"\0\0"):
        fields = dict(line.partition(b" ")[::2] for line in block.split(b"\0"))
        folder = Path(os.fsdecode(fields.get(b"worktree", b"")))
        if fields.get(b"branch") == os.fsencode(f"refs/heads/{branch}") and os.path.lexists(folder / ".git"):
            work_trees.append(repository.git_in(folder))
    return work_trees


def update_work_tree(store: Store, git: Git, branch: str, old: str, new: str) -> None:
    """Move index and files from the old tree to the new one under git's own lock, or raise an error
    and change nothing.
    """
    changed = compare_trees(git, old, new)
    already_staged, staged = _compare_index(git, old, changed)
    scratch = store.folder / f"index.standing-{secrets.token_hex(4)}"
    try:
        suspects = {*already_staged, *_find_dirty(git, scratch), *_find_blocked(git.directory, changed)}
    finally:
        discard_index(scratch)
    up_to_date = [entry for entry in changed if entry.path in suspects and _is_up_to_date(git, entry)]
    if lost := sorted(staged | (suspects - {entry.path for entry in up_to_date})):
        raise CheckedOutError(
            f"{git.directory}: the branch {branch} is checked out here, and these files would be lost: "
            f"{', '.join(decode_path(path) for path in lost[:5])}{' …' if len(lost) > 5 else ''}",
            hint="commit, stash or move them, or choose another branch for the work",
        )
    try:
        _update_index(git, up_to_date)
        git.run("read-tree", "-m", "-u", old, new)
    except GitCommandError as error:
        reason = error.stderr.splitlines()[0] if error.stderr else error.message
        raise CheckedOutError(
            f"{git.directory}: the branch {branch} is checked out here and cannot be moved: {reason}", hint=error.hint
        ) from error


def restore_work_tree(git: Git, branch: str, old: str, new: str) -> None:
    """Restore the old tree after the branch could not be moved, unless somebody has just committed the new one."""
    if git.run("diff-index", "--cached", "--quiet", f"refs/heads/{branch}", accept=range(256)).returncode != 0:
        git.run("read-tree", "-m", "-u", new, old)


def _compare_index(git: Git, old: str, changed: Sequence[TreeDifference]) -> tuple[set[bytes], set[bytes]]:
    """Return the paths whose index entry differs from the old tree: those that match the new tree already, and the
    others.
    """
    new_entries = {(entry.path, entry.mode, entry.blob) for entry in changed}
    entries = parse_raw_diff(git.run_records("diff-index", "--cached", "-z", "--raw", "--no-renames", old))
    already = {entry.path for entry in entries if (entry.path, entry.mode, entry.blob) in new_entries}
    return already, {entry.path for entry in entries} - already


def _find_dirty(git: Git, scratch: Path) -> list[bytes]:
    """Return the files that differ from the index, using a copy of the index.

    Files that the user marked as `assume-unchanged` or `skip-worktree` are hidden here; git itself reports them if they
    have to change.
    """
    index = git.directory / git.run_line("rev-parse", "--git-path", "index")
    if not index.is_file():
        return []
    shutil.copy2(index, scratch)  # keep the time: git reads a file again only if it is not older than the index
    copy = replace(git, index=scratch)
    copy.run("update-index", "-q", "--refresh", accept=(0, 1))
    return copy.run_records("diff-files", "-z", "--name-only", "--ignore-submodules=all")


def _find_blocked(root: Path, changed: Sequence[TreeDifference]) -> list[bytes]:
    """Return new paths where a file lies that is not in the old tree.

    Git would refuse to overwrite most such files, but not ignored ones.
    """
    deleted = {entry.path for entry in changed if entry.kind is ChangeKind.DELETED}
    added = [entry.path for entry in changed if entry.kind is ChangeKind.ADDED]
    return [path for path in added if _is_blocked(root, path, deleted)]


def _is_blocked(root: Path, path: bytes, deleted: set[bytes]) -> bool:
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        folder = b"/".join(parts[:depth])
        place = root / os.fsdecode(folder)
        if place.is_symlink() or place.is_file():
            return folder not in deleted
    place = root / os.fsdecode(path)
    if place.is_dir() and not place.is_symlink():
        below = (os.path.join(parent, name) for parent, _, names in os.walk(place) for name in names)  # noqa: PTH118
        return any(os.fsencode(os.path.relpath(file, root)) not in deleted for file in below)
    return os.path.lexists(place)


def _is_up_to_date(git: Git, entry: TreeDifference) -> bool:
    """Return whether the file already matches the new tree."""
    place = git.directory / os.fsdecode(entry.path)
    if entry.kind is ChangeKind.DELETED:
        return not place.is_file() and not place.is_symlink()
    if entry.mode == GITLINK or not os.path.lexists(place):
        return False
    mode = place.lstat().st_mode
    if entry.mode == SYMLINK:
        if not stat.S_ISLNK(mode):
            return False
        blob = git.run_output("hash-object", "--stdin", stdin=os.fsencode(place.readlink()))
    else:
        if not stat.S_ISREG(mode) or bool(mode & stat.S_IXUSR) != (entry.mode == "100755"):
            return False
        blob = git.run_output("hash-object", b"--path=" + entry.path, "--", place)
    return blob.decode("ascii").strip() == entry.blob


def _update_index(git: Git, up_to_date: Sequence[TreeDifference]) -> None:
    """Record the files that already match in the index, so that git finds nothing to overwrite."""
    if not up_to_date:
        return
    write_index_entries(
        git, [(e.mode if e.kind is not ChangeKind.DELETED else "0", e.blob, e.path) for e in up_to_date]
    )
    git.run("update-index", "-q", "--refresh", accept=(0, 1))


# The variables that gpg and ssh-keygen need to find keys and to ask for a passphrase.
_SIGNING_VARIABLES = (
    "GNUPGHOME", "GPG_TTY", "TERM", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
    "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
)  # fmt: skip

# A branch must never point to objects that a power failure can destroy.
_DURABLE_SETTINGS = ("core.fsync=loose-object,reference", "core.fsyncMethod=batch")


class BranchMovedError(RepositoryError):
    """The branch is not where it was expected: somebody else has moved it."""

    def __init__(self, branch: str, expected: str | None, found: str | None) -> None:
        super().__init__(
            f"the branch {branch} has moved: expected {_describe_commit(expected)}, found {_describe_commit(found)}",
            hint="find out who moved it and why; the work can be merged onto its new position",
        )
        self.branch = branch
        self.expected = expected
        self.found = found


@dataclass(frozen=True)
class CommitIdentity:
    """The name and email of an author."""

    name: str
    email: str


@dataclass(frozen=True)
class CommitIntent:
    """Everything that a commit consists of."""

    tree: str
    parent: str
    message: str
    author: CommitIdentity
    date: str
    """The date in the form `<unix seconds> +0000`."""


def read_identity(repository: Repository) -> CommitIdentity:
    """Return the identity that the user commits with. Raise `InputError` if none is configured."""
    author = find_identity(repository)
    if author is None:
        raise InputError(
            f"{repository.root}: git has no name and email for your commits",
            hint='git config --global user.name "Your Name" && git config --global user.email you@example.org',
        )
    return author


def find_identity(repository: Repository) -> CommitIdentity | None:
    """Return the identity that git is configured with, if any; it is never guessed from the machine's name."""
    variables = {name: os.environ[name] for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL") if name in os.environ}
    git = repository.git
    strict_git = replace(git, settings=("user.useConfigOnly=true",), variables={**git.variables, **variables})
    line = strict_git.try_line("var", "GIT_AUTHOR_IDENT")
    if line is None:
        return None
    name, _, rest = line.rpartition(" <")
    return CommitIdentity(name, rest.partition(">")[0])


def write_commit(store: Store, intent: CommitIntent, *, sign: bool) -> str:
    """Write the commit to the private store and return its id. With `sign`, sign it as the user has configured."""
    git = _with_store_objects(store, store.repository.git) if sign else store.git()
    author, when = intent.author, f"@{intent.date}"
    identity_variables = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", author.name), ("EMAIL", author.email), ("DATE", when))
    }
    signing_variables = {name: os.environ[name] for name in _SIGNING_VARIABLES if sign and name in os.environ}
    git = replace(
        git,
        settings=("i18n.commitEncoding=UTF-8",),
        variables={**git.variables, **identity_variables, **signing_variables},
    )
    args = ("commit-tree", *(("-S",) if sign else ()), "-p", intent.parent, "-F", "-", intent.tree)
    try:
        return git.run_output(*args, stdin=intent.message.encode()).decode("ascii").strip()
    except GitCommandError as error:
        if not sign:
            raise
        raise RepositoryError(
            f"the commit could not be signed: {'; '.join(error.stderr.splitlines()) or error.message}",
            hint="`git commit -S` must work here: see user.signingKey, gpg.format and gpg.program",
        ) from error


def to_ref(branch: str) -> str:
    """Return the full ref of a branch.

    A name that is a full ref already stays as it is: git does not list it as a branch, so a run can keep hidden work
    there.
    """
    return branch if branch.startswith("refs/") else f"refs/heads/{branch}"


def branch_contains(repository: Repository, branch: str, commit: str) -> bool:
    """Return whether the branch is at the commit, or has it in its history."""
    result = repository.git.run("merge-base", "--is-ancestor", commit, to_ref(branch), accept=range(256))
    return result.returncode == 0


def validate_branch_name(repository: Repository, wanted: str) -> None:
    """Raise `InputError` if git does not allow the name for a branch."""
    if repository.git.try_line("check-ref-format", f"refs/heads/{wanted}") is None or wanted.startswith("-"):
        raise InputError(
            f"{wanted}: git does not allow this name for a branch",
            hint="use letters, digits, dashes and single slashes, such as proofstone/my-change",
        )


def find_free_branch(repository: Repository, wanted: str, at: str, *, promised: Collection[str] = ()) -> str:
    """Return a branch name for work on top of `at`: one that is unused, or whose history `at` contains.

    `promised` holds names that other runs will use.
    """
    validate_branch_name(repository, wanted)
    output = repository.git.run_output("for-each-ref", "--format=%(refname)", "refs/heads")
    taken = {os.fsdecode(line).removeprefix("refs/heads/") for line in output.splitlines()}
    names = (name for name in _candidate_names(_avoid_existing_branch(wanted, taken)) if name not in promised)
    return next(name for name in names if _is_free(repository, name, taken, at))


def publish_commit(store: Store, branch: str, commit: str, *, expected: str | None) -> None:
    """Copy the commit into the user's repository and move the branch to it.

    `expected` is the current position of the branch, or None if it must not exist yet. Only one commit to a repository
    is published at a time.
    """
    with (store.folder / "publish.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _publish(store, branch, commit, expected)


def _publish(store: Store, branch: str, commit: str, expected: str | None) -> None:
    repository = store.repository
    if branch_contains(repository, branch, commit):
        return
    _refuse_moved(repository, branch, expected)
    _refuse_unrelated(store, branch, commit, expected)
    fault_point("commit.before-objects")
    _copy_objects(store, commit, expected)
    old = _tree_of(repository.git, expected)
    new = _tree_of(repository.git, commit)
    updated: list[Git] = []
    try:
        for work_tree in find_work_trees(repository, branch):
            update_work_tree(store, work_tree, branch, old, new)
            updated.append(work_tree)
        fault_point("commit.before-ref")
        _move_branch(store, branch, commit, expected)
    except RepositoryError:
        for work_tree in updated:
            restore_work_tree(work_tree, branch, old, new)
        raise
    fault_point("commit.after-ref")


def _with_store_objects(store: Store, git: Git) -> Git:
    """Return the user's git, set up to see the objects of the private store too and to write new ones there."""
    return replace(git, variables={**git.variables, "GIT_OBJECT_DIRECTORY": str(store.objects)})


def _describe_commit(commit: str | None) -> str:
    return commit[:12] if commit else "no such branch"


def find_branch_tip(repository: Repository, branch: str) -> str | None:
    """Return the commit at the tip of a branch, or None if there is no such branch."""
    return repository.git.try_line("rev-parse", "--verify", "--quiet", f"{to_ref(branch)}^{{commit}}")


def _refuse_moved(repository: Repository, branch: str, expected: str | None) -> None:
    actual = find_branch_tip(repository, branch)
    if actual != expected:
        raise BranchMovedError(branch, expected, actual)


def _refuse_unrelated(store: Store, branch: str, commit: str, expected: str | None) -> None:
    """Raise an error if the commit does not build on the branch: moving it would discard the history of the branch."""
    if expected is None:
        return
    git = _with_store_objects(store, store.repository.git)
    if git.run("merge-base", "--is-ancestor", expected, commit, accept=(0, 1)).returncode:
        raise RepositoryError(f"{commit[:12]} does not build on {expected[:12]}, where the branch {branch} is")


def _copy_objects(store: Store, commit: str, expected: str | None) -> None:
    """Copy the objects that the user's repository lacks.

    Only objects that a ref reaches count as present: an earlier call may have copied some objects and not others.
    """
    user_git = store.repository.git
    combined = _with_store_objects(store, user_git)
    known_revisions = [expected] if expected else ["--branches", "--tags", "--remotes", "HEAD"]
    object_list = combined.run_output("rev-list", "--objects", commit, "--not", *known_revisions)
    pack = combined.run_output("pack-objects", "--stdout", "-q", stdin=object_list)
    replace(user_git, settings=_DURABLE_SETTINGS).run("unpack-objects", "-q", stdin=pack)


def _tree_of(git: Git, commit: str | None) -> str:
    """Return the tree of a commit, or the empty tree if there is no commit."""
    return git.find_tree(commit) if commit else git.run_line("mktree")


def _move_branch(store: Store, branch: str, commit: str, expected: str | None) -> None:
    repository = store.repository
    subject = repository.git.run_line("log", "-1", "--format=%s", commit)
    git = replace(repository.git, settings=_DURABLE_SETTINGS)
    try:
        git.run("update-ref", "-m", f"proofstone: {subject}", to_ref(branch), commit, expected or "0" * len(commit))
    except GitCommandError:
        if branch_contains(repository, branch, commit):
            return
        _refuse_moved(repository, branch, expected)
        raise


def _candidate_names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _avoid_existing_branch(branch: str, taken: set[str]) -> str:
    """Avoid a name below an existing branch.

    Where a branch `proofstone` exists, git allows no `proofstone/x`, whatever number is appended; return
    `proofstone-x`.
    """
    parts = branch.split("/")
    result = parts[0]
    for part in parts[1:]:
        result = f"{result}-{part}" if result in taken else f"{result}/{part}"
    return result


def _is_free(repository: Repository, name: str, taken: set[str], at: str) -> bool:
    if any(other.startswith(f"{name}/") for other in taken):
        return False
    if name not in taken:
        return True
    result = repository.git.run("merge-base", "--is-ancestor", f"refs/heads/{name}", at, accept=(0, 1))
    return result.returncode == 0
