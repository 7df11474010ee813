"""Check out trees, write the small `.git` that checks may read, and derive further trees.

A checkout is made from objects alone, in a temporary folder, and renamed into place when it is complete. Bytecode that
is committed in `__pycache__` is left out: Python would run it instead of the checked source.

Trees that are derived from the frozen one are for additional runs beside the check itself: each has its own id, and
none is committed. The diff that agents see leaves out files that may hold secrets, and has a maximum length.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.common.diff_text import fit_diff
from proofstone.errors import RepositoryError
from proofstone.faults import fault_point
from proofstone.git.objects import GITLINK, GitEntry, list_tree, verify_objects, write_intact_tree
from proofstone.git.program import Git, GitCommandError, decode_path
from proofstone.git.snapshot import (
    Snapshot,
    TreeDifference,
    compare_trees,
    discard_index,
    fetch_missing,
    read_files_named,
    write_index_entries,
)
from proofstone.git.store import Store
from proofstone.machine.files import write_alternates


@dataclass(frozen=True)
class Checkout:
    """A tree checked out to a folder."""

    tree: str
    files: Path
    """The folder with the tree's files."""
    index: Path
    """Git's index for these files."""
    empty_submodules: tuple[str, ...]
    """Submodules that the user has not initialised; they are empty here too."""


def check_out(store: Store, tree: str, folder: Path, *, verified: bool = True, whole: bool = False) -> Checkout:
    """Write the tree's files to `folder/files`, with submodules at their recorded commits.

    Every object is verified against its id, unless `verified=False` because that is known already from another tree.
    `whole` includes committed bytecode, for folders that are frozen again, where a missing file would count as removed.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary, files, index = folder / "files.new", folder / "files", folder / "index"
    temporary.mkdir()
    git = store.git(work_tree=temporary, index=index)
    entries = list_tree(git, tree)
    attributes = read_files_named(git, entries, b".gitattributes").values()
    settings = ("checkout.workers=0", "checkout.thresholdForParallelism=500")
    git = replace(git, settings=(*settings, *store.settings_without_personal_filters(attributes)))
    try:
        git.run("read-tree", "--reset", "-u", tree)
    except GitCommandError as error:
        reason = error.stderr.splitlines()[-1] if error.stderr else error.message
        raise RepositoryError(
            f"the tree {tree[:12]} cannot be checked out: {reason}",
            hint="if a filter failed, run `git lfs pull` or unlock git-crypt first",
        ) from error
    if verified:
        verify_objects(git, temporary, store.repository.object_format)
    empty = _fill_submodules(git, store.repository.root, temporary, entries)
    if not whole:
        _remove_bytecode(temporary)
    fault_point("checkout.before-publish")
    temporary.rename(files)
    fault_point("checkout.after-publish")
    return Checkout(tree, files, index, tuple(empty))


def _remove_bytecode(files: Path) -> None:
    for cached in files.rglob("__pycache__"):
        if cached.is_dir() and not cached.is_symlink():
            shutil.rmtree(cached)


def _fill_submodules(git: Git, root: Path, files: Path, tree: Sequence[GitEntry]) -> list[str]:
    """Check out each submodule at its recorded commit, from the user's own clone. Return those that are not
    initialised.
    """
    empty: list[str] = []
    for commit, path in ((entry.object_id, entry.path) for entry in tree if entry.mode == GITLINK):
        theirs, ours = root / os.fsdecode(path), files / os.fsdecode(path)
        ours.mkdir(parents=True, exist_ok=True)
        if not (theirs / ".git").exists():
            empty.append(decode_path(path))
            continue
        inside = replace(Git(theirs), variables={"PATH": git.variables["PATH"]})
        if inside.try_line("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") is None:
            raise RepositoryError(
                f"{decode_path(path)}: the submodule's commit {commit[:12]} is not in its clone",
                hint=f"git submodule update --init -- {decode_path(path)}",
            )
        inner_tree = inside.find_tree(commit)
        is_partial = inside.try_line("config", "--get-regexp", r"^remote\..*\.promisor$") is not None
        if is_partial:
            fetch_missing(inside, inner_tree)
        git_dir = Path(inside.run_line("rev-parse", "--absolute-git-dir"))
        index = files.parent / f"index-{commit[:12]}"
        inner = replace(inside, directory=ours, git_dir=git_dir, work_tree=ours, index=index)
        inner.run("read-tree", "--reset", "-u", inner_tree)
        below = _fill_submodules(inner, theirs, ours, list_tree(inner, inner_tree))
        empty += [f"{decode_path(path)}/{further}" for further in below]
    return empty


def write_minimal_git(store: Store, checkout: Checkout, commit: str, folder: Path, object_dirs: list[str]) -> Path:
    """Write a `.git` that tools may ask for history and tags, with the base commit as HEAD and the checked tree as
    index.

    `object_dirs` are the paths of the object stores as the check will see them.
    """
    for part in ("refs/heads", "refs/tags", "objects/info", "info"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    branch = store.repository.branch
    if branch is not None:
        (folder / "HEAD").write_bytes(os.fsencode(f"ref: {branch}\n"))
        heads = f"{commit} {branch}\n"
    else:
        (folder / "HEAD").write_text(f"{commit}\n")
        heads = ""
    refs = sorted((heads + store.repository.tags).splitlines(), key=lambda line: line.split(" ", 1)[1])
    (folder / "packed-refs").write_bytes(os.fsencode("# pack-refs with: sorted\n" + "".join(f"{r}\n" for r in refs)))
    sha256 = store.repository.object_format == "sha256"
    (folder / "config").write_text(
        f"[core]\n\trepositoryformatversion = {int(sha256)}\n\tbare = false\n\tcheckStat = minimal\n"
        "\ttrustctime = false\n" + ("[extensions]\n\tobjectFormat = sha256\n" if sha256 else "")
    )
    write_alternates(folder, object_dirs)
    for source, name in ((checkout.index, "index"), (store.repository.common_dir / "shallow", "shallow")):
        if source.is_file():
            shutil.copyfile(source, folder / name)
    return folder


_REGULAR_FILE = "100644"


def restore_base_files(store: Store, snapshot: Snapshot, paths: set[bytes]) -> str:
    """Return the snapshot's tree with these paths as they are in the base."""
    restored = [entry for entry in snapshot.entries if entry.path in paths]
    entries = [_base_entry(entry) for entry in restored]
    return write_intact_tree(store, snapshot.tree, lambda: _write_tree(store, snapshot.tree, entries))


