"""The record of a loop that an engine drives: what each step was asked, and what came of it.

A run that is resumed goes through its loop again, and each step that is on record is answered from there. What it was
asked is recorded by its digest: if the loop would now ask something else, the record is of another loop, and that is
an error with a name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from proofstone.errors import LedgerError
from proofstone.faults import fault_point
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.schema import Row
from proofstone.runtime.rules import worked_ms


def worked_on(ledger: Ledger, run_id: str) -> int:
    """Milliseconds that processes were at work on a run, up to now; the time between them does not count."""
    events = ((row.seq, row.ts, row.row.type) for row in ledger.read(EventRow, run_id=run_id))
    messages = ((row.seq, row.ts, row.row.type) for row in ledger.read(MessageRow, run_id=run_id))
    now = datetime.now(UTC)
    marks = [(at, type) for _, at, type in sorted((*events, *messages))]
    return worked_ms((*marks, (now.isoformat(), "run.resumed")), now)


Write = Callable[..., object]
"""Writes rows, all of them or none."""


class DivergedError(LedgerError):
    """The record does not belong to what is asked now."""


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class Steps:
    ledger: Ledger
    run_id: str
    type: str
    """Of their rows: `plan.step`."""
    command: str
    """That a person would start anew with."""
    _known: dict[str, Mapping[str, JsonValue]] = field(default_factory=dict)

    @classmethod
    def opened(cls, ledger: Ledger, run_id: str, type: str, command: str) -> Steps:
        steps = cls(ledger, run_id, type, command)
        for stored in ledger.read(EventRow, run_id=run_id, type=type):
            steps._known[str(stored.row.payload["step"])] = stored.row.payload
        return steps

    def recall(self, step: str, asked: str) -> Mapping[str, JsonValue] | None:
        """What came of a step, if it is on record."""
        payload = self._known.get(step)
        if payload is not None and payload["asked"] != digest(asked):
            raise DivergedError(
                f"run {self.run_id}: the record of {step} is about another question than the one that is asked now",
                hint=f"start anew with `proofstone {self.command}`; the record is kept",
            )
        return payload

    def all(self, prefix: str) -> list[tuple[str, Mapping[str, JsonValue]]]:
        """Those on record whose names begin so."""
        return [(step, payload) for step, payload in self._known.items() if step.startswith(prefix)]

    def keep(
        self, step: str, asked: str, came: Mapping[str, JsonValue], *also: Row, write: Write | None = None
    ) -> Mapping[str, JsonValue]:
        """What came of a step, and what belongs to it, in one. `write`: whoever has more to write with it."""
        payload: dict[str, JsonValue] = {"step": step, "asked": digest(asked), **came}
        row = EventRow.model_construct(run_id=self.run_id, type=self.type, payload=payload)
        fault_point("step.before-record")
        (write or self.ledger.append)(row, *also)
        fault_point("step.after-record")
        self._known[step] = payload
        return payload
