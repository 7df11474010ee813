"""Freeze the work tree: store its current content as a git tree that nobody can change afterwards.

What the tree contains, and why:
- Ignored files are left out, by the baseline's ignore rules and then by the work tree's own. A file outside the tree
  is outside every checkout, so it can fake nothing, and a `.env` stays where it is.
- Untracked files that running the project leaves behind (bytecode, caches, installed dependencies) are left out too,
  and named, so that a project without a `.gitignore` can be checked after its tests were run by hand.
- Files that the user has added to git are included, whatever the ignore rules say.
- Built-in conversions stay on; external filters run as the user configured them, by the baseline's attributes.
- A file whose bytes equal the baseline's own checkout keeps the baseline's blob, whatever a filter makes of it.
- A file that a sparse checkout left out stays as it is in the baseline.

Symlinks that leave the repository and nested repositories are refused.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.common.models import Change, ChangedPath, ChangeKind, Finding, Severity
from proofstone.errors import RepositoryError
from proofstone.faults import fault_point
from proofstone.git.objects import GITLINK, SYMLINK, GitEntry, is_intact_index, list_index, list_tree, write_intact_tree
from proofstone.git.pending_commit import write_index_tree
from proofstone.git.program import Git, GitCommandError, decode_path, split_record
from proofstone.git.rules import find_leftovers, merge_attribute_rules, merge_ignore_rules
from proofstone.git.store import Store


@dataclass(frozen=True)
class TreeDifference:
    """One difference between two trees, as git's raw format lists it."""

    path: bytes
    kind: ChangeKind
    old_mode: str
    mode: str
    old_blob: str
    blob: str


@dataclass(frozen=True)
class Snapshot:
    """A frozen tree, compared with its base."""

    tree: str
    base: str
    entries: tuple[TreeDifference, ...]
    findings: tuple[Finding, ...]
    leftovers: tuple[str, ...] = ()
    """Untracked folders and files that running the project left behind. They are not part of the tree."""

    @property
    def change(self) -> Change:
        paths = (ChangedPath(path=decode_path(e.path), kind=e.kind, mode=e.mode) for e in self.entries)
        return Change(base=self.base, tree=self.tree, paths=tuple(paths))


def take_snapshot(store: Store, base_tree: str, *, staged: bool = False) -> Snapshot:
    """Freeze the work tree, or the index with `staged`, and compare it with the base."""
    repository = store.repository
    if repository.is_partial:
        fetch_missing(repository.git, base_tree)
    findings: list[Finding] = []
    leftovers: set[bytes] = set()
    with store.lock():
        freeze = (
            (lambda: _freeze_index(store))
            if staged
            else (lambda: _freeze_work_tree(store, base_tree, findings, leftovers))
        )
        tree = write_intact_tree(store, base_tree, freeze, forget=lambda: discard_index(store.folder / "index"))
        entries = compare_trees(store.git(), base_tree, tree)
    findings += _find_escaping_symlinks(store, entries)
    return Snapshot(tree, base_tree, tuple(entries), tuple(findings), tuple(map(decode_path, sorted(leftovers))))


def snapshot_of_tree(store: Store, base_tree: str, tree: str, findings: Sequence[Finding] = ()) -> Snapshot:
    """Return a snapshot of an existing tree. `findings` holds the findings from when the tree was created."""
    entries = compare_trees(store.git(), base_tree, tree)
    return Snapshot(tree, base_tree, tuple(entries), (*findings, *_find_escaping_symlinks(store, entries)))


def compare_trees(git: Git, old: str, new: str) -> list[TreeDifference]:
    """Return the paths in which two trees differ, with a rename as a deletion and an addition."""
    return parse_raw_diff(
        git.run_cached_records("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", old, new)
    )


