"""Merge an accepted tree onto a tip that has moved meanwhile: a three-way merge of trees, without a work tree.

Files are merged only by the base's attributes and git's built-in drivers: no external merge driver runs. Git guesses
renames; a guess that would move a change into a file which its own side has not touched is a conflict here. A place
that both sides changed in different ways is a conflict too, and both versions are shown.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proofstone.errors import RepositoryError
from proofstone.git.commit import CommitIdentity, CommitIntent, write_commit
from proofstone.git.objects import GITLINK, MAX_BLOB_BYTES, list_tree
from proofstone.git.program import Git, decode_path, split_record
from proofstone.git.rules import merge_attribute_rules
from proofstone.git.snapshot import compare_trees, read_files_named
from proofstone.git.store import Store, derive_store

_NOBODY = CommitIdentity("Proofstone", "merge@proofstone.invalid")
_MAX_DIGITS = 10
_MAX_SHOWN = 4000
"""The maximum number of characters of each side of a conflict."""
_CONTEXT_LINES = 3
"""The number of lines shown before and after a difference."""
_SETTINGS = ("merge.renames=true", "merge.directoryRenames=false", "merge.renormalize=false")


@dataclass(frozen=True)
class CleanMerge:
    """The tree of a merge without conflicts."""

    tree: str


@dataclass(frozen=True)
class MergeConflict:
    """A path that could not be merged."""

    path: str
    ours: str
    """The tip's version, as text: where the sides differ, with a few lines around it."""
    theirs: str
    """The version of the merged tree."""
    kind: str
    """Git's name for the conflict (content, add/add, modify/delete, …), or `rename` for a guessed rename."""


@dataclass(frozen=True)
class _Side:
    mode: str
    blob: str


def merge_trees(store: Store, *, base_commit: str, tip: str, tree: str) -> CleanMerge | tuple[MergeConflict, ...]:
    """Apply the changes from `base_commit` to `tree` to the commit `tip`."""
    git = store.git()
    base, ours = (git.find_tree(commit) for commit in (base_commit, tip))
    if base == ours or tree == ours:
        return CleanMerge(tree)
    if base == tree:
        return CleanMerge(ours)
    # Make both sides children of the base, whatever the history between base and tip: then the base is the merge base.
    sides = [_write_child(store, base_commit, side) for side in (ours, tree)]
    merge_store = Store(store.repository, store.folder / "merge", store.objects)
    merge_store.folder.mkdir(mode=0o700, exist_ok=True)
    with merge_store.lock():
        derive_store(store, merge_store.folder, merge_store.repository)
        rules = merge_attribute_rules(read_files_named(git, list_tree(git, base), b".gitattributes"))
        (merge_store.git_dir / "info" / "attributes").write_bytes(os.fsencode("".join(f"{rule}\n" for rule in rules)))
        git_with_settings = replace(merge_store.git(), settings=_SETTINGS)
        result = git_with_settings.run("merge-tree", "--write-tree", "-z", *sides, accept=(0, 1))
    merged, _, rest = result.stdout.partition(b"\0")
    if result.returncode == 0:
        merged_tree = merged.decode("ascii")
        return _find_strays(git, base, (ours, tree), merged_tree) or CleanMerge(merged_tree)
    return _parse_conflicts(git, rest, sides)


def _write_child(store: Store, parent: str, tree: str) -> str:
    """Write a commit that is never referenced and always has the same id."""
    return write_commit(store, CommitIntent(tree, parent, "merged", _NOBODY, "0 +0000"), sign=False)


