"""The bus: all messages of a run, durable and in the order of the ledger.

Rules:
- a message is written only along a route of `agents.rules.routes`; a refusal is recorded for the auditor;
- an id identifies one message of its run: publishing the message again after a crash writes nothing;
- each subscriber has its own cursor in the ledger: a slow or dead subscriber blocks nobody and misses nothing;
- a subscriber's effects and its cursor are written in one transaction, so that each message takes effect exactly once,
  even after a crash. Side effects of a handler other than the rows that it returns may happen twice.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import Envelope
from proofstone.agents.rules.routes import REFUSED_EVENT, explain_refusal
from proofstone.errors import InternalError
from proofstone.ledger import LastRowCondition, Ledger
from proofstone.ledger.models import DeliveryRow, EventRow, MessageRow
from proofstone.ledger.schema import LedgerRow, StoredRow

__all__ = ["MessageBus", "NoRouteError", "OutgoingMessage", "Subscription"]


def to_envelope(stored: StoredRow[MessageRow]) -> Envelope:
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


class NoRouteError(InternalError):
    """A message without a route. This is an error of the engine, because the engine sends all messages."""


@dataclass(frozen=True)
class OutgoingMessage:
    """A message before it is sent."""

    sender: str
    recipient: str
    type: str
    payload: Mapping[str, JsonValue] = field(default_factory=dict)
    message_id: str = field(default_factory=lambda: secrets.token_hex(16))
    """An id that the engine chose, the same after a crash, or a new random one."""


class MessageBus:
    def __init__(self, ledger: Ledger, run_id: str) -> None:
        self._ledger = ledger
        self._run_id = run_id

    def publish(
        self,
        sender: str,
        recipient: str,
        type: str,
        payload: Mapping[str, JsonValue],
        *,
        message_id: str | None = None,
        also: Sequence[LedgerRow] = (),
    ) -> Envelope:
        """Publish a message and write the rows of `also` in the same transaction. If the run already has a message
        with this id, write nothing and return that message."""
        id_argument = {} if message_id is None else {"message_id": message_id}
        (published,) = self._publish((OutgoingMessage(sender, recipient, type, payload, **id_argument),), also)
        return published

    def publish_all(self, letters: Sequence[OutgoingMessage]) -> tuple[Envelope, ...]:
        """Publish the letters in one transaction and in this order, except those that were published already. If one
        has no route, publish none."""
        return self._publish(letters, ())

    def write(
        self, letters: Sequence[OutgoingMessage], also: Sequence[LedgerRow] = (), *, durable: bool = True
    ) -> None:
        """Write the letters that were not published already, and `also` in any case, in one transaction. `durable` is
        passed to the ledger. Unlike `publish`, this does not read the messages back."""
        for letter in letters:
            self._refuse_off_route(letter)
        new = list(letters)
        while new or also:
            absent = [
                LastRowCondition(MessageRow, {"run_id": self._run_id, "message_id": letter.message_id})
                for letter in new
            ]
            if self._ledger.append(*map(self._build_row, new), *also, provided=absent, durable=durable):
                return
            new = [letter for letter in new if self._find_published(letter) is None]

    def _publish(self, letters: Sequence[OutgoingMessage], also: Sequence[LedgerRow]) -> tuple[Envelope, ...]:
        for letter in letters:
            self._refuse_off_route(letter)
        published_by_id: dict[str, Envelope] = {}
        letters_by_id: dict[str, OutgoingMessage] = {}
        for letter in letters:
            letters_by_id.setdefault(letter.message_id, letter)
        while new := [letter for letter in letters_by_id.values() if letter.message_id not in published_by_id]:
            absent = [
                LastRowCondition(MessageRow, {"run_id": self._run_id, "message_id": letter.message_id})
                for letter in new
            ]
            seqs = self._ledger.append(*map(self._build_row, new), *also, provided=absent)
            if seqs:
                stored = self._ledger.read(MessageRow, after=seqs[0] - 1, limit=len(new))
                published_by_id |= {
                    letter.message_id: to_envelope(message) for letter, message in zip(new, stored, strict=True)
                }
            else:
                published_by_id |= {
                    letter.message_id: existing for letter in new if (existing := self._find_published(letter))
                }
        return tuple(published_by_id[letter.message_id] for letter in letters)

    def _refuse_off_route(self, letter: OutgoingMessage) -> None:
        reason = explain_refusal(letter.sender, letter.recipient, letter.type)
        if not reason:
            return
        task = letter.payload.get("task")
        payload: dict[str, JsonValue] = {
            "from": letter.sender,
            "to": letter.recipient,
            "type": letter.type,
            "id": letter.message_id,
            "why": reason,
        }
        task_id = task if isinstance(task, str) else None
        self._ledger.append(EventRow(run_id=self._run_id, task_id=task_id, type=REFUSED_EVENT, payload=payload))
        raise NoRouteError(f"run {self._run_id}: {letter.type} from {letter.sender} to {letter.recipient}: {reason}")

    def _find_published(self, letter: OutgoingMessage) -> Envelope | None:
        """Return the published message with the letter's id, if there is one."""
        for stored in self._ledger.read(MessageRow, run_id=self._run_id, message_id=letter.message_id):
            row = stored.row
            if (row.sender, row.recipient, row.type) != (letter.sender, letter.recipient, letter.type):
                raise InternalError(
                    f"run {self._run_id}: message {letter.message_id} is a {row.type} from {row.sender} to "
                    f"{row.recipient}; it cannot also be a {letter.type} from {letter.sender} to {letter.recipient}"
                )
            return to_envelope(stored)
        return None

    def _build_row(self, letter: OutgoingMessage) -> MessageRow:
        """Build the row without validation: the engine wrote the letter, and the ledger refuses what is not JSON."""
        return MessageRow.model_construct(
            message_id=letter.message_id,
            run_id=self._run_id,
            sender=letter.sender,
            recipient=letter.recipient,
            type=letter.type,
            payload=letter.payload,
        )


