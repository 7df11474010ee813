"""The auditor's access to the ledger: all messages and events of a run and of its parts. It only reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from proofstone.agents.bus import to_envelope
from proofstone.agents.models import Envelope
from proofstone.auditor.models import AuditReport
from proofstone.auditor.rules.detections import ObservedEvent, ObservedRun
from proofstone.auditor.rules.report import audit_runs
from proofstone.ledger import Ledger, read_rows
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.runtime.run_index import CHILD_RUN_EVENT


def audit_run_with_parts(ledger: Ledger, run_id: str) -> AuditReport:
    """Audit a run and its parts: the plan gates and the task gates of a pipeline."""
    last_seq = ledger.head().seq
    return audit_runs((_read_run(ledger, part, last_seq) for part in list_parts(ledger, run_id)), run_id)


def list_parts(ledger: Ledger, run_id: str) -> tuple[str, ...]:
    """Return the run and its parts, in the order in which they began."""
    children = ledger.read(EventRow, run_id=run_id, type=CHILD_RUN_EVENT)
    return tuple(dict.fromkeys((run_id, *(str(child.row.payload["run_id"]) for child in children))))


def _read_run(ledger: Ledger, run_id: str, last_seq: int) -> ObservedRun:
    return ObservedRun(
        run_id, tuple(_read_messages(ledger, run_id, last_seq)), tuple(_read_events(ledger, run_id, last_seq))
    )


def _read_messages(ledger: Ledger, run_id: str, last_seq: int) -> Iterator[Envelope]:
    return (to_envelope(stored) for stored in read_rows(ledger, MessageRow, last_seq, run_id=run_id))


def _read_events(ledger: Ledger, run_id: str, last_seq: int) -> Iterator[ObservedEvent]:
    for stored in read_rows(ledger, EventRow, last_seq, run_id=run_id):
        yield ObservedEvent(stored.seq, stored.ts, stored.row)


class LedgerTap:
    """The ledger over a read-only connection of its own."""

    def __init__(self, path: Path) -> None:
        self._ledger = SqliteLedger(path, "read")
        self._last_seq = self._ledger.head().seq
        """The last row of this audit; later rows belong to the next one."""

    def read_run(self, run_id: str) -> ObservedRun:
        return _read_run(self._ledger, run_id, self._last_seq)

    def find_whole_run(self, run_id: str) -> str:
        """Return the run that this one is a part of, or the run itself."""
        for started in self._ledger.read(EventRow, run_id=run_id, type="run.started", limit=1):
            return str(started.row.payload.get("parent") or run_id)
        return run_id

    def read_with_parts(self, run_id: str) -> Iterator[ObservedRun]:
        """Yield the run, and then its parts."""
        return (self.read_run(part) for part in list_parts(self._ledger, run_id))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.close()
