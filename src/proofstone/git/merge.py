"""Putting an accepted tree on a tip that has moved meanwhile: a three-way merge of trees, without a work tree.

Files are merged by the base's own attributes and git's built-in ways alone: no merge driver runs. Git guesses at
renames; a guess by which a change would land in a file that its own side has not touched is a conflict here. What two
sides changed in different ways is one too, shown with both.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proofstone.errors import RepositoryError
from proofstone.git.commit import Identity, Intent, write_commit
from proofstone.git.objects import GITLINK, LARGEST, in_tree
from proofstone.git.program import Git, readable, words_of
from proofstone.git.rules import root_attribute_rules
from proofstone.git.snapshot import difference, files_named
from proofstone.git.store import Store, store_beside

_NOBODY = Identity("Proofstone", "merge@proofstone.invalid")
_MOST_DIGITS = 10
_SHOWN = 4000
"""Characters of each side of a conflict that are kept."""
_AROUND = 3
"""Lines shown before and after what differs."""
_SETTINGS = ("merge.renames=true", "merge.directoryRenames=false", "merge.renormalize=false")


@dataclass(frozen=True)
class Merged:
    tree: str


@dataclass(frozen=True)
class Conflict:
    path: str
    ours: str
    """What the tip has there, as text: where the sides differ, and a little around it."""
    theirs: str
    """What the tree that is merged has there."""
    kind: str
    """As git names it: content, add/add, modify/delete, …; or rename, where it would have guessed at one."""


@dataclass(frozen=True)
class _Side:
    mode: str
    blob: str


def merge(store: Store, *, base_commit: str, tip: str, tree: str) -> Merged | tuple[Conflict, ...]:
    """What `tree` changed of `base_commit`, done to the commit `tip`."""
    git = store.git()
    base, ours = (git.tree_of(commit) for commit in (base_commit, tip))
    if base == ours or tree == ours:
        return Merged(tree)
    if base == tree:
        return Merged(ours)
    # Both sides as children of the base, whatever the history between base and tip: that makes it the merge base.
    sides = [_child(store, base_commit, side) for side in (ours, tree)]
    place = Store(store.repository, store.folder / "merge", store.objects)
    place.folder.mkdir(mode=0o700, exist_ok=True)
    with place.locked():
        store_beside(store, place.folder, place.repository)
        rules = root_attribute_rules(files_named(git, in_tree(git, base), b".gitattributes"))
        (place.git_dir / "info" / "attributes").write_bytes(os.fsencode("".join(f"{rule}\n" for rule in rules)))
        asked = replace(place.git(), settings=_SETTINGS)
        done = asked.run("merge-tree", "--write-tree", "-z", *sides, accept=(0, 1))
    merged, _, rest = done.stdout.partition(b"\0")
    if done.returncode == 0:
        result = merged.decode("ascii")
        return _strays(git, base, (ours, tree), result) or Merged(result)
    return _conflicts(git, rest, sides)


def _child(store: Store, parent: str, tree: str) -> str:
    """Never referenced, and the same each time."""
    return write_commit(store, Intent(tree, parent, "merged", _NOBODY, "0 +0000"), sign=False)


def _strays(git: Git, base: str, sides: tuple[str, str], result: str) -> tuple[Conflict, ...]:
    """Files that are not as one side left them, although the other side has not touched them."""
    ours, theirs = sides
    touched_by_us, touched_by_them = ({e.path for e in difference(git, base, side)} for side in sides)
    found = []
    for entry in difference(git, ours, result):
        if entry.path not in touched_by_them:
            found.append((entry.path, _Side(entry.old_mode, entry.old_blob), _Side(entry.mode, entry.blob)))
    for entry in difference(git, theirs, result):
        if entry.path not in touched_by_us:
            found.append((entry.path, _Side(entry.mode, entry.blob), _Side(entry.old_mode, entry.old_blob)))
    return tuple(Conflict(readable(path), *_shown(_text(git, a), _text(git, b)), "rename") for path, a, b in found)


def _conflicts(git: Git, output: bytes, sides: Sequence[str]) -> tuple[Conflict, ...]:
    """First the entries in conflict, by stage, then an empty record, then what git says about paths."""
    entries, _, said = output.partition(b"\0\0")
    stages: dict[bytes, dict[int, _Side]] = {}
    for record in entries.split(b"\0"):
        meta, _, path = record.partition(b"\t")
        mode, blob, stage = words_of(meta, 3, "merge-tree")
        stages.setdefault(path, {})[int(stage) if stage in ("1", "2", "3") else 0] = _Side(mode, blob)
    kinds = _kinds(said)
    return tuple(_conflict(git, path, found, kinds.get(path, "content"), sides) for path, found in stages.items())


def _kinds(said: bytes) -> dict[bytes, str]:
    """For each path the first conflict that git names: `CONFLICT (modify/delete): …`."""
    fields = said.split(b"\0")
    kinds: dict[bytes, str] = {}
    at = 0
    while at < len(fields) and fields[at].isdigit():
        count = int(fields[at]) if len(fields[at]) < _MOST_DIGITS else len(fields)
        if at + 2 + count >= len(fields):
            raise RepositoryError("git merge-tree ended in the middle of a record", hint="git fsck says more")
        paths, message = fields[at + 1 : at + 1 + count], readable(fields[at + 2 + count])
        if message.startswith("CONFLICT ("):
            for path in paths:
                kinds.setdefault(path, message.partition("(")[2].partition(")")[0])
        at += count + 3
    return kinds


def _conflict(git: Git, path: bytes, stages: dict[int, _Side], kind: str, sides: Sequence[str]) -> Conflict:
    ours, theirs = _shown(_text(git, stages.get(2)), _text(git, stages.get(3)))
    name = path
    for side in sides:  # a file that a directory is in the way of is set aside under the commit's name
        name = name.removesuffix(b"~" + side.encode("ascii"))
    return Conflict(readable(name), ours, theirs, kind)


def _text(git: Git, side: _Side | None) -> str:
    if side is None or side.mode == "000000":
        return "(removed)"
    if side.mode == GITLINK:
        return f"(submodule at {side.blob})"
    size = int(git.line("cat-file", "-s", side.blob))
    content = git.out("cat-file", "blob", side.blob) if size <= LARGEST else b"\0"
    return f"(binary, {size} bytes)" if b"\0" in content else content.decode("utf-8", "backslashreplace")


def _shown(ours: str, theirs: str) -> tuple[str, str]:
    """Both sides without the lines that they share at the beginning and at the end, and not without bound."""
    left, right = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    shorter = min(len(left), len(right))
    head = next((at for at in range(shorter) if left[at] != right[at]), shorter)
    tail = next((at for at in range(shorter - head) if left[-1 - at] != right[-1 - at]), shorter - head)
    head, tail = max(head - _AROUND, 0), max(tail - _AROUND, 0)
    return _bounded("".join(left[head : len(left) - tail])), _bounded("".join(right[head : len(right) - tail]))


def _bounded(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text) - _SHOWN} characters more)"