def _find_strays(git: Git, base: str, sides: tuple[str, str], result: str) -> tuple[MergeConflict, ...]:
    """Return files that differ from one side although the other side has not touched them."""
    ours, theirs = sides
    touched_by_us, touched_by_them = ({e.path for e in compare_trees(git, base, side)} for side in sides)
    strays = []
    for entry in compare_trees(git, ours, result):
        if entry.path not in touched_by_them:
            strays.append((entry.path, _Side(entry.old_mode, entry.old_blob), _Side(entry.mode, entry.blob)))
    for entry in compare_trees(git, theirs, result):
        if entry.path not in touched_by_us:
            strays.append((entry.path, _Side(entry.mode, entry.blob), _Side(entry.old_mode, entry.old_blob)))
    return tuple(
        MergeConflict(decode_path(path), *_differing_part(_read_text(git, a), _read_text(git, b)), "rename")
        for path, a, b in strays
    )


def _parse_conflicts(git: Git, output: bytes, sides: Sequence[str]) -> tuple[MergeConflict, ...]:
    """Parse git's output: the entries in conflict, by stage, then an empty record, then messages about paths."""
    entries, _, messages = output.partition(b"\0\0")
    stages: dict[bytes, dict[int, _Side]] = {}
    for record in entries.split(b"\0"):
        meta, _, path = record.partition(b"\t")
        mode, blob, stage = split_record(meta, 3, "merge-tree")
        stages.setdefault(path, {})[int(stage) if stage in ("1", "2", "3") else 0] = _Side(mode, blob)
    kinds = _parse_conflict_kinds(messages)
    return tuple(
        _make_conflict(git, path, path_stages, kinds.get(path, "content"), sides)
        for path, path_stages in stages.items()
    )


def _parse_conflict_kinds(messages: bytes) -> dict[bytes, str]:
    """Return for each path the first conflict that git names: `CONFLICT (modify/delete): …`."""
    fields = messages.split(b"\0")
    kinds: dict[bytes, str] = {}
    at = 0
    while at < len(fields) and fields[at].isdigit():
        count = int(fields[at]) if len(fields[at]) < _MAX_DIGITS else len(fields)
        if at + 2 + count >= len(fields):
            raise RepositoryError("git merge-tree ended in the middle of a record", hint="run `git fsck`")
        paths, message = fields[at + 1 : at + 1 + count], decode_path(fields[at + 2 + count])
        if message.startswith("CONFLICT ("):
            for path in paths:
                kinds.setdefault(path, message.partition("(")[2].partition(")")[0])
        at += count + 3
    return kinds


def _make_conflict(git: Git, path: bytes, stages: dict[int, _Side], kind: str, sides: Sequence[str]) -> MergeConflict:
    ours, theirs = _differing_part(_read_text(git, stages.get(2)), _read_text(git, stages.get(3)))
    name = path
    for side in sides:  # git renames a file that collides with a directory, and appends the commit's name
        name = name.removesuffix(b"~" + side.encode("ascii"))
    return MergeConflict(decode_path(name), ours, theirs, kind)


def _read_text(git: Git, side: _Side | None) -> str:
    if side is None or side.mode == "000000":
        return "(removed)"
    if side.mode == GITLINK:
        return f"(submodule at {side.blob})"
    size = int(git.run_line("cat-file", "-s", side.blob))
    content = git.run_output("cat-file", "blob", side.blob) if size <= MAX_BLOB_BYTES else b"\0"
    return f"(binary, {size} bytes)" if b"\0" in content else content.decode("utf-8", "backslashreplace")


def _differing_part(ours: str, theirs: str) -> tuple[str, str]:
    """Return both sides without the lines that they share at the beginning and the end, cut to the maximum length."""
    left, right = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    shorter = min(len(left), len(right))
    head = next((at for at in range(shorter) if left[at] != right[at]), shorter)
    tail = next((at for at in range(shorter - head) if left[-1 - at] != right[-1 - at]), shorter - head)
    head, tail = max(head - _CONTEXT_LINES, 0), max(tail - _CONTEXT_LINES, 0)
    return _shorten("".join(left[head : len(left) - tail])), _shorten("".join(right[head : len(right) - tail]))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}… ({len(text) - _MAX_SHOWN} characters more)"
