"""What a tree or an index holds, path by path."""

from __future__ import annotations

from typing import NamedTuple

from proofstone.adapters.git.program import Git, words_of

GITLINK = "160000"
SYMLINK = "120000"


class Held(NamedTuple):
    mode: str
    thing: str
    """The blob; of a submodule its commit."""
    path: bytes
    mark: str = ""
    """What the index says of it."""

    @property
    def is_file(self) -> bool:
        return self.mode.startswith("100")

    @property
    def left_out(self) -> bool:
        """Whether it is marked as left out by a sparse checkout."""
        return self.mark == "S"


def in_tree(git: Git, tree: str) -> list[Held]:
    found = []
    for record in git.records_of("ls-tree", "-r", "-z", tree):
        meta, _, path = record.partition(b"\t")
        mode, _, thing = words_of(meta, 3, "ls-tree")
        found.append(Held(mode, thing, path))
    return found


def in_index(git: Git) -> list[Held]:
    found = []
    for record in git.records("ls-files", "-z", "-t", "--stage"):
        meta, _, path = record.partition(b"\t")
        mark, mode, thing, _stage = words_of(meta, 4, "ls-files")
        found.append(Held(mode, thing, path, mark))
    return found
