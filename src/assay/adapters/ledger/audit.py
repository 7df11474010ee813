"""The whole proof of a ledger: its chain, its anchors, and that every artifact it names is there and unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.adapters.ledger import Ledger, Verification, in_order
from assay.adapters.ledger.anchors import Anchor
from assay.adapters.ledger.artifacts import ArtifactStore
from assay.core.chain import Break, earliest
from assay.errors import LedgerError


def audit(ledger: Ledger, store: ArtifactStore, anchors: Sequence[Anchor] = ()) -> Verification:
    verification = ledger.verify(anchors)
    try:
        artifacts = _artifacts(ledger, store)
    except LedgerError:
        if verification.ok:
            raise
        return verification  # a damaged ledger need not be readable to the end
    return replace(verification, problem=earliest(verification.problem, artifacts))


def _artifacts(ledger: Ledger, store: ArtifactStore) -> Break | None:
    """Each artifact is hashed once, however many rows name it."""
    seen: set[str] = set()
    for stored in in_order(ledger):
        digest = stored.values.get("artifact")
        if not isinstance(digest, str) or digest in seen:
            continue
        seen.add(digest)
        problem = store.problem(digest)
        if problem is not None:
            return Break(stored.seq, problem)
    return None
