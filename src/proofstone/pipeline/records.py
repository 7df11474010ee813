"""Read the runs of the pipeline from the ledger, at any time and from any process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import JsonValue

from proofstone.errors import LedgerError
from proofstone.gate.context import read_judgement
from proofstone.gate.models import TASK_EVENTS, CriteriaJudgement, RunOutcome, TaskEvent, TaskRecord
from proofstone.gate.rules.judgements import CRITERIA_GATE
from proofstone.gate.rules.state_machine import GateError, apply_task_event
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, CheckRow, EventRow, MessageRow, OverrideRow, TelemetryRow
from proofstone.ledger.query import RunReference
from proofstone.ledger.schema import RowT, StoredRow
from proofstone.pipeline.journal import PIPELINE_REPORT_EVENT, PIPELINE_STEP_EVENT
from proofstone.pipeline.models.bundle import ChildRun
from proofstone.pipeline.models.run import RunReport
from proofstone.runtime.run_index import CHILD_RUN_EVENT

RecordKind = Literal["run", "plan", "gate"]
_STATELESS_EVENTS: Final = ("run.budget", "run.child", "run.requirements")


@dataclass(frozen=True)
class TaskEventRecord:
    """An event of a task."""

    seq: int
    event: TaskEvent


@dataclass(frozen=True)
class TaskHistory:
    id: str
    record: TaskRecord
    events: tuple[TaskEventRecord, ...]

    def rows_of(self, *kinds: str) -> tuple[int, ...]:
        """Return the rows of these kinds of events; of all events, if no kind is given."""
        return tuple(event.seq for event in self.events if not kinds or event.event.kind in kinds)


@dataclass(frozen=True)
class RunRecord:
    run_id: str
    kind: RecordKind
    iteration: int
    events: list[StoredRow[EventRow]] = field(repr=False)
    checks: list[StoredRow[CheckRow]] = field(repr=False)
    messages: list[StoredRow[MessageRow]] = field(repr=False)
    telemetry: list[StoredRow[TelemetryRow]] = field(repr=False)
    approvals: list[StoredRow[ApprovalRow]] = field(repr=False)
    overrides: list[StoredRow[OverrideRow]] = field(repr=False)

    @classmethod
    def read(cls, ledger: Ledger, run_id: str, kind: RecordKind, iteration: int = 1) -> RunRecord:
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

    def events_of_type(self, type: str) -> Iterator[tuple[int, Mapping[str, JsonValue]]]:
        """Yield the row and the payload of each event of this type."""
        return ((event.seq, event.row.payload) for event in self.events if event.row.type == type)

    def read_judgements(self) -> tuple[CriteriaJudgement, ...]:
        """Return what people have said about criteria that no check shows."""
        return tuple(read_judgement(stored) for stored in self.approvals if stored.row.gate == CRITERIA_GATE)

    @property
    def last_rows(self) -> list[tuple[int, str]]:
        """The last row of each table, with its hash."""
        return [
            *_last_row(self.events),
            *_last_row(self.checks),
            *_last_row(self.messages),
            *_last_row(self.telemetry),
            *_last_row(self.approvals),
            *_last_row(self.overrides),
        ]

    @property
    def stages(self) -> list[StoredRow[EventRow]]:
        """The events of the run as a whole. A raised budget and a started part do not change the state of the run."""
        return [
            event
            for event in self.events
            if event.row.type.startswith("run.") and event.row.type not in _STATELESS_EVENTS
        ]

    @property
    def outcome(self) -> RunOutcome | None:
        """None if the run has not ended, or was resumed."""
        last = self.stages[-1].row
        return RunOutcome(str(last.payload["outcome"])) if last.type == "run.finished" else None

    @property
    def reason(self) -> str:
        return str(self.stages[-1].row.payload.get("reason", ""))

    def build_tasks(self) -> tuple[TaskHistory, ...]:
        """Return the tasks that have events, in the order of their starts."""
        by_task: dict[str, list[TaskEventRecord]] = {}
        for stored in self.events:
            if stored.row.task_id is not None and stored.row.type.startswith("task."):
                event = TASK_EVENTS.validate_python(stored.row.payload["event"])
                by_task.setdefault(stored.row.task_id, []).append(TaskEventRecord(stored.seq, event))
        return tuple(self._replay(id, events) for id, events in by_task.items())

    def _replay(self, id: str, events: list[TaskEventRecord]) -> TaskHistory:
        # A checkpoint has no attempts, and no other task is blocked or confirmed before it was started.
        record = TaskRecord(id=id, checkpoint=events[0].event.kind in ("confirmed", "blocked"))
        for event in events:
            try:
                record = apply_task_event(record, event.event)
            except GateError as error:
                raise LedgerError(f"run {self.run_id}: row {event.seq} of the ledger is impossible: {error}") from error
        return TaskHistory(id, record, tuple(events))


def _last_row(table: list[StoredRow[RowT]]) -> list[tuple[int, str]]:
    return [(stored.seq, stored.link.hash) for stored in table[-1:]]


BUNDLED_COMMANDS: Final = ("run", "gate")
"""The commands whose runs have a bundle."""


def read_children(ledger: Ledger, run_id: str) -> tuple[ChildRun, ...]:
    """Return the child runs in the order of their starts; each once, even if it was resumed."""
    by_id: dict[str, ChildRun] = {}
    for stored in ledger.read(EventRow, run_id=run_id, type=CHILD_RUN_EVENT):
        child = ChildRun.model_validate({**stored.row.payload, "rows": (stored.seq,)})
        by_id.setdefault(child.run_id, child)
    return tuple(by_id.values())


def read_report_row(ledger: Ledger, run_id: str) -> tuple[RunReport, int] | None:
    """Return the report of a run and its row, if there is one. A run that was resumed since has no report yet."""
    for stored in ledger.read(EventRow, run_id=run_id, type=PIPELINE_REPORT_EVENT, newest=True, limit=1):
        if ledger.read(EventRow, run_id=run_id, type=PIPELINE_STEP_EVENT, after=stored.seq, limit=1):
            return None
        return _apply_answer(ledger, RunReport.model_validate(stored.row.payload["report"]), stored.seq), stored.seq
    return None


def _apply_answer(ledger: Ledger, report: RunReport, seq: int) -> RunReport:
    """Update the report: if the user has answered since, the run only waits to be resumed."""
    if report.waiting is None:
        return report
    for stored in ledger.read(
        ApprovalRow, run_id=report.run_id, gate=report.waiting.gate_id, after=seq, newest=True, limit=1
    ):
        update = {
            "waiting": None,
            "reason": f"{stored.row.gate}: {stored.row.option}, by {stored.row.decided_by}; not resumed yet",
            "next_step": f"proofstone resume {report.run_id}",
        }
        return report.model_copy(update=update)
    return report


def read_run_report(ledger: Ledger, run_id: str) -> RunReport | None:
    result = read_report_row(ledger, run_id)
    return result[0] if result else None


def list_bundled_runs(ledger: Ledger) -> list[RunReference]:
    """Return the runs that can have a bundle, newest first. Child runs come last: they can be named, but `last` means a
    run that a user has started.
    """
    started = [row for row in reversed(ledger.read(EventRow, type="run.started")) if _has_bundle(row)]
    return [_to_reference(row) for row in sorted(started, key=_is_part)]


def _has_bundle(started: StoredRow[EventRow]) -> bool:
    return started.row.payload.get("command") in BUNDLED_COMMANDS


def _is_part(started: StoredRow[EventRow]) -> bool:
    return bool(started.row.payload.get("parent"))


def _to_reference(started: StoredRow[EventRow]) -> RunReference:
    payload = started.row.payload
    return RunReference(started.row.run_id, str(payload["command"]), str(payload["repository"]))
