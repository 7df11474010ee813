"""Read and write disputes in the ledger.

A dispute is one event, `dispute.raised`, and the decision about it another, `dispute.decided`. Both name the dispute by
its id. They belong to the check that the dispute is about; a dispute without a check is a run of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from proofstone.check.rules.disputes import DisputeDecision, RecordedDispute
from proofstone.common.models import AcceptanceMethod
from proofstone.errors import LedgerCorruptError
from proofstone.ledger import Ledger, StoredRow
from proofstone.ledger.models import EventRow

_RAISED: Final = "dispute.raised"
_DECIDED: Final = "dispute.decided"


def record_dispute(ledger: Ledger, dispute: RecordedDispute) -> None:
    """Record a dispute."""
    payload = dispute.model_dump(
        mode="json", include={"id", "tree", "repository", "subject", "claim", "raised_by", "run", "evidence"}
    )
    ledger.append(EventRow(run_id=dispute.run or dispute.id, type=_RAISED, payload=payload))


def record_decision(
    ledger: Ledger, dispute: RecordedDispute, decision: DisputeDecision, reason: str, by: str, method: AcceptanceMethod
) -> None:
    """Record what a person decided about a dispute."""
    payload = {"id": dispute.id, "decision": decision, "reason": reason, "decided_by": by, "method": method}
    ledger.append(
        EventRow(
            run_id=dispute.run or dispute.id,
            type=_DECIDED,
            payload={name: str(value) for name, value in payload.items()},
        )
    )


def find_disputes(ledger: Ledger, trees: Collection[str] | None = None) -> tuple[RecordedDispute, ...]:
    """Return the disputes of these trees, or of all, oldest first, with the decisions about them. The last decision
    counts. Raise LedgerCorruptError if somebody wrote one past the ledger's key."""
    found: dict[str, RecordedDispute] = {}
    for stored in ledger.read(EventRow, type=_RAISED):
        if trees is None or stored.row.payload.get("tree") in trees:
            _demand_authentic(ledger, stored)
            dispute = RecordedDispute.model_validate({**stored.row.payload, "raised_at": stored.ts})
            found[dispute.id] = dispute
    if not found:
        return ()
    for stored in ledger.read(EventRow, type=_DECIDED):
        dispute_id = str(stored.row.payload.get("id"))
        if dispute_id in found:
            _demand_authentic(ledger, stored)
            raised = found[dispute_id].model_dump(mode="json")
            found[dispute_id] = RecordedDispute.model_validate({**raised, **stored.row.payload})
    return tuple(found.values())


def _demand_authentic(ledger: Ledger, stored: StoredRow[EventRow]) -> None:
    if not ledger.is_authentic(stored):
        raise LedgerCorruptError(
            f"row {stored.seq} of the ledger, {stored.row.type}, was not written with the ledger's key",
            seq=stored.seq,
            hint="`proofstone ledger verify` shows what else is wrong",
        )
