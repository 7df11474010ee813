"""What changed: two trees and the paths that differ between them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import StringConstraints

from proofstone.contracts.base import Contract

TreeId = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]


class ChangeKind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedPath(Contract):
    """One path that differs. `path` is for reading; bytes that are not UTF-8 appear as `\\xNN`."""

    path: str
    kind: ChangeKind
    mode: str
    """Git's mode after the change (`100644`, `120000` a symlink, `160000` a submodule); `000000` if deleted."""


class Change(Contract):
    base: TreeId
    tree: TreeId
    paths: tuple[ChangedPath, ...]

    @property
    def empty(self) -> bool:
        return self.base == self.tree
