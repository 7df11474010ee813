"""Everything that the ledger holds of one run, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import JsonValue

from proofstone.adapters.ledger import Ledger, Stored
from proofstone.adapters.ledger.tables import R
from proofstone.contracts.evidence import CheckRow
from proofstone.contracts.gate_record import TASK_EVENTS, TaskEvent, TaskRecord
from proofstone.contracts.gate_report import RunOutcome
from proofstone.contracts.rows import ApprovalRow, EventRow, MessageRow, OverrideRow, TelemetryRow
from proofstone.core.gate.machine import GateError, apply
from proofstone.errors import LedgerError

Kind = Literal["run", "plan", "gate"]
_BESIDE: Final = ("run.budget", "run.child")


@dataclass(frozen=True)
class Happened:
    """One event of a task."""

    seq: int
    event: TaskEvent


@dataclass(frozen=True)
class TaskHistory:
    id: str
    record: TaskRecord
    events: tuple[Happened, ...]

    def rows(self, *kinds: str) -> tuple[int, ...]:
        """The rows of these kinds of events; of all of them, if none is named."""
        return tuple(one.seq for one in self.events if not kinds or one.event.kind in kinds)


@dataclass(frozen=True)
class RunRecord:
    run_id: str
    kind: Kind
    iteration: int
    events: list[Stored[EventRow]] = field(repr=False)
    checks: list[Stored[CheckRow]] = field(repr=False)
    messages: list[Stored[MessageRow]] = field(repr=False)
    telemetry: list[Stored[TelemetryRow]] = field(repr=False)
    approvals: list[Stored[ApprovalRow]] = field(repr=False)
    overrides: list[Stored[OverrideRow]] = field(repr=False)

    @classmethod
    def read(cls, ledger: Ledger, run_id: str, kind: Kind, iteration: int = 1) -> RunRecord:
        return cls(
            run_id,
            kind,
            iteration,
            events=ledger.read(EventRow, run_id=run_id),
            checks=ledger.read(CheckRow, run_id=run_id),
            messages=ledger.read(MessageRow, run_id=run_id),
            telemetry=ledger.read(TelemetryRow, run_id=run_id),
            approvals=ledger.read(ApprovalRow, run_id=run_id),
            overrides=ledger.read(OverrideRow, run_id=run_id),
        )

    def of_type(self, type: str) -> Iterator[tuple[int, Mapping[str, JsonValue]]]:
        """Row and payload of each event of that type."""
        return ((one.seq, one.row.payload) for one in self.events if one.row.type == type)

    @property
    def last_rows(self) -> list[tuple[int, str]]:
        """The last row of each table, with its hash."""
        return [
            *_last(self.events),
            *_last(self.checks),
            *_last(self.messages),
            *_last(self.telemetry),
            *_last(self.approvals),
            *_last(self.overrides),
        ]

    @property
    def stages(self) -> list[Stored[EventRow]]:
        """What happened to the run as a whole; that somebody has raised its budget, or that a part of it was begun,
        leaves it where it is."""
        return [one for one in self.events if one.row.type.startswith("run.") and one.row.type not in _BESIDE]

    @property
    def outcome(self) -> RunOutcome | None:
        """None: it has not ended, or goes on."""
        last = self.stages[-1].row
        return RunOutcome(str(last.payload["outcome"])) if last.type == "run.finished" else None

    @property
    def reason(self) -> str:
        return str(self.stages[-1].row.payload.get("reason", ""))

    def tasks(self) -> tuple[TaskHistory, ...]:
        """The tasks to which something has happened, in the order in which they were begun."""
        found: dict[str, list[Happened]] = {}
        for stored in self.events:
            if stored.row.task_id is not None and stored.row.type.startswith("task."):
                event = TASK_EVENTS.validate_python(stored.row.payload["event"])
                found.setdefault(stored.row.task_id, []).append(Happened(stored.seq, event))
        return tuple(self._history(id, events) for id, events in found.items())

    def _history(self, id: str, events: list[Happened]) -> TaskHistory:
        # Nobody starts work on a checkpoint, and nothing else is blocked or confirmed before it was begun.
        record = TaskRecord(id=id, checkpoint=events[0].event.kind in ("confirmed", "blocked"))
        for one in events:
            try:
                record = apply(record, one.event)
            except GateError as error:
                raise LedgerError(f"run {self.run_id}: row {one.seq} of the ledger cannot be: {error}") from error
        return TaskHistory(id, record, tuple(events))


def _last(table: list[Stored[R]]) -> list[tuple[int, str]]:
    return [(one.seq, one.link.hash) for one in table[-1:]]
