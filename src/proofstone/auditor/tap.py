"""The auditor's access to the ledger: all messages and events, over a read-only connection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from proofstone.agents.bus import to_envelope
from proofstone.agents.models import Envelope
from proofstone.auditor.rules.detections import ObservedEvent, ObservedRun
from proofstone.ledger import read_rows
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.sqlite import SqliteLedger


class LedgerTap:
    def __init__(self, path: Path) -> None:
        self._ledger = SqliteLedger(path, "read")
        self._last_seq = self._ledger.head().seq
        """The last row of this audit; later rows belong to the next one."""

    def read_run(self, run_id: str) -> ObservedRun:
        return ObservedRun(run_id, tuple(self._read_messages(run_id)), tuple(self._read_events(run_id)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.close()

    def _read_messages(self, run_id: str) -> Iterator[Envelope]:
        return (to_envelope(stored) for stored in read_rows(self._ledger, MessageRow, self._last_seq, run_id=run_id))

    def _read_events(self, run_id: str) -> Iterator[ObservedEvent]:
        for stored in read_rows(self._ledger, EventRow, self._last_seq, run_id=run_id):
            yield ObservedEvent(stored.seq, stored.ts, stored.row)
