"""A task's private work tree: a folder that an executor may do anything with, and how what it holds is frozen.

The folder has a `.git` of its own, in which history, diff, commit and stash work as usual. It borrows objects from
stores that the executor can read but not write. Nothing in it is believed: beside it, out of the executor's reach,
lies a trusted git directory with the person's own settings and rules as they were before the executor started, and
only that one is asked when the files are frozen. New objects go straight to the main store.

    folder/files            the work tree, with the executor's `.git`
    folder/trusted/git      what freezes it
    folder/trusted/theirs   the person's exclude file, attributes and index, in place of the executor's
    folder/work-tree.json   what it was made from
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
from proofstone.git.commit import Identity, configured_identity
from proofstone.git.objects import GITLINK, in_tree
from proofstone.git.program import Git, readable
from proofstone.git.repository import Repository
from proofstone.git.snapshot import Snapshot, fetch_missing, snapshot
from proofstone.git.store import Store, refuse_filters_in_tree, store_beside
from proofstone.machine.files import remove
from proofstone.sandbox.job import Bind

_OBJECTS = Path("/run/proofstone/objects")
_NOBODY = Identity("Executor", "executor@proofstone.invalid")
_LARGEST = 1 << 30
"""Bytes of one file."""
_PERSONAL = (Path("info/exclude"), Path("info/attributes"))


class WorkTreeLostError(RepositoryError):
    """The folder that an executor was given is no folder any more."""


@dataclass(frozen=True)
class WorkTree:
    folder: Path
    """Everything of it; for its owner alone."""
    files: Path
    """What the executor works in."""
    base_commit: str
    """What its HEAD was when it was made."""
    objects: tuple[Bind, ...]
    """Where its `.git` borrows objects, as a sandboxed executor sees them; empty if it names the real places."""


def make_work_tree(store: Store, folder: Path, *, base_commit: str, tree: str, sandboxed: bool) -> WorkTree:
    """A work tree with the files of `tree`, compared with `base_commit`; made aside, and put in place of an older one.

    Objects are not hashed here: what is checked in the end is another checkout, and there they are.
    """
    base_tree = store.git().tree_of(base_commit)
    if store.repository.is_partial:
        for needed in dict.fromkeys((base_tree, tree)):
            fetch_missing(store.repository.git, needed, known_to=store.git())
    aside = folder.with_name(f"{folder.name}.new")
    remove_work_tree(aside)
    checkout = check_out(store, tree, aside, verified=False, whole=True)
    _write_their_git(store, checkout, base_commit, base_tree, sandboxed=sandboxed)
    _write_trusted(store, checkout, aside)
    (aside / "work-tree.json").write_text(json.dumps({"base_commit": base_commit, "sandboxed": sandboxed}))
    _put_in_place(aside, folder)
    return WorkTree(folder, folder / "files", base_commit, _borrowed(store) if sandboxed else ())


def open_work_tree(store: Store, folder: Path) -> WorkTree | None:
    """One that was made earlier, as it was left."""
    made = folder / "work-tree.json"
    if not made.is_file():
        return None
    try:
        said = json.loads(made.read_text("utf-8"))
        base_commit, sandboxed = str(said["base_commit"]), said["sandboxed"] is True
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise WorkTreeLostError(
            f"{made}: it does not say what the work tree was made from",
            hint=f"what was done there is in {folder / 'files'}; move it away, and the task begins anew",
        ) from error
    return WorkTree(folder, folder / "files", base_commit, _borrowed(store) if sandboxed else ())


def remove_work_tree(folder: Path) -> None:
    """With whatever a crash left beside it."""
    for place in (folder, folder.with_name(f"{folder.name}.new"), folder.with_name(f"{folder.name}.old")):
        if place.is_dir():
            remove(place)


def freeze(store: Store, work_tree: WorkTree, base_tree: str) -> Snapshot:
    """What the files are now, by the same rules as a person's own work tree. The executor must have ended."""
    if work_tree.files.is_symlink() or not work_tree.files.is_dir():
        raise WorkTreeLostError(f"{work_tree.files}: the work tree is gone: the executor removed or replaced it")
    trusted = Store(_as_trusted(store, work_tree.files), work_tree.folder / "trusted", store.objects)
    refuse_filters_in_tree(trusted)
    trusted.git(index=trusted.repository.git_dir / "index").run("read-tree", base_tree)
    frozen = snapshot(trusted, base_tree)
    return replace(frozen, findings=(*frozen.findings, *_edited_submodules(store, work_tree, base_tree)))


def too_heavy(files: Path) -> str:
    """The first file too large to be frozen in a sensible time, or why a folder cannot be looked into."""
    waiting = [files]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [Path(entry.path)] if entry.name != ".git" else []
                    elif entry.stat(follow_symlinks=False).st_size > _LARGEST:
                        return f"{Path(entry.path).relative_to(files)} is too large"
        except OSError as error:
            return str(error.strerror)
    return ""