def parse_raw_diff(records: Sequence[bytes]) -> list[TreeDifference]:
    """Parse the records of git's `--raw -z` format, without renames."""
    entries = []
    if len(records) % 2:
        raise RepositoryError("git diff ended in the middle of a record", hint="run `git fsck`")
    for meta, path in zip(records[::2], records[1::2], strict=True):
        old_mode, mode, old_blob, blob, status = split_record(meta.removeprefix(b":"), 5, "diff")
        kind = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED}.get(status[0], ChangeKind.MODIFIED)
        entries.append(TreeDifference(path, kind, old_mode, mode, old_blob, blob))
    return entries


def find_renames(git: Git, old: str, new: str) -> dict[bytes, bytes]:
    """Return files that moved, old path → new path, as git recognises them by their content."""
    fields = git.run_cached_records("diff-tree", "-r", "-z", "--name-status", "-M", "--diff-filter=R", old, new)
    return {fields[at + 1]: fields[at + 2] for at in range(0, len(fields) - 2, 3)}


def fetch_missing(git: Git, tree: str, *, known_to: Git | None = None) -> None:
    """Fetch the objects of the tree that a partial clone lacks, before anything is compared with the tree.

    If the clone does not have the tree itself, `known_to` is a git that can list it.
    """
    objects = (
        (known_to or git)
        .run_output("rev-list", "--objects", "--missing=print", "--no-object-names", tree)
        .decode("ascii")
    )
    missing = [line[1:] for line in objects.splitlines() if line.startswith("?")]
    if not missing:
        return
    remote = (
        git.run_line("config", "--name-only", "--get-regexp", r"^remote\..*\.promisor$")
        .splitlines()[0]
        .split(".", 1)[1]
    )
    remote = remote.removesuffix(".promisor")
    fetch = replace(git, settings=(*git.settings, "fetch.negotiationAlgorithm=noop"))
    fetch.run(
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--recurse-submodules=no",
        "--filter=blob:none",
        "--stdin",
        remote,
        stdin="\n".join(missing).encode(),
    )


def _freeze_index(store: Store) -> str:
    """Return the tree that git would commit from the user's index.

    The user's index may be split; it is neither locked nor refreshed.
    """
    user_git = store.repository.git
    if unmerged := user_git.run_records("ls-files", "-z", "--unmerged"):
        path = decode_path(unmerged[0].partition(b"\t")[2])
        raise RepositoryError(
            f"{path}: a merge conflict is not resolved, so the index cannot be checked",
            hint="resolve it and `git add` the file, or check the work tree without --staged",
        )
    return write_index_tree(store.repository, store.repository.git_dir / "index", store.objects)


def _freeze_work_tree(store: Store, base_tree: str, findings: list[Finding], leftovers: set[bytes]) -> str:
    """Return the tree of the work tree, using the index of the last snapshot.

    The stat data of that index save reading every file again. An index that is damaged, or that git cannot use, is
    recreated.
    """
    index = store.folder / "index"
    if index.is_file() and not is_intact_index(index, store.repository.object_format):
        discard_index(index)
        store.repairs.append(f"{index} was damaged and has been recreated")
    if not index.is_file():
        return _freeze_with_index(store, base_tree, findings, leftovers)
    try:
        return _freeze_with_index(store, base_tree, findings, leftovers)
    except GitCommandError:
        discard_index(index)
        tree = _freeze_with_index(store, base_tree, findings, leftovers)
        store.repairs.append(f"{index} was not usable and has been recreated")
        return tree


def _freeze_with_index(store: Store, base_tree: str, findings: list[Finding], leftovers: set[bytes]) -> str:
    saved_index, index = store.folder / "index", store.folder / "index.new"
    findings.clear()  # from an earlier attempt
    leftovers.clear()
    discard_index(index)
    if saved_index.is_file():
        # Keep the time: git compares whole seconds, and reads a file again only if it is not older than the index.
        shutil.copy2(saved_index, index)
    root = store.repository.root
    git = store.git(work_tree=root, index=index)
    try:
        git.run("read-tree", "-i", "-m", base_tree)  # -i: ignore the content of the work tree
        base = list_tree(git, base_tree)
        _write_baseline_attributes(store, git, base)
        _update_entries(store, git, base, findings, leftovers)
        fault_point("snapshot.before-tree")
        tree = git.run_line("write-tree")
        unchanged = _find_same_as_checkout(git, root, compare_trees(git, base_tree, tree))
        if unchanged:
            write_index_entries(git, [(e.old_mode, e.old_blob, e.path) for e in unchanged])
            tree = git.run_line("write-tree")
        fault_point("snapshot.after-tree")
        index.replace(saved_index)
    finally:
        discard_index(index)
    return tree