def replace_contents(store: Store, tree: str, contents: Mapping[bytes, bytes]) -> str:
    """Return the tree with these files holding these bytes. A file that the tree does not have is added."""
    git = store.git()
    modes = {entry.path: entry.mode for entry in list_tree(git, tree)}

    def write() -> str:
        blobs = {
            path: git.run("hash-object", "-w", "--stdin", stdin=content).stdout.decode().strip()
            for path, content in contents.items()
        }
        return _write_tree(store, tree, [(_file_mode(modes.get(path)), blob, path) for path, blob in blobs.items()])

    return write_intact_tree(store, tree, write)


def restore_paths(store: Store, snapshot: Snapshot, paths: set[bytes]) -> Snapshot:
    """Return the snapshot with these paths restored from the base: from here on it is what is checked and may be
    committed.
    """
    tree = restore_base_files(store, snapshot, paths)
    return replace(snapshot, tree=tree, entries=tuple(compare_trees(store.git(), snapshot.base, tree)))


def _file_mode(known: str | None) -> str:
    """Keep a file executable; a link or a submodule becomes a file."""
    return known if known and known.startswith("100") else _REGULAR_FILE


def _base_entry(entry: TreeDifference) -> tuple[str, str, bytes]:
    return (entry.old_mode if entry.old_mode != "000000" else "0", entry.old_blob, entry.path)


def _write_tree(store: Store, tree: str, entries: Sequence[tuple[str, str, bytes]]) -> str:
    index = store.folder / f"index.derived-{secrets.token_hex(4)}"
    git = store.git(index=index)
    try:
        git.run("read-tree", tree)
        write_index_entries(git, entries)
        return git.run_line("write-tree")
    finally:
        discard_index(index)


def render_diff(git: Git, old: str, new: str, hidden: Sequence[str], most: int, *, find_renames: bool = False) -> str:
    """Return the diff between two trees as text of at most about `most` characters.

    Every changed file is shown as text, whatever the repository's attributes say: the change may have written them. Of
    the files in `hidden`, only the fact that they changed is shown.
    """
    # Files are excluded by pathspec magic, which literal pathspecs would switch off.
    magic_git = replace(git, variables={**git.variables, "GIT_LITERAL_PATHSPECS": "0"})
    exclusions = [f":(top,exclude,literal){path}" for path in hidden]
    limits = ("--", ":/", *exclusions) if exclusions else ()
    renames = ("--find-renames",) if find_renames else ()
    text = decode_path(magic_git.run_output("diff-tree", "-p", "--text", *renames, old, new, *limits))
    notes = "".join(f"[{path} changed; it may hold secrets and is not shown]\n" for path in hidden)
    return fit_diff(text, most) + notes
