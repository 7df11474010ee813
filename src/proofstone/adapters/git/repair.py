"""Objects of a private git directory that are damaged, removed so that they are written again.

Everything in a private git directory can be made again from the person's repository and work tree, but for objects that
a run holds by a ref. So what is sound stays, and damaged objects are removed one by one: git does not write an object
whose file is there already, however damaged it is, and would never get over it by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from proofstone.adapters.git.listing import GITLINK
from proofstone.adapters.git.program import GitFailedError, words_of
from proofstone.adapters.git.store import Store
from proofstone.adapters.rebuilding import discard

_LOOSE: Final = re.compile(r"[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})").fullmatch
_PART: Final = 1 << 20


def sound_tree(store: Store, base: str, write: Callable[[], str], *, forget: Callable[[], object] | None = None) -> str:
    """The tree that `write` makes, once every object in which it differs from `base` is there and is what its name
    says. Otherwise damaged objects are removed, `forget` drops what was known of them, and it is written again."""
    try:
        tree = write()
        names = _new_objects(store, base, tree)
        damaged = _remove_damaged(store, names) or _missing(store, names)
    except GitFailedError:
        damaged = _remove_damaged(store, _all_objects(store))
        if not damaged:
            raise
    else:
        if not damaged:
            return tree
        damaged += _remove_damaged(store, _all_objects(store))  # a damaged tree did not name all that is below it
    if forget is not None:
        forget()
    tree = write()
    store.repairs.append(f"{store.objects}: objects were damaged or missing ({damaged}); they were written again")
    return tree


def is_whole_index(index: Path, object_format: str) -> bool:
    """Whether the last bytes of an index are the digest of those before them, as git writes it."""
    content = index.read_bytes()
    state = hashlib.new(object_format, usedforsecurity=False)
    state.update(content[: -state.digest_size])
    return content[-state.digest_size :] == state.digest()


def _new_objects(store: Store, base: str, tree: str) -> list[str]:
    """The blobs and trees that `tree` has and `base` has not."""
    records = store.git().records("diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--full-index", base, tree)
    fields = [words_of(record, 5, "diff-tree") for record in records[::2]]
    names = {field[3] for field in fields if field[1] != GITLINK and field[4] != "D"}
    return [*names, tree]


def _all_objects(store: Store) -> list[str]:
    return [f"{path.parent.name}{path.name}" for path in store.objects.glob("??/*")]


def _missing(store: Store, names: Iterable[str]) -> int:
    """How many of these objects neither the store nor the person's repository has."""
    asked = store.git().out("cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in names).encode("ascii"))
    return sum(line.endswith(b" missing") for line in asked.splitlines())


def _remove_damaged(store: Store, names: Iterable[str]) -> int:
    """How many loose objects of the store itself were not what their names say, and are gone now."""
    damaged = 0
    for name in names:
        place = f"{name[:2]}/{name[2:]}"
        path = store.objects / place
        if _LOOSE(place) and os.path.lexists(path) and not _is_sound(path, name, store.repository.object_format):
            discard(path)
            damaged += 1
    return damaged


def _is_sound(path: Path, name: str, object_format: str) -> bool:
    state = hashlib.new(object_format, usedforsecurity=False)
    unpacked = zlib.decompressobj()
    try:
        with path.open("rb") as file:
            while part := unpacked.unconsumed_tail or file.read(_PART):
                state.update(unpacked.decompress(part, _PART))
    except (OSError, zlib.error):
        return False
    return unpacked.eof and state.hexdigest() == name