def discard_index(index: Path) -> None:
    index.unlink(missing_ok=True)
    index.with_name(index.name + ".lock").unlink(missing_ok=True)


def _update_entries(
    store: Store, git: Git, base: Sequence[GitEntry], findings: list[Finding], leftovers: set[bytes]
) -> None:
    entries, user_entries = list_index(git), list_index(store.repository.git)
    tracked, known = ({entry.path for entry in index} for index in (user_entries, entries))
    # The saved index still has the marks of the last snapshot: remove each of them before setting today's.
    _update_index(git, [entry.path for entry in entries if entry.is_left_out], "--no-skip-worktree")
    _update_index(git, _find_left_out(store, user_entries), "--skip-worktree")
    links = {entry.path for entry in (*entries, *user_entries) if entry.mode == GITLINK}  # of the base, or just added
    if (
        store.repository.stands_in_for is None
    ):  # in a task's work tree submodules stay at the commit that the base records
        for path in sorted(links):
            _update_submodule(store, git, path, findings)
    modified = git.run_records("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    others = _find_untracked(store, git, base)
    left_behind = find_leftovers(others, tracked | known)
    leftovers.update(left_behind.values())
    others = [path for path in others if path not in left_behind]
    nested = [path for path in others if path.endswith(b"/") and path[:-1] not in links]
    findings += [_report_nested_repository(path) for path in nested]
    added = {path for path in others if not path.endswith(b"/")} | (tracked - known)
    to_add = [path for path in (*modified, *sorted(added)) if path not in links and not _is_own(path)]
    root = os.fsencode(store.repository.root)
    to_add = [path for path in to_add if path in known or os.path.lexists(os.path.join(root, path))]  # noqa: PTH118
    behind_links = _find_behind_links(root, to_add)  # git refuses to look behind a link
    _update_index(git, sorted(behind_links), "--force-remove")
    _update_index(git, [path for path in to_add if path not in behind_links], "--add", "--remove", "--replace")
    _update_index(git, _find_removed_from_index(store, known - tracked), "--force-remove")


def _update_index(git: Git, paths: Sequence[bytes], *options: str) -> None:
    """Change the index entries of these paths."""
    if paths:
        git.run("update-index", "-z", *options, "--stdin", stdin=_join(paths))


def _find_behind_links(root: bytes, paths: Sequence[bytes]) -> set[bytes]:
    """Return the paths whose folder, or a folder above, is a symlink now."""
    folders = {folder for path in paths for folder in _parent_folders(path)}
    links = {folder for folder in folders if os.path.islink(os.path.join(root, folder))}  # noqa: PTH114, PTH118
    return {path for path in paths if links.intersection(_parent_folders(path))}


def _parent_folders(path: bytes) -> list[bytes]:
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _find_removed_from_index(store: Store, untracked: set[bytes]) -> list[bytes]:
    """Return ignored paths that the user removed with `git rm --cached`: they stay on disk but not in the tree."""
    if not untracked:
        return []
    # This command accepts no literal pathspecs; after `./` a name is always literal.
    user_git = store.repository.git
    git = replace(user_git, variables={**user_git.variables, "GIT_LITERAL_PATHSPECS": "0"})
    names = _join([b"./" + path for path in sorted(untracked)])
    result = git.run("check-ignore", "-z", "--stdin", "--no-index", stdin=names, accept=(0, 1))
    return [path.removeprefix(b"./") for path in result.stdout.split(b"\0") if path]


def _is_own(path: bytes) -> bool:
    return path == b".proofstone" or path.startswith(b".proofstone/")


def _join(paths: Sequence[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


def _find_left_out(store: Store, user_entries: Sequence[GitEntry]) -> list[bytes]:
    """Return the paths in the user's index that a sparse checkout left out.

    A path that is marked as left out but exists in the work tree is not returned: the mark would hide its content.
    """
    root = os.fsencode(store.repository.root)
    marked = [entry.path for entry in user_entries if entry.is_left_out]
    return [path for path in marked if not os.path.lexists(os.path.join(root, path))]  # noqa: PTH118


def _find_untracked(store: Store, git: Git, base: Sequence[GitEntry]) -> list[bytes]:
    """Return untracked paths that neither the baseline's ignore rules nor the work tree's own rules cover.

    This runs git twice: in a single call, a `!pattern` in the work tree would override the baseline's rules. Where the
    baseline's rules cover everything, the others need not be asked.
    """
    rules = [*_read_personal_ignore_rules(store), *merge_ignore_rules(read_files_named(git, base, b".gitignore"))]
    rules_file = store.folder / "ignore.rules"
    rules_file.write_bytes(os.fsencode("".join(f"{rule}\n" for rule in rules)))
    by_baseline = set(git.run_records("ls-files", "-z", "--others", f"--exclude-from={rules_file}"))
    if not by_baseline:
        return []
    return [path for path in git.run_records("ls-files", "-z", "--others", "--exclude-standard") if path in by_baseline]


def _read_personal_ignore_rules(store: Store) -> list[str]:
    """Return the ignore rules outside the tree: `info/exclude` and the user's own excludes file."""
    git = store.repository.git
    configured = git.try_line("config", "--type=path", "core.excludesFile")
    default = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git" / "ignore"
    rules: list[str] = []
    for file in (Path(configured) if configured else default, store.repository.common_dir / "info" / "exclude"):
        if file.is_file():
            rules += merge_ignore_rules({".gitignore": os.fsdecode(file.read_bytes())})
    return rules


def read_files_named(git: Git, tree: Sequence[GitEntry], name: bytes) -> dict[str, str]:
    """Return the content of every file with that name in the tree, by path."""
    entries = [entry for entry in tree if entry.is_file and entry.path.rpartition(b"/")[2] == name]
    return {os.fsdecode(entry.path): os.fsdecode(git.read_blob(entry.object_id)) for entry in entries}


def _write_baseline_attributes(store: Store, git: Git, base: Sequence[GitEntry]) -> None:
    """Give the baseline's attributes priority over edited ones; without edits, nothing needs to be written."""
    info = store.git_dir / "info" / "attributes"
    rules = read_files_named(git, base, b".gitattributes")
    root = store.repository.root
    is_edited = any(
        not (root / path).is_file() or (root / path).read_bytes() != os.fsencode(text) for path, text in rules.items()
    )
    lines = [*merge_attribute_rules(rules)] if is_edited else []
    personal = store.repository.common_dir / "info" / "attributes"
    if personal.is_file():
        lines += os.fsdecode(personal.read_bytes()).splitlines()
    info.write_bytes(os.fsencode("".join(f"{line}\n" for line in lines)))


def _find_same_as_checkout(git: Git, root: Path, entries: Sequence[TreeDifference]) -> list[TreeDifference]:
    """Return changed entries whose file is, byte for byte, what a checkout of the baseline would write."""
    modified = [
        e for e in entries if e.kind is ChangeKind.MODIFIED and e.mode == e.old_mode and e.mode.startswith("100")
    ]
    if not modified:
        return []
    converted = _find_converted(git, [e.path for e in modified])
    same = []
    for entry in modified:
        if entry.path not in converted:
            continue
        checked_out = git.run_output("cat-file", "--filters", b"--path=" + entry.path, entry.old_blob)
        if (root / os.fsdecode(entry.path)).read_bytes() == checked_out:
            same.append(entry)
    return same


def find_changes_between(store: Store, before: Snapshot, now: Snapshot) -> list[TreeDifference]:
    """Return the paths that changed in the work tree between two snapshots.

    A filter (such as encryption) need not produce the same blob twice, so for a filtered file only its addition or
    deletion counts.
    """
    changed = compare_trees(store.git(), before.tree, now.tree)
    if not changed:
        return []
    git = store.git(work_tree=store.repository.root)
    filtered = _find_with_attributes(git, [entry.path for entry in changed], ("filter",))
    return [entry for entry in changed if entry.kind is not ChangeKind.MODIFIED or entry.path not in filtered]


def _find_converted(git: Git, paths: Sequence[bytes]) -> set[bytes]:
    """Return the paths that any conversion applies to."""
    if git.try_line("config", "core.autocrlf") in ("true", "input"):
        return set(paths)
    return _find_with_attributes(git, paths, ("filter", "text", "eol", "crlf", "working-tree-encoding", "ident"))


def _find_with_attributes(git: Git, paths: Sequence[bytes], attributes: Sequence[str]) -> set[bytes]:
    """Return the paths for which one of these attributes has a value."""
    records = git.run_records("check-attr", "-z", "--stdin", *attributes, stdin=_join(paths))
    triples = zip(records[::3], records[1::3], records[2::3], strict=True)
    return {path for path, _, value in triples if value not in (b"unspecified", b"unset")}


def write_index_entries(git: Git, entries: Sequence[tuple[str, str, bytes]]) -> None:
    """Write these index entries: mode, blob and path."""
    lines = b"".join(f"{mode} {blob}\t".encode() + path + b"\0" for mode, blob, path in entries)
    git.run("update-index", "-z", "--index-info", stdin=lines)


def _update_submodule(store: Store, git: Git, path: bytes, findings: list[Finding]) -> None:
    """Record a submodule as its checked-out commit; uncommitted changes inside it are not part of this tree."""
    folder = store.repository.root / os.fsdecode(path)
    if not (folder / ".git").exists():
        return
    inside = store.repository.git_in(folder)
    commit = inside.try_line("rev-parse", "--verify", "--quiet", "HEAD")
    if commit is None:
        raise RepositoryError(
            f"{decode_path(path)}: the submodule has no commit checked out",
            hint=f"git submodule update --init -- {decode_path(path)}",
        )
    write_index_entries(git, [(GITLINK, commit, path)])
    if inside.run_output("status", "--porcelain", "-z", "--ignore-submodules=all"):
        findings.append(
            Finding(
                layer="L1",
                rule="submodule-dirty",
                severity=Severity.MINOR,
                path=decode_path(path),
                detail="the submodule has uncommitted changes; they are not part of the checked tree",
                fix="commit them inside the submodule, then check again",
            )
        )


def _report_nested_repository(path: bytes) -> Finding:
    return Finding(
        layer="L1",
        rule="nested-repository",
        severity=Severity.BLOCKER,
        path=decode_path(path),
        detail="a git repository is inside the work tree; its files are not part of the tree and cannot be checked",
        fix="remove its .git, list it in .gitignore, or add it with `git submodule add`",
    )


def _find_escaping_symlinks(store: Store, entries: Sequence[TreeDifference]) -> list[Finding]:
    """Return a finding for each symlink that the change added and that leads out of the repository."""
    findings = []
    for entry in entries:
        if entry.mode != SYMLINK:
            continue
        target = os.fsdecode(store.git().run_output("cat-file", "blob", entry.blob))
        folder = posixpath.dirname(os.fsdecode(entry.path))
        root = str(store.repository.stands_in_for or store.repository.root)
        if target.startswith("/"):
            is_inside = f"{posixpath.normpath(target)}/".startswith(f"{root}/")
        else:
            is_inside = posixpath.normpath(posixpath.join(folder, target)).split("/")[0] != ".."
        if not is_inside:
            findings.append(
                Finding(
                    layer="L1",
                    rule="symlink-escape",
                    severity=Severity.BLOCKER,
                    path=decode_path(entry.path),
                    detail=f"the symlink leads out of the repository, to {target!r}",
                    fix="link to a file inside the repository, or commit the file itself",
                )
            )
    return findings
