"""What was seen of a work tree while an agent works in it."""

from __future__ import annotations

from proofstone.contracts.base import Contract
from proofstone.contracts.change import ChangeKind


class ChangedSignature(Contract):
    """An interface that is not what it was, as the engine sees it."""

    path: str
    symbol: str
    public: bool
    planned: bool
    """The plan, or what was declared before the work, says so."""


class WorkedFile(Contract):
    """A file that really changed, or is to."""

    path: str
    kind: ChangeKind = ChangeKind.MODIFIED
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Worked(Contract):
    """What was seen of a work tree at one moment, compared with the base of the attempt."""

    files: tuple[WorkedFile, ...] = ()
    signatures: tuple[ChangedSignature, ...] = ()
    unseen: tuple[str, ...] = ()
    """Changed files whose signatures cannot be compared."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(one.path for one in self.files)
