"""A message as the ledger keeps it, and as it is handed out."""

from __future__ import annotations

from proofstone.adapters.ledger import Stored
from proofstone.contracts.bus import Envelope
from proofstone.contracts.rows import MessageRow


def envelope(stored: Stored[MessageRow]) -> Envelope:
    row = stored.row
    return Envelope(
        id=row.message_id,
        timestamp=stored.ts,
        sender=row.sender,
        recipient=row.recipient,
        type=row.type,
        payload=row.payload,
        run_id=row.run_id,
        seq=stored.seq,
    )
