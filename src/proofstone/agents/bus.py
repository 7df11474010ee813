"""The bus: all messages of a run, durable and in the order of the ledger.

Rules:
- a message is written only along a route of `agents.rules.routes`; a refusal is recorded for the auditor;
- an id identifies one message of its run: publishing the message again after a crash writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from proofstone.agents.models import Envelope
from proofstone.agents.rules.routes import REFUSED_EVENT, explain_refusal
from proofstone.errors import InternalError
from proofstone.ledger import LastRowCondition, Ledger
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.schema import LedgerRow, StoredRow

__all__ = ["MessageBus", "NoRouteError", "OutgoingMessage"]


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
    payload: Mapping[str, JsonValue]
    message_id: str
    """An id that the engine chose, the same after a crash."""


class MessageBus:
    def __init__(self, ledger: Ledger, run_id: str) -> None:
        self._ledger = ledger
        self._run_id = run_id

    def publish(
        self, sender: str, recipient: str, type: str, payload: Mapping[str, JsonValue], *, message_id: str
    ) -> None:
        """Publish a message, unless the run already has a message with this id."""
        self.write([OutgoingMessage(sender, recipient, type, payload, message_id)])

    def write(
        self, letters: Sequence[OutgoingMessage], also: Sequence[LedgerRow] = (), *, durable: bool = True
    ) -> None:
        """Write the letters that were not published already, in this order, and `also` in any case, in one
        transaction. If a letter has no route, write none. `durable` is passed to the ledger."""
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
            new = [letter for letter in new if not self._is_published(letter)]

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

    def _is_published(self, letter: OutgoingMessage) -> bool:
        """Return whether the run has a message with the letter's id; raise if that is another message."""
        for stored in self._ledger.read(MessageRow, run_id=self._run_id, message_id=letter.message_id):
            row = stored.row
            if (row.sender, row.recipient, row.type) != (letter.sender, letter.recipient, letter.type):
                raise InternalError(
                    f"run {self._run_id}: message {letter.message_id} is a {row.type} from {row.sender} to "
                    f"{row.recipient}; it cannot also be a {letter.type} from {letter.sender} to {letter.recipient}"
                )
            return True
        return False

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
