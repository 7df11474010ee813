"""The whole proof of a ledger: its chain, its anchors, and that every artifact it names is there and unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofstone.adapters.ledger import Ledger, Verification, in_order
from proofstone.adapters.ledger.anchors import Anchor
from proofstone.adapters.ledger.artifacts import ArtifactStore
from proofstone.core.chain import Break
from proofstone.errors import LedgerError


def audit(
    ledger: Ledger, store: ArtifactStore, anchors: Sequence[Anchor] = (), *, since: Anchor | None = None
) -> Verification:
    """Everything, or everything that came after a checkpoint. `since` is a place up to which this was done before."""
    verification = ledger.verify(anchors, since=since)
    try:
        return verification.with_problems(list(_artifacts(ledger, store, verification.start)))
    except LedgerError as error:
        if verification.ok:
            raise
        reason = f"the artifacts could not all be looked for: {error.message}"  # what is damaged is named above
        return verification.with_problems([Break(None, reason)])


def _artifacts(ledger: Ledger, store: ArtifactStore, after: int) -> Iterator[Break]:
    """Each artifact is hashed once, however many rows name it."""
    seen: set[str] = set()
    for stored in in_order(ledger, after=after):
        digest = stored.values.get("artifact")
        if not isinstance(digest, str) or digest in seen:
            continue
        seen.add(digest)
        try:
            problem = store.problem(digest)
        except LedgerError as error:
            problem = error.message
        if problem is not None:
            yield Break(stored.seq, problem)
