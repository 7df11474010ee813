"""Saying something on the bus: along a route, once by its id, together with what belongs to it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from proofstone.adapters.bus.envelopes import envelope
from proofstone.adapters.ledger import Last, Ledger, Row
from proofstone.contracts.bus import Envelope
from proofstone.contracts.rows import EventRow, MessageRow
from proofstone.core.agent.routes import REFUSED, why_not
from proofstone.errors import InternalError


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
            absent = [Last(MessageRow, {"run_id": self._run_id, "message_id": one.message_id}) for one in new]
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
            absent = [Last(MessageRow, {"run_id": self._run_id, "message_id": one.message_id}) for one in new]
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
