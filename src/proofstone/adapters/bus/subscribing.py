"""Hearing what is said on the bus, at one's own pace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Final

from proofstone.adapters.bus.envelopes import envelope
from proofstone.adapters.ledger import Last, Ledger, Row
from proofstone.contracts.bus import Envelope
from proofstone.contracts.rows import DeliveryRow, MessageRow

_PAGE: Final = 1000
_SHORTEST_S, _LONGEST_S = 0.005, 0.25
"""Pauses while nothing is said: they grow, so that waiting costs next to nothing and nobody waits long."""


class Subscription:
    """A durable consumer. Its cursor goes by name and run; whom and what it hears belongs to the name as well, since
    what its cursor has passed is not looked at again."""

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        *,
        run_id: str | None = None,
        recipient: str | None = None,
        types: Collection[str] | None = None,
    ) -> None:
        self._ledger = ledger
        self._key: dict[str, str | None] = {"subscriber": name, "run_id": run_id}
        wanted = {"run_id": run_id, "recipient": recipient}
        self._where = {column: value for column, value in wanted.items() if value is not None}
        self._types = None if types is None else frozenset(types)
        self._delivery = 0
        """Sequence number of the row that holds the cursor, as far as we know."""
        self._cursor = 0
        self._clear = 0
        """Up to here nothing is for us that has not been handled: it need not be read again."""

    def pending(self, limit: int = 100) -> list[Envelope]:
        """What was said after the cursor, in order."""
        self._look()
        found: list[Envelope] = []
        after = self._clear
        while len(found) < limit:
            page = self._ledger.read(MessageRow, after=after, limit=min(_PAGE, limit), newest=False, **self._where)
            if not page:
                break
            found += [envelope(stored) for stored in page if self._types is None or stored.row.type in self._types]
            after = page[-1].seq
            if not found:
                self._clear = after
        return found[:limit]

    def handled(self, upto: Envelope, effects: Sequence[Row] = ()) -> bool:
        """Write the effects of everything up to this message and move the cursor there, in one transaction. False, and
        nothing is written: another process of the same name has been quicker."""
        if upto.seq <= self._cursor:
            return False
        cursor = DeliveryRow.model_validate({**self._key, "upto": upto.seq})
        seqs = self._ledger.append(*effects, cursor, provided=(Last(DeliveryRow, self._key, seq=self._delivery),))
        if not seqs:
            return False
        self._moved(seqs[-1], upto.seq)
        return True

    def follow(self, handle: Callable[[Envelope], Sequence[Row]], stop: threading.Event, *, batch: int = 100) -> None:
        """Handle what is said until `stop` is set; the batch at hand is seen through."""
        pause = _SHORTEST_S
        while not stop.is_set():
            envelopes = self.pending(batch)
            if not envelopes:
                stop.wait(pause)
                pause = min(pause * 2, _LONGEST_S)
                continue
            pause = _SHORTEST_S
            self.handled(envelopes[-1], [row for one in envelopes for row in handle(one)])

    def _look(self) -> None:
        """Where the cursor is now: another process of the same name may have moved it."""
        for stored in self._ledger.read(DeliveryRow, after=self._delivery, newest=True, limit=1, **self._key):
            self._moved(stored.seq, stored.row.upto)

    def _moved(self, delivery: int, cursor: int) -> None:
        self._delivery, self._cursor = delivery, cursor
        self._clear = max(self._clear, cursor)