_PAGE: Final = 1000
_SHORTEST_S, _LONGEST_S = 0.005, 0.25
"""Pauses while there are no messages. They grow, so that waiting costs almost nothing and delays stay short."""


class Subscription:
    """A durable consumer. Its cursor is stored by name and run. Always use a name with the same recipient and types,
    because messages before the cursor are not read again."""

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
        filters = {"run_id": run_id, "recipient": recipient}
        self._where = {column: value for column, value in filters.items() if value is not None}
        self._types = None if types is None else frozenset(types)
        self._delivery = 0
        """The sequence number of the row that holds the cursor, when it was last read."""
        self._cursor = 0
        self._clear = 0
        """Up to here there is no unhandled message for this subscriber, so the rows need not be read again."""

    def read_pending(self, limit: int = 100) -> list[Envelope]:
        """Return the messages after the cursor, in order."""
        self._refresh_cursor()
        envelopes: list[Envelope] = []
        after = self._clear
        while len(envelopes) < limit:
            page = self._ledger.read(MessageRow, after=after, limit=min(_PAGE, limit), newest=False, **self._where)
            if not page:
                break
            envelopes += [
                to_envelope(stored) for stored in page if self._types is None or stored.row.type in self._types
            ]
            after = page[-1].seq
            if not envelopes:
                self._clear = after
        return envelopes[:limit]

    def commit(self, upto: Envelope, effects: Sequence[LedgerRow] = ()) -> bool:
        """Write the effects of all messages up to this one and move the cursor there, in one transaction. Return False
        and write nothing if another process with the same name was faster."""
        if upto.seq <= self._cursor:
            return False
        cursor = DeliveryRow.model_validate({**self._key, "upto": upto.seq})
        seqs = self._ledger.append(
            *effects, cursor, provided=(LastRowCondition(DeliveryRow, self._key, seq=self._delivery),)
        )
        if not seqs:
            return False
        self._set_cursor(seqs[-1], upto.seq)
        return True

    def follow(
        self, handle: Callable[[Envelope], Sequence[LedgerRow]], stop: threading.Event, *, batch: int = 100
    ) -> None:
        """Handle messages until `stop` is set. The current batch is completed."""
        pause = _SHORTEST_S
        while not stop.is_set():
            envelopes = self.read_pending(batch)
            if not envelopes:
                stop.wait(pause)
                pause = min(pause * 2, _LONGEST_S)
                continue
            pause = _SHORTEST_S
            self.commit(envelopes[-1], [row for message in envelopes for row in handle(message)])

    def _refresh_cursor(self) -> None:
        """Read the cursor again, because another process with the same name may have moved it."""
        for stored in self._ledger.read(DeliveryRow, after=self._delivery, newest=True, limit=1, **self._key):
            self._set_cursor(stored.seq, stored.row.upto)

    def _set_cursor(self, delivery: int, cursor: int) -> None:
        self._delivery, self._cursor = delivery, cursor
        self._clear = max(self._clear, cursor)
