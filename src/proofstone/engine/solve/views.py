"""Runs of the control loop as the ledger tells them, at any time and from any process."""

from __future__ import annotations

from proofstone.adapters.ledger import Ledger
from proofstone.contracts.rows import EventRow
from proofstone.contracts.solve.report import SolveReport
from proofstone.engine.solve.journal import REPORT, STEP


def last_report(ledger: Ledger, run_id: str) -> SolveReport | None:
    """What came of a run, as far as it came to that. A question that was answered since is none any more."""
    for stored in ledger.read(EventRow, run_id=run_id, type=REPORT, newest=True, limit=1):
        went_on = ledger.read(EventRow, run_id=run_id, type=STEP, after=stored.seq, limit=1)
        return None if went_on else SolveReport.model_validate(stored.row.payload["report"])
    return None
