"""The journal of a workflow: the input and the result of each step.

A resumed run executes its workflow again, and each recorded step is answered from the journal. The journal holds a
digest of the input: if the workflow now sends another input for the same step, the record belongs to another workflow,
and that is an error of its own.
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
from proofstone.ledger.schema import LedgerRow
from proofstone.runtime.rules import count_work_ms


def read_work_ms(ledger: Ledger, run_id: str) -> int:
    """Return the milliseconds that processes have worked on a run; the time between processes does not count."""
    events = ((row.seq, row.ts, row.row.type) for row in ledger.read(EventRow, run_id=run_id))
    messages = ((row.seq, row.ts, row.row.type) for row in ledger.read(MessageRow, run_id=run_id))
    now = datetime.now(UTC)
    marks = [(at, type) for _, at, type in sorted((*events, *messages))]
    return count_work_ms((*marks, (now.isoformat(), "run.resumed")), now)


RowWriter = Callable[..., object]
"""A function that appends rows to the ledger, all of them or none."""


class JournalMismatchError(LedgerError):
    """The recorded input of a step differs from its input now."""


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class Journal:
    ledger: Ledger
    run_id: str
    type: str
    """The event type of the rows, for example `plan.step`."""
    command: str
    """The command that starts such a run."""
    _recorded: dict[str, Mapping[str, JsonValue]] = field(default_factory=dict)

    @classmethod
    def load(cls, ledger: Ledger, run_id: str, type: str, command: str) -> Journal:
        steps = cls(ledger, run_id, type, command)
        for stored in ledger.read(EventRow, run_id=run_id, type=type):
            steps._recorded[str(stored.row.payload["step"])] = stored.row.payload
        return steps

    def lookup(self, step: str, input_text: str) -> Mapping[str, JsonValue] | None:
        """Return the recorded result of a step, or None."""
        payload = self._recorded.get(step)
        if payload is not None and payload["asked"] != digest(input_text):
            raise JournalMismatchError(
                f"run {self.run_id}: the recorded input of {step} differs from its input now",
                hint=f"start a new run with `proofstone {self.command}`; the ledger keeps this record",
            )
        return payload

    def with_prefix(self, prefix: str) -> list[tuple[str, Mapping[str, JsonValue]]]:
        """Return the recorded steps whose names begin with the prefix."""
        return [(step, payload) for step, payload in self._recorded.items() if step.startswith(prefix)]

    def record(
        self,
        step: str,
        input_text: str,
        result: Mapping[str, JsonValue],
        *also: LedgerRow,
        write: RowWriter | None = None,
    ) -> Mapping[str, JsonValue]:
        """Record the result of a step together with the rows `also`, atomically. `write` replaces `Ledger.append` for a
        caller that writes more rows with them.
        """
        payload: dict[str, JsonValue] = {"step": step, "asked": digest(input_text), **result}
        row = EventRow.model_construct(run_id=self.run_id, type=self.type, payload=payload)
        fault_point("step.before-record")
        (write or self.ledger.append)(row, *also)
        fault_point("step.after-record")
        self._recorded[step] = payload
        return payload
