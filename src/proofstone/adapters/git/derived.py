"""Trees made from the frozen one, for runs beside the check itself: each has its own id, and none is committed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from proofstone.adapters.git.listing import in_tree
from proofstone.adapters.git.repair import sound_tree
from proofstone.adapters.git.snapshot import Entry, Snapshot, difference, discard_index, set_entries
from proofstone.adapters.git.store import Store

_FILE = "100644"


def with_base_files(store: Store, snapshot: Snapshot, paths: set[bytes]) -> str:
    """The snapshot's tree with these paths as they are in the base."""
    back = [entry for entry in snapshot.entries if entry.path in paths]
    entries = [_as_in_base(entry) for entry in back]
    return sound_tree(store, snapshot.tree, lambda: _written(store, snapshot.tree, entries))


def with_contents(store: Store, tree: str, contents: Mapping[bytes, bytes]) -> str:
    """The tree with these files holding these bytes; a file that it does not have is added."""
    git = store.git()
    modes = {one.path: one.mode for one in in_tree(git, tree)}

    def write() -> str:
        blobs = {
            path: git.run("hash-object", "-w", "--stdin", stdin=content).stdout.decode().strip()
            for path, content in contents.items()
        }
        return _written(store, tree, [(_mode(modes.get(path)), blob, path) for path, blob in blobs.items()])

    return sound_tree(store, tree, write)


def candidate(store: Store, snapshot: Snapshot, paths: set[bytes]) -> Snapshot:
    """The snapshot with these paths put back: what is checked, and what may be committed, from here on."""
    tree = with_base_files(store, snapshot, paths)
    return replace(snapshot, tree=tree, entries=tuple(difference(store.git(), snapshot.base, tree)))


def _mode(known: str | None) -> str:
    """A file stays executable; what was a link or a submodule becomes a file."""
    return known if known and known.startswith("100") else _FILE


def _as_in_base(entry: Entry) -> tuple[str, str, bytes]:
    return (entry.old_mode if entry.old_mode != "000000" else "0", entry.old_blob, entry.path)


def _written(store: Store, tree: str, entries: Sequence[tuple[str, str, bytes]]) -> str:
    index = store.folder / f"index.derived-{secrets.token_hex(4)}"
    git = store.git(index=index)
    try:
        git.run("read-tree", tree)
        set_entries(git, entries)
        return git.line("write-tree")
    finally:
        discard_index(index)
