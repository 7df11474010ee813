"""A task's private work tree: a folder in which an executor may do anything, and how it is frozen.

The folder has its own `.git`, in which history, diff, commit and stash work as usual. It borrows objects from stores
that the executor can read but not write. Nothing in that `.git` is trusted: beside it, out of the executor's reach, is
a trusted git directory with the user's own settings and rules as they were before the executor started, and only that
one is used to freeze the files. New objects go straight to the main store.

    folder/files            the work tree, with the executor's `.git`
    folder/trusted/git      the git directory that freezes it
    folder/trusted/theirs   the user's exclude file, attributes and index, in place of the executor's
    folder/work-tree.json   what it was created from
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.common.models import Finding, Severity
from proofstone.errors import RepositoryError
from proofstone.git.checkout import Checkout, check_out, write_minimal_git
from proofstone.git.commit import CommitIdentity, find_identity
from proofstone.git.objects import GITLINK, list_tree
from proofstone.git.program import Git, decode_path
from proofstone.git.repository import Repository
from proofstone.git.snapshot import Snapshot, fetch_missing, take_snapshot
from proofstone.git.store import Store, derive_store, refuse_filters_in_tree
from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import BindMount

_OBJECTS = Path("/run/proofstone/objects")
_NOBODY = CommitIdentity("Executor", "executor@proofstone.invalid")
_MAX_FILE_BYTES = 1 << 30
"""The maximum size of one file, in bytes."""
_PERSONAL_FILES = (Path("info/exclude"), Path("info/attributes"))


class WorkTreeMissingError(RepositoryError):
    """The folder that was given to an executor is no longer a folder."""


@dataclass(frozen=True)
class WorkTree:
    """A private work tree of a task."""

    folder: Path
    """The whole folder, accessible to its owner only."""
    files: Path
    """The folder in which the executor works."""
    base_commit: str
    """The commit that HEAD was at when the work tree was created."""
    objects: tuple[BindMount, ...]
    """The stores from which its `.git` borrows objects, as a sandboxed executor sees them; empty if it uses the real
    paths.
    """


def create_work_tree(store: Store, folder: Path, *, base_commit: str, tree: str, sandboxed: bool) -> WorkTree:
    """Create a work tree with the files of `tree`, to be compared with `base_commit`.

    It is created in a temporary folder, which then replaces an older work tree. Objects are not hashed here, because
    the final check uses another checkout, which does so.
    """
    base_tree = store.git().find_tree(base_commit)
    if store.repository.is_partial:
        for needed_tree in dict.fromkeys((base_tree, tree)):
            fetch_missing(store.repository.git, needed_tree, known_to=store.git())
    temporary = folder.with_name(f"{folder.name}.new")
    remove_work_tree(temporary)
    checkout = check_out(store, tree, temporary, verified=False, whole=True)
    _write_executor_git(store, checkout, base_commit, base_tree, sandboxed=sandboxed)
    _write_trusted_git(store, checkout, temporary)
    (temporary / "work-tree.json").write_text(json.dumps({"base_commit": base_commit, "sandboxed": sandboxed}))
    _put_in_place(temporary, folder)
    return WorkTree(folder, folder / "files", base_commit, _borrowed_stores(store) if sandboxed else ())


def open_work_tree(store: Store, folder: Path) -> WorkTree | None:
    """Return an existing work tree as it was left, or None if there is none."""
    record_file = folder / "work-tree.json"
    if not record_file.is_file():
        return None
    try:
        record = json.loads(record_file.read_text("utf-8"))
        base_commit, sandboxed = str(record["base_commit"]), record["sandboxed"] is True
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise WorkTreeMissingError(
            f"{record_file}: it does not say what the work tree was created from",
            hint=f"the work is in {folder / 'files'}; move it away, and the task starts again",
        ) from error
    return WorkTree(folder, folder / "files", base_commit, _borrowed_stores(store) if sandboxed else ())


def remove_work_tree(folder: Path) -> None:
    """Remove a work tree, with the temporary folders that a crash left beside it."""
    for place in (folder, folder.with_name(f"{folder.name}.new"), folder.with_name(f"{folder.name}.old")):
        if place.is_dir():
            remove_folder(place)


def freeze_work_tree(store: Store, work_tree: WorkTree, base_tree: str) -> Snapshot:
    """Return a snapshot of the files by the same rules as for the user's own work tree. The executor
    must have ended.
    """
    if work_tree.files.is_symlink() or not work_tree.files.is_dir():
        raise WorkTreeMissingError(f"{work_tree.files}: the work tree is gone: the executor removed or replaced it")
    trusted = Store(_trusted_repository(store, work_tree.files), work_tree.folder / "trusted", store.objects)
    refuse_filters_in_tree(trusted)
    trusted.git(index=trusted.repository.git_dir / "index").run("read-tree", base_tree)
    frozen = take_snapshot(trusted, base_tree)
    return replace(frozen, findings=(*frozen.findings, *_find_edited_submodules(store, work_tree, base_tree)))


def find_oversized_file(files: Path) -> str:
    """Return the first file that is too large to freeze in a reasonable time, or why a folder cannot
    be read; else "".
    """
    pending = [files]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending += [Path(entry.path)] if entry.name != ".git" else []
                    elif entry.stat(follow_symlinks=False).st_size > _MAX_FILE_BYTES:
                        return f"{Path(entry.path).relative_to(files)} is too large"
        except OSError as error:
            return str(error.strerror)
    return ""


def _trusted_repository(store: Store, files: Path) -> Repository:
    theirs = files.parent / "trusted" / "theirs"
    main = store.repository
    return Repository(files, git_dir=theirs, common_dir=theirs, search=main.search, stands_in_for=main.root)


def _borrowed_stores(store: Store) -> tuple[BindMount, ...]:
    """Return the user's own object stores, which hold the base.

    The private store is left out: it holds everything that was ever checked, including drafts and probes of other
    tasks.
    """
    stores = store.repository.object_dirs
    return tuple(BindMount(path, _OBJECTS / str(number)) for number, path in enumerate(stores))


def _put_in_place(temporary: Path, folder: Path) -> None:
    old = folder.with_name(f"{folder.name}.old")
    if folder.is_dir():
        if old.is_dir():
            remove_folder(old)  # left by a run that was killed
        folder.rename(old)
    temporary.rename(folder)
    if old.is_dir():
        remove_folder(old)


def _write_executor_git(store: Store, checkout: Checkout, commit: str, base_tree: str, *, sandboxed: bool) -> None:
    """Write the executor's `.git`: the base as HEAD and index, the user's conversions, and an identity."""
    git_dir = checkout.files / ".git"
    paths = [str(bind.at if sandboxed else bind.source) for bind in _borrowed_stores(store)]
    write_minimal_git(store, checkout, commit, git_dir, paths)
    if checkout.tree != base_tree:
        # Entries that are the same in both trees keep their stat data, so that only files that differ are read.
        store.git(work_tree=checkout.files, index=git_dir / "index").run("read-tree", "-i", "-m", base_tree)
    author = find_identity(store.repository) or _NOBODY
    config = git_dir / "config"
    user_section = f"[user]\n\tname = {_quote(author.name)}\n\temail = {_quote(author.email)}\n"
    minimal_config = config.read_bytes()
    config.write_bytes((store.git_dir / "config").read_bytes() + minimal_config + os.fsencode(user_section))
    _copy_personal(store, git_dir)


def _write_trusted_git(store: Store, checkout: Checkout, folder: Path) -> None:
    trusted = derive_store(store, folder / "trusted", _trusted_repository(store, checkout.files))
    theirs = trusted.repository.git_dir
    for part in ("refs", "objects", "info"):
        (theirs / part).mkdir(parents=True)
    (theirs / "HEAD").write_text("ref: refs/heads/none\n")
    shutil.copyfile(store.git_dir / "config", theirs / "config")
    excludes = store.repository.git.try_line("config", "--type=path", "core.excludesFile")
    if excludes:
        excludes_path = store.repository.root / excludes
        trusted.git().run("config", "--file", theirs / "config", "core.excludesFile", str(excludes_path))
    _copy_personal(store, theirs)
    # The checkout's stat data save reading files that nobody touched. Keep its time; see `snapshot`.
    shutil.copy2(checkout.index, trusted.folder / "index")


def _copy_personal(store: Store, git_dir: Path) -> None:
    for name in _PERSONAL_FILES:
        source = store.repository.common_dir / name
        if source.is_file():
            shutil.copyfile(source, git_dir / name)


def _quote(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _find_edited_submodules(store: Store, work_tree: WorkTree, base_tree: str) -> list[Finding]:
    """Report submodules with edited files: a submodule stays at its recorded commit, so edits are not in the tree."""
    links = [link for link in list_tree(store.git(), base_tree) if link.mode == GITLINK]
    edited = [link for link in links if _is_edited(store, work_tree, os.fsdecode(link.path), link.object_id)]
    return [_report_edited_submodule(link.path) for link in edited]


def _is_edited(store: Store, work_tree: WorkTree, path: str, commit: str) -> bool:
    clone, files = store.repository.root / path, work_tree.files / path
    if files.is_symlink() or not files.is_dir() or os.path.lexists(files / ".git"):
        return True
    index = work_tree.folder / f"index-{commit[:12]}"
    if not index.is_file():  # not initialised, so it was empty
        return any(files.iterdir())
    inside = store.repository.git_in(clone)
    git_dir = Path(inside.run_line("rev-parse", "--absolute-git-dir"))
    git = Git(files, git_dir=git_dir, work_tree=files, index=index, variables=inside.variables)
    git.run("read-tree", "-i", "-m", f"{commit}^{{tree}}")
    git.run("update-index", "-q", "--refresh", accept=(0, 1))
    changed = git.run_output("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    return bool(changed or git.run_output("ls-files", "-z", "--others", "--exclude-standard"))


def _report_edited_submodule(path: bytes) -> Finding:
    return Finding(
        layer="L1",
        rule="submodule-dirty",
        severity=Severity.MINOR,
        path=decode_path(path),
        detail="files of the submodule were changed in the work tree; they are not part of the checked tree",
        fix="change the submodule in its own repository, and record its new commit by hand",
    )
