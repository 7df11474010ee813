"""A subscriber as a program: `python -m tests.bus.hearer LEDGER NAME LAST BATCH`.

The effect of a message is a row with its number. It says `at N` after every batch and ends when it has handled the
message with the number LAST.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from proofstone.agents.bus import Subscription
from proofstone.agents.models import Envelope
from proofstone.ledger.models import EventRow
from proofstone.ledger.schema import LedgerRow
from proofstone.ledger.sqlite import SqliteLedger


def main(path: Path, name: str, last: int, batch: int) -> None:
    stop = threading.Event()

    def handle(envelope: Envelope) -> list[LedgerRow]:
        number = envelope.payload["number"]
        if number == last:
            stop.set()
        if isinstance(number, int) and number % batch == 0:
            sys.stdout.write(f"at {number}\n")
            sys.stdout.flush()
        return [EventRow(run_id=name, type="effect", payload={"number": number})]

    with SqliteLedger(path, busy_ms=60_000) as ledger:
        Subscription(ledger, name, run_id="bus").follow(handle, stop, batch=batch)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
