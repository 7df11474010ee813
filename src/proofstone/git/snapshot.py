"""The frozen tree: what is in the work tree now, as a git tree that no one can change afterwards.

What goes in, and why:
- ignored files never do; the baseline's ignore rules decide, then the work tree's own. What is outside the tree is
  outside every checkout, so it can fake nothing, and a `.env` stays where it is;
- what the person has put under git's control does, whatever the ignore rules say;
- built-in conversions stay on, external filters run as the user configured them, by the baseline's attributes;
- a path whose bytes equal the baseline's own checkout keeps the baseline's blob, whatever a filter makes of it;
- a path that a sparse checkout left out stays as it is in the baseline.
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
from proofstone.git.objects import GITLINK, SYMLINK, Held, in_index, in_tree, is_whole_index, sound_tree
from proofstone.git.pending import tree_of_index
from proofstone.git.program import Git, GitFailedError, readable, words_of
from proofstone.git.rules import root_attribute_rules, root_ignore_rules
from proofstone.git.store import Store


@dataclass(frozen=True)
class Entry:
    """One raw difference between two trees."""

    path: bytes
    kind: ChangeKind
    old_mode: str
    mode: str
    old_blob: str
    blob: str


@dataclass(frozen=True)
class Snapshot:
    tree: str
    base: str
    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...]

    @property
    def change(self) -> Change:
        paths = (ChangedPath(path=readable(e.path), kind=e.kind, mode=e.mode) for e in self.entries)
        return Change(base=self.base, tree=self.tree, paths=tuple(paths))


def snapshot(store: Store, base_tree: str, *, staged: bool = False) -> Snapshot:
    """Freeze the work tree (or, with `staged`, what is in the index) and compare it with the base."""
    repository = store.repository
    if repository.is_partial:
        fetch_missing(repository.git, base_tree)
    findings: list[Finding] = []
    with store.locked():
        freeze = (lambda: _staged_tree(store)) if staged else (lambda: _work_tree(store, base_tree, findings))
        tree = sound_tree(store, base_tree, freeze, forget=lambda: discard_index(store.folder / "index"))
        entries = difference(store.git(), base_tree, tree)
    findings += _escaping_symlinks(store, entries)
    return Snapshot(tree, base_tree, tuple(entries), tuple(findings))


def of_tree(store: Store, base_tree: str, tree: str, findings: Sequence[Finding] = ()) -> Snapshot:
    """A tree that was made otherwise, as if a work tree had held it. `findings`: what its making has shown already."""
    entries = difference(store.git(), base_tree, tree)
    return Snapshot(tree, base_tree, tuple(entries), (*findings, *_escaping_symlinks(store, entries)))


def difference(git: Git, old: str, new: str) -> list[Entry]:
    """The paths in which two trees differ, renames as a deletion and an addition."""
    return raw_entries(git.records_of("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", old, new))


def raw_entries(records: Sequence[bytes]) -> list[Entry]:
    """The records of git's `--raw -z` form, without renames."""
    entries = []
    if len(records) % 2:
        raise RepositoryError("git diff ended in the middle of a record", hint="git fsck says more")
    for meta, path in zip(records[::2], records[1::2], strict=True):
        old_mode, mode, old_blob, blob, status = words_of(meta.removeprefix(b":"), 5, "diff")
        kind = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED}.get(status[0], ChangeKind.MODIFIED)
        entries.append(Entry(path, kind, old_mode, mode, old_blob, blob))
    return entries


def renames(git: Git, old: str, new: str) -> dict[bytes, bytes]:
    """Files that moved, old path → new path, as git recognises them by their content."""
    fields = git.records_of("diff-tree", "-r", "-z", "--name-status", "-M", "--diff-filter=R", old, new)
    return {fields[at + 1]: fields[at + 2] for at in range(0, len(fields) - 2, 3)}


