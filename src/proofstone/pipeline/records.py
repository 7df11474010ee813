"""Everything that the ledger holds of one run, read once.

Runs of the whole pipeline as the ledger tells them, at any time and from any process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import JsonValue

from proofstone.errors import LedgerError
from proofstone.gate.models import TASK_EVENTS, RunOutcome, TaskEvent, TaskRecord
from proofstone.gate.rules.machine import GateError, apply
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, CheckRow, EventRow, MessageRow, OverrideRow, TelemetryRow
from proofstone.ledger.query import KnownRun
from proofstone.ledger.schema import R, Stored
from proofstone.pipeline.journal import REPORT, STEP
from proofstone.pipeline.models.bundle import Child
from proofstone.pipeline.models.run import RunReport
from proofstone.runtime.run_index import CHILD

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
        return tuple(event.seq for event in self.events if not kinds or event.event.kind in kinds)


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
        return ((event.seq, event.row.payload) for event in self.events if event.row.type == type)

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
        return [event for event in self.events if event.row.type.startswith("run.") and event.row.type not in _BESIDE]

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
        for event in events:
            try:
                record = apply(record, event.event)
            except GateError as error:
                raise LedgerError(f"run {self.run_id}: row {event.seq} of the ledger cannot be: {error}") from error
        return TaskHistory(id, record, tuple(events))


def _last(table: list[Stored[R]]) -> list[tuple[int, str]]:
    return [(item.seq, item.link.hash) for item in table[-1:]]


BUNDLED: Final = ("run", "gate")
"""Commands whose runs have a bundle."""


def children(ledger: Ledger, run_id: str) -> tuple[Child, ...]:
    """The runs that are parts of this one, in the order in which they were begun; each once, however often it was gone
    on with."""
    found: dict[str, Child] = {}
    for stored in ledger.read(EventRow, run_id=run_id, type=CHILD):
        said = Child.model_validate({**stored.row.payload, "rows": (stored.seq,)})
        found.setdefault(said.run_id, said)
    return tuple(found.values())


def reported(ledger: Ledger, run_id: str) -> tuple[RunReport, int] | None:
    """What came of a run and the row that says so, as far as it came to that. Of a run that has gone on since, nothing
    has come yet."""
    for stored in ledger.read(EventRow, run_id=run_id, type=REPORT, newest=True, limit=1):
        if ledger.read(EventRow, run_id=run_id, type=STEP, after=stored.seq, limit=1):
            return None
        return _as_of_now(ledger, RunReport.model_validate(stored.row.payload["report"]), stored.seq), stored.seq
    return None


def _as_of_now(ledger: Ledger, report: RunReport, seq: int) -> RunReport:
    """What a person was asked, they may have answered since: then it only waits for somebody to go on with it."""
    if report.waiting is None:
        return report
    for stored in ledger.read(
        ApprovalRow, run_id=report.run_id, gate=report.waiting.gate_id, after=seq, newest=True, limit=1
    ):
        update = {
            "waiting": None,
            "reason": f"{stored.row.gate}: {stored.row.option}, says {stored.row.decided_by}; nobody has gone on yet",
            "next_step": f"proofstone resume {report.run_id}",
        }
        return report.model_copy(update=update)
    return report


def last_report(ledger: Ledger, run_id: str) -> RunReport | None:
    found = reported(ledger, run_id)
    return found[0] if found else None


def bundled_runs(ledger: Ledger) -> list[KnownRun]:
    """Runs that a bundle can be made of, newest first. Parts of other runs come behind all of these: they can be named,
    but `last` means a run that a person has started."""
    started = [row for row in reversed(ledger.read(EventRow, type="run.started")) if _has_bundle(row)]
    return [_known(item) for item in sorted(started, key=_is_part)]


def _has_bundle(started: Stored[EventRow]) -> bool:
    return started.row.payload.get("command") in BUNDLED


def _is_part(started: Stored[EventRow]) -> bool:
    return bool(started.row.payload.get("parent"))


def _known(started: Stored[EventRow]) -> KnownRun:
    return KnownRun(started.row.run_id, str(started.row.payload["repository"]))