def _as_trusted(store: Store, files: Path) -> Repository:
    theirs = files.parent / "trusted" / "theirs"
    main = store.repository
    return Repository(files, git_dir=theirs, common_dir=theirs, search=main.search, stands_for=main.root)


def _borrowed(store: Store) -> tuple[Bind, ...]:
    """The person's own objects, which hold the base. Not the private store: what was ever checked lies there, drafts
    and probes of other tasks among it."""
    stores = store.repository.object_dirs
    return tuple(Bind(path, _OBJECTS / str(number)) for number, path in enumerate(stores))


def _put_in_place(aside: Path, folder: Path) -> None:
    old = folder.with_name(f"{folder.name}.old")
    if folder.is_dir():
        if old.is_dir():
            remove(old)  # a run that was killed did not come to it
        folder.rename(old)
    aside.rename(folder)
    if old.is_dir():
        remove(old)


def _write_their_git(store: Store, checkout: Checkout, commit: str, base_tree: str, *, sandboxed: bool) -> None:
    """The `.git` that the executor gets: the base as HEAD and index, the person's conversions, an identity."""
    git_dir = checkout.files / ".git"
    paths = [str(bind.at if sandboxed else bind.source) for bind in _borrowed(store)]
    write_minimal_git(store, checkout, commit, git_dir, paths)
    if checkout.tree != base_tree:
        # Entries that are the same in both trees keep their stat data, so that only what differs is ever read.
        store.git(work_tree=checkout.files, index=git_dir / "index").run("read-tree", "-i", "-m", base_tree)
    who = configured_identity(store.repository) or _NOBODY
    config = git_dir / "config"
    person = f"[user]\n\tname = {_quoted(who.name)}\n\temail = {_quoted(who.email)}\n"
    ours = config.read_bytes()
    config.write_bytes((store.git_dir / "config").read_bytes() + ours + os.fsencode(person))
    _copy_personal(store, git_dir)


def _write_trusted(store: Store, checkout: Checkout, folder: Path) -> None:
    trusted = store_beside(store, folder / "trusted", _as_trusted(store, checkout.files))
    theirs = trusted.repository.git_dir
    for part in ("refs", "objects", "info"):
        (theirs / part).mkdir(parents=True)
    (theirs / "HEAD").write_text("ref: refs/heads/none\n")
    shutil.copyfile(store.git_dir / "config", theirs / "config")
    excludes = store.repository.git.maybe("config", "--type=path", "core.excludesFile")
    if excludes:
        named = store.repository.root / excludes
        trusted.git().run("config", "--file", theirs / "config", "core.excludesFile", str(named))
    _copy_personal(store, theirs)
    # The checkout's stat data spare reading files that nobody touched; with its time, see `snapshot`.
    shutil.copy2(checkout.index, trusted.folder / "index")


def _copy_personal(store: Store, git_dir: Path) -> None:
    for name in _PERSONAL:
        source = store.repository.common_dir / name
        if source.is_file():
            shutil.copyfile(source, git_dir / name)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _edited_submodules(store: Store, work_tree: WorkTree, base_tree: str) -> list[Finding]:
    """Submodules stay at their recorded commit; what was done inside one is said, for it is not in the tree."""
    links = [item for item in in_tree(store.git(), base_tree) if item.mode == GITLINK]
    edited = [link for link in links if _is_edited(store, work_tree, os.fsdecode(link.path), link.thing)]
    return [_submodule_edited(item.path) for item in edited]


def _is_edited(store: Store, work_tree: WorkTree, path: str, commit: str) -> bool:
    clone, files = store.repository.root / path, work_tree.files / path
    if files.is_symlink() or not files.is_dir() or os.path.lexists(files / ".git"):
        return True
    index = work_tree.folder / f"index-{commit[:12]}"
    if not index.is_file():  # not initialised: it was empty
        return any(files.iterdir())
    inside = store.repository.git_in(clone)
    git_dir = Path(inside.line("rev-parse", "--absolute-git-dir"))
    git = Git(files, git_dir=git_dir, work_tree=files, index=index, variables=inside.variables)
    git.run("read-tree", "-i", "-m", f"{commit}^{{tree}}")
    git.run("update-index", "-q", "--refresh", accept=(0, 1))
    changed = git.out("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    return bool(changed or git.out("ls-files", "-z", "--others", "--exclude-standard"))


def _submodule_edited(path: bytes) -> Finding:
    return Finding(
        layer="L1",
        rule="submodule-dirty",
        severity=Severity.MINOR,
        path=readable(path),
        detail="files of the submodule were changed in the work tree; they are not part of the tree that was checked",
        fix="change the submodule in its own repository, and record its new commit by hand",
    )
