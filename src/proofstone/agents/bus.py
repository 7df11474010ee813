"""A message as the ledger keeps it, and as it is handed out.

Saying something on the bus: along a route, once by its id, together with what belongs to it.

Hearing what is said on the bus, at one's own pace.

The bus: everything that is said, durable and in the order of the ledger.

Rules:
- a message is written only along a route of `agents.rules.routes`; what is refused is recorded, for the auditor to see;
- an id stands for one message of its run, whoever says it again after a crash;
- each subscriber has a cursor of its own in the ledger: one that is slow or dead blocks nobody and misses nothing;
- a subscriber's effects and its cursor are one transaction, so that a message is handled once in effect, whatever is
  killed when. What a handler does beside the rows that it returns may happen twice.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import Envelope
from proofstone.agents.rules.routes import REFUSED, why_not
from proofstone.errors import InternalError
from proofstone.ledger import Last, Ledger
from proofstone.ledger.models import DeliveryRow, EventRow, MessageRow
from proofstone.ledger.schema import Row, Stored

__all__ = ["Bus", "Letter", "OffRouteError", "Subscription"]


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


class OffRouteError(InternalError):
    """Somebody was to say what they may not say: the engine's fault, since it is the engine that speaks for them."""


@dataclass(frozen=True)
class Letter:
    """A message before it is sent."""

    sender: str
    recipient: str
    type: str
    payload: Mapping[str, JsonValue] = field(default_factory=dict)
    message_id: str = field(default_factory=lambda: secrets.token_hex(16))
    """The engine's own, and the same after a crash; or a new one."""


class Bus:
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
        also: Sequence[Row] = (),
    ) -> Envelope:
        """Say it, and write `also` in the same transaction. If the run has a message of this id, nothing is written
        and that message is returned."""
        named = {} if message_id is None else {"message_id": message_id}
        (said,) = self._said((Letter(sender, recipient, type, payload, **named),), also)
        return said

    def publish_all(self, letters: Sequence[Letter]) -> tuple[Envelope, ...]:
        """All of them in one transaction and in this order, except those that were said already. If one is off the
        routes, none is said."""
        return self._said(letters, ())

    def say(self, letters: Sequence[Letter], also: Sequence[Row] = (), *, durable: bool = True) -> None:
        """What was not said already, and `also` in any case, in one transaction; `durable` as the ledger has it. For
        whoever does not want to hear it back."""
        for letter in letters:
            self._refuse_off_route(letter)
        new = list(letters)
        while new or also:
            absent = [Last(MessageRow, {"run_id": self._run_id, "message_id": item.message_id}) for item in new]
            if self._ledger.append(*map(self._row, new), *also, provided=absent, durable=durable):
                return
            new = [letter for letter in new if self._known(letter) is None]

    def _said(self, letters: Sequence[Letter], also: Sequence[Row]) -> tuple[Envelope, ...]:
        for letter in letters:
            self._refuse_off_route(letter)
        before: dict[str, Envelope] = {}
        once: dict[str, Letter] = {}
        for letter in letters:
            once.setdefault(letter.message_id, letter)
        while new := [letter for letter in once.values() if letter.message_id not in before]:
            absent = [Last(MessageRow, {"run_id": self._run_id, "message_id": item.message_id}) for item in new]
            seqs = self._ledger.append(*map(self._row, new), *also, provided=absent)
            if seqs:
                stored = self._ledger.read(MessageRow, after=seqs[0] - 1, limit=len(new))
                before |= {letter.message_id: envelope(one) for letter, one in zip(new, stored, strict=True)}
            else:
                before |= {letter.message_id: known for letter in new if (known := self._known(letter))}
        return tuple(before[letter.message_id] for letter in letters)

    def _refuse_off_route(self, letter: Letter) -> None:
        why = why_not(letter.sender, letter.recipient, letter.type)
        if not why:
            return
        task = letter.payload.get("task")
        said: dict[str, JsonValue] = {
            "from": letter.sender,
            "to": letter.recipient,
            "type": letter.type,
            "id": letter.message_id,
            "why": why,
        }
        task_id = task if isinstance(task, str) else None
        self._ledger.append(EventRow(run_id=self._run_id, task_id=task_id, type=REFUSED, payload=said))
        raise OffRouteError(f"run {self._run_id}: {letter.type} from {letter.sender} to {letter.recipient}: {why}")

    def _known(self, letter: Letter) -> Envelope | None:
        """The message that has the letter's id."""
        for stored in self._ledger.read(MessageRow, run_id=self._run_id, message_id=letter.message_id):
            row = stored.row
            if (row.sender, row.recipient, row.type) != (letter.sender, letter.recipient, letter.type):
                raise InternalError(
                    f"run {self._run_id}: message {letter.message_id} is a {row.type} from {row.sender} to "
                    f"{row.recipient}; it cannot be a {letter.type} from {letter.sender} to {letter.recipient} as well"
                )
            return envelope(stored)
        return None

    def _row(self, letter: Letter) -> MessageRow:
        """As it is: a letter is the engine's own, and the ledger refuses what is no JSON."""
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
            self.handled(envelopes[-1], [row for item in envelopes for row in handle(item)])

    def _look(self) -> None:
        """Where the cursor is now: another process of the same name may have moved it."""
        for stored in self._ledger.read(DeliveryRow, after=self._delivery, newest=True, limit=1, **self._key):
            self._moved(stored.seq, stored.row.upto)

    def _moved(self, delivery: int, cursor: int) -> None:
        self._delivery, self._cursor = delivery, cursor
        self._clear = max(self._clear, cursor)
