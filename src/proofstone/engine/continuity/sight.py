"""What really changed in a work tree while an agent is at work there, and which interfaces with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from proofstone.adapters.git.blobs import file_at
from proofstone.adapters.git.store import Store
from proofstone.adapters.git.work_tree import WorkTree, freeze, too_heavy
from proofstone.adapters.tools.interfaces import changed_signatures
from proofstone.contracts.change import ChangedPath
from proofstone.contracts.worked import ChangedSignature, Worked, WorkedFile
from proofstone.errors import RepositoryError


@dataclass(frozen=True)
class WorkSight:
    """A private work tree. Nobody writes there meanwhile: it is looked at between two turns."""

    store: Store
    place: WorkTree
    base_tree: str

    def worked(self, impact: Iterable[str] = ()) -> Worked:
        if why := too_heavy(self.place.files):
            raise RepositoryError(f"it cannot be frozen: {why}")
        frozen, said = freeze(self.store, self.place, self.base_tree), tuple(impact)
        looked_at = [self._one(one, frozen.tree, said) for one in frozen.change.paths]
        return Worked(
            files=tuple(file for file, _ in looked_at),
            signatures=tuple(one for _, signatures in looked_at for one in signatures or ()),
            unseen=tuple(file.path for file, signatures in looked_at if signatures is None),
        )

    def _one(
        self, changed: ChangedPath, tree: str, impact: tuple[str, ...]
    ) -> tuple[WorkedFile, tuple[ChangedSignature, ...] | None]:
        """The file, and its interfaces that are not what they were; None: that cannot be told."""
        before, after = (file_at(self.store.git(), at, changed.path) for at in (self.base_tree, tree))
        old, new = (dict.fromkeys((text or b"").decode("utf-8", "replace").splitlines()) for text in (before, after))
        file = WorkedFile(
            path=changed.path,
            kind=changed.kind,
            added=tuple(line for line in new if line not in old),
            removed=tuple(line for line in old if line not in new),
        )
        return file, changed_signatures(changed.path, before, after, impact)