def fetch_missing(git: Git, tree: str, *, known_to: Git | None = None) -> None:
    """A filtered clone fetches what the tree needs before anything is compared with it. A tree that the clone itself
    does not have is listed by a git that knows it."""
    listed = (
        (known_to or git).out("rev-list", "--objects", "--missing=print", "--no-object-names", tree).decode("ascii")
    )
    missing = [line[1:] for line in listed.splitlines() if line.startswith("?")]
    if not missing:
        return
    remote = (
        git.line("config", "--name-only", "--get-regexp", r"^remote\..*\.promisor$").splitlines()[0].split(".", 1)[1]
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


def _staged_tree(store: Store) -> str:
    """What the user's index holds, as git would commit it: theirs is neither locked nor refreshed, and may be split."""
    theirs = store.repository.git
    if unmerged := theirs.records("ls-files", "-z", "--unmerged"):
        path = readable(unmerged[0].partition(b"\t")[2])
        raise RepositoryError(
            f"{path}: a merge conflict is not resolved yet, so what is staged is no tree",
            hint="resolve it and `git add` it, or check the work tree without --staged",
        )
    return tree_of_index(store.repository, store.repository.git_dir / "index", store.objects)


def _work_tree(store: Store, base_tree: str, findings: list[Finding]) -> str:
    """The index of the last snapshot is kept: its stat data spare reading every file again. One that is damaged, or
    that git cannot work with, is made anew."""
    kept = store.folder / "index"
    if kept.is_file() and not is_whole_index(kept, store.repository.object_format):
        discard_index(kept)
        store.repairs.append(f"{kept} was damaged; it was made anew")
    if not kept.is_file():
        return _frozen_by_index(store, base_tree, findings)
    try:
        return _frozen_by_index(store, base_tree, findings)
    except GitFailedError:
        discard_index(kept)
        tree = _frozen_by_index(store, base_tree, findings)
        store.repairs.append(f"{kept} could not be used any more; it was made anew")
        return tree


def _frozen_by_index(store: Store, base_tree: str, findings: list[Finding]) -> str:
    kept, index = store.folder / "index", store.folder / "index.new"
    findings.clear()  # of an earlier try
    discard_index(index)
    if kept.is_file():
        # With its time: git compares whole seconds, and reads a file again only if it is not older than the index.
        shutil.copy2(kept, index)
    root = store.repository.root
    git = store.git(work_tree=root, index=index)
    try:
        git.run("read-tree", "-i", "-m", base_tree)  # -i: whatever the work tree holds
        base = in_tree(git, base_tree)
        _baseline_attributes(store, git, base)
        _take_in(store, git, base, findings)
        fault_point("snapshot.before-tree")
        tree = git.line("write-tree")
        unchanged = _same_as_checkout(git, root, difference(git, base_tree, tree))
        if unchanged:
            set_entries(git, [(e.old_mode, e.old_blob, e.path) for e in unchanged])
            tree = git.line("write-tree")
        fault_point("snapshot.after-tree")
        index.replace(kept)
    finally:
        discard_index(index)
    return tree


def discard_index(index: Path) -> None:
    index.unlink(missing_ok=True)
    index.with_name(index.name + ".lock").unlink(missing_ok=True)


def _take_in(store: Store, git: Git, base: Sequence[Held], findings: list[Finding]) -> None:
    ours, theirs = in_index(git), in_index(store.repository.git)
    tracked, known = ({item.path for item in index} for index in (theirs, ours))
    # The kept index still has the marks of the last time: each is taken back before those of today are set.
    _update(git, [our.path for our in ours if our.left_out], "--no-skip-worktree")
    _update(git, _left_out(store, theirs), "--skip-worktree")
    links = {our.path for our in (*ours, *theirs) if our.mode == GITLINK}  # the base's, and those just added
    if store.repository.stands_for is None:  # in a task's work tree they stay at the commit that the base records
        for path in sorted(links):
            _take_in_submodule(store, git, path, findings)
    modified = git.records("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    others = _untracked(store, git, base)
    nested = [path for path in others if path.endswith(b"/") and path[:-1] not in links]
    findings += [_nested_repository(path) for path in nested]
    added = {path for path in others if not path.endswith(b"/")} | (tracked - known)
    wanted = [path for path in (*modified, *sorted(added)) if path not in links and not _own(path)]
    root = os.fsencode(store.repository.root)
    wanted = [path for path in wanted if path in known or os.path.lexists(os.path.join(root, path))]  # noqa: PTH118
    gone = _behind_links(root, wanted)  # git refuses to look behind a link, where nothing of this tree can be
    _update(git, sorted(gone), "--force-remove")
    _update(git, [path for path in wanted if path not in gone], "--add", "--remove", "--replace")
    _update(git, _taken_out_by_hand(store, known - tracked), "--force-remove")


def _update(git: Git, paths: Sequence[bytes], *options: str) -> None:
    """Tell the index something about these paths."""
    if paths:
        git.run("update-index", "-z", *options, "--stdin", stdin=_joined(paths))


def _behind_links(root: bytes, paths: Sequence[bytes]) -> set[bytes]:
    """Paths that lay in a folder which is a symlink now."""
    folders = {folder for path in paths for folder in _folders(path)}
    links = {folder for folder in folders if os.path.islink(os.path.join(root, folder))}  # noqa: PTH114, PTH118
    return {path for path in paths if links.intersection(_folders(path))}


def _folders(path: bytes) -> list[bytes]:
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _taken_out_by_hand(store: Store, untracked: set[bytes]) -> list[bytes]:
    """Paths that `git rm --cached` took out and that are ignored now: they stay on disk but not in the tree."""
    if not untracked:
        return []
    # This command takes no literal pathspecs; behind `./` a name is never anything but a name.
    theirs = store.repository.git
    git = replace(theirs, variables={**theirs.variables, "GIT_LITERAL_PATHSPECS": "0"})
    names = _joined([b"./" + path for path in sorted(untracked)])
    asked = git.run("check-ignore", "-z", "--stdin", "--no-index", stdin=names, accept=(0, 1))
    return [path.removeprefix(b"./") for path in asked.stdout.split(b"\0") if path]


def _own(path: bytes) -> bool:
    return path == b".proofstone" or path.startswith(b".proofstone/")


def _joined(paths: Sequence[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


def _left_out(store: Store, theirs: Sequence[Held]) -> list[bytes]:
    """What a sparse checkout left out of what the person put under git's control.

    A path that is marked as left out but stands in the work tree is not left out: the mark would hide its content.
    """
    root = os.fsencode(store.repository.root)
    marked = [their.path for their in theirs if their.left_out]
    return [path for path in marked if not os.path.lexists(os.path.join(root, path))]  # noqa: PTH118


def _untracked(store: Store, git: Git, base: Sequence[Held]) -> list[bytes]:
    """Untracked paths that neither the baseline's ignore rules nor the work tree's own cover.

    Git is asked twice: in one question, a `!pattern` in the work tree would outrank the baseline's rules.
    """
    rules = [*_personal_ignore_rules(store), *root_ignore_rules(files_named(git, base, b".gitignore"))]
    listed = store.folder / "ignore.rules"
    listed.write_bytes(os.fsencode("".join(f"{rule}\n" for rule in rules)))
    by_baseline = set(git.records("ls-files", "-z", "--others", f"--exclude-from={listed}"))
    return [path for path in git.records("ls-files", "-z", "--others", "--exclude-standard") if path in by_baseline]


def _personal_ignore_rules(store: Store) -> list[str]:
    """Rules outside the tree: `info/exclude` and the user's own excludes file."""
    git = store.repository.git
    configured = git.maybe("config", "--type=path", "core.excludesFile")
    default = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git" / "ignore"
    rules: list[str] = []
    for file in (Path(configured) if configured else default, store.repository.common_dir / "info" / "exclude"):
        if file.is_file():
            rules += root_ignore_rules({".gitignore": os.fsdecode(file.read_bytes())})
    return rules


def files_named(git: Git, tree: Sequence[Held], name: bytes) -> dict[str, str]:
    """The content of every file of that name in the tree, by path."""
    found = [item for item in tree if item.is_file and item.path.rpartition(b"/")[2] == name]
    return {os.fsdecode(item.path): os.fsdecode(git.out("cat-file", "blob", item.thing)) for item in found}


def _baseline_attributes(store: Store, git: Git, base: Sequence[Held]) -> None:
    """The baseline's attributes outrank edited ones; where none was edited there is nothing to say."""
    info = store.git_dir / "info" / "attributes"
    rules = files_named(git, base, b".gitattributes")
    root = store.repository.root
    edited = any(
        not (root / path).is_file() or (root / path).read_bytes() != os.fsencode(text) for path, text in rules.items()
    )
    lines = [*root_attribute_rules(rules)] if edited else []
    personal = store.repository.common_dir / "info" / "attributes"
    if personal.is_file():
        lines += os.fsdecode(personal.read_bytes()).splitlines()
    info.write_bytes(os.fsencode("".join(f"{line}\n" for line in lines)))


def _same_as_checkout(git: Git, root: Path, entries: Sequence[Entry]) -> list[Entry]:
    """Changed blobs whose file is, byte for byte, what a checkout of the baseline would write."""
    modified = [
        e for e in entries if e.kind is ChangeKind.MODIFIED and e.mode == e.old_mode and e.mode.startswith("100")
    ]
    if not modified:
        return []
    converted = _converted_paths(git, [e.path for e in modified])
    same = []
    for entry in modified:
        if entry.path not in converted:
            continue
        checked_out = git.out("cat-file", "--filters", b"--path=" + entry.path, entry.old_blob)
        if (root / os.fsdecode(entry.path)).read_bytes() == checked_out:
            same.append(entry)
    return same


def moved_since(store: Store, before: Snapshot, now: Snapshot) -> list[Entry]:
    """What changed in the work tree between two snapshots. A filter need not give the same blob twice (encryption),
    so of a file that has one only its coming and going can be told."""
    moved = difference(store.git(), before.tree, now.tree)
    if not moved:
        return []
    git = store.git(work_tree=store.repository.root)
    filtered = _with_attributes(git, [entry.path for entry in moved], ("filter",))
    return [entry for entry in moved if entry.kind is not ChangeKind.MODIFIED or entry.path not in filtered]


def _converted_paths(git: Git, paths: Sequence[bytes]) -> set[bytes]:
    """The paths that any conversion applies to."""
    if git.maybe("config", "core.autocrlf") in ("true", "input"):
        return set(paths)
    return _with_attributes(git, paths, ("filter", "text", "eol", "crlf", "working-tree-encoding", "ident"))


def _with_attributes(git: Git, paths: Sequence[bytes], attributes: Sequence[str]) -> set[bytes]:
    """The paths for which one of these attributes is set to something."""
    records = git.records("check-attr", "-z", "--stdin", *attributes, stdin=_joined(paths))
    triples = zip(records[::3], records[1::3], records[2::3], strict=True)
    return {path for path, _, value in triples if value not in (b"unspecified", b"unset")}


def set_entries(git: Git, entries: Sequence[tuple[str, str, bytes]]) -> None:
    lines = b"".join(f"{mode} {blob}\t".encode() + path + b"\0" for mode, blob, path in entries)
    git.run("update-index", "-z", "--index-info", stdin=lines)


def _take_in_submodule(store: Store, git: Git, path: bytes, findings: list[Finding]) -> None:
    """A submodule counts as the commit that it stands at; what is uncommitted in it is not part of this tree."""
    folder = store.repository.root / os.fsdecode(path)
    if not (folder / ".git").exists():
        return
    inside = store.repository.git_in(folder)
    commit = inside.maybe("rev-parse", "--verify", "--quiet", "HEAD")
    if commit is None:
        raise RepositoryError(
            f"{readable(path)}: the submodule has no commit checked out",
            hint=f"git submodule update --init -- {readable(path)}",
        )
    set_entries(git, [(GITLINK, commit, path)])
    if inside.out("status", "--porcelain", "-z", "--ignore-submodules=all"):
        findings.append(
            Finding(
                layer="L1",
                rule="submodule-dirty",
                severity=Severity.MINOR,
                path=readable(path),
                detail="the submodule has uncommitted changes, which are not part of the tree that was checked",
                fix="commit them inside the submodule, then check again",
            )
        )


def _nested_repository(path: bytes) -> Finding:
    return Finding(
        layer="L1",
        rule="nested-repository",
        severity=Severity.BLOCKER,
        path=readable(path),
        detail="a git repository inside the work tree: its files are not part of the tree and cannot be checked",
        fix="remove its .git, let .gitignore cover it, or add it with `git submodule add`",
    )


def _escaping_symlinks(store: Store, entries: Sequence[Entry]) -> list[Finding]:
    """Symlinks that the change added and that lead out of the repository."""
    findings = []
    for entry in entries:
        if entry.mode != SYMLINK:
            continue
        target = os.fsdecode(store.git().out("cat-file", "blob", entry.blob))
        folder = posixpath.dirname(os.fsdecode(entry.path))
        root = str(store.repository.stands_for or store.repository.root)
        if target.startswith("/"):
            inside = f"{posixpath.normpath(target)}/".startswith(f"{root}/")
        else:
            inside = posixpath.normpath(posixpath.join(folder, target)).split("/")[0] != ".."
        if not inside:
            findings.append(
                Finding(
                    layer="L1",
                    rule="symlink-escape",
                    severity=Severity.BLOCKER,
                    path=readable(entry.path),
                    detail=f"the symlink leads out of the repository, to {target!r}",
                    fix="link to a file inside the repository, or commit the file itself",
                )
            )
    return findings
