"""Runs of the control loop as the ledger tells them, at any time and from any process."""

from __future__ import annotations

from dataclasses import dataclass

from assay.adapters.ledger import Ledger
from assay.contracts.rows import EventRow
from assay.contracts.solve.report import SolveReport
from assay.contracts.solve.setup import SolveSetup
from assay.engine.solve.journal import REPORT, STEP


def setups(ledger: Ledger) -> dict[str, SolveSetup]:
    """What every run of the control loop was started with, newest first."""
    started = [one.row for one in ledger.read(EventRow, type="run.started")]
    ours = [row for row in started if row.payload.get("command") == "solve"]
    return {row.run_id: SolveSetup.model_validate(row.payload) for row in reversed(ours)}


@dataclass(frozen=True)
class SolveRunView:
    """A run of the control loop in one line."""

    run_id: str
    setup: SolveSetup
    state: str
    """How it ended, or why it has not: `waiting`, `running`, `interrupted`, `budget_exhausted`."""
    reason: str
    started_at: str
    updated_at: str


def view_of(ledger: Ledger, run_id: str, setup: SolveSetup, *, running: bool) -> SolveRunView:
    events = [one for one in ledger.read(EventRow, run_id=run_id) if one.row.type.startswith("run.")]
    last = events[-1]
    outcome, reason = (str(last.row.payload.get(key, "")) for key in ("outcome", "reason"))
    report = last_report(ledger, run_id)
    state = "running" if running else outcome or "interrupted"
    if report is not None and not running:
        state = report.result.status if report.result else "waiting"
    return SolveRunView(run_id, setup, state, reason, events[0].ts, last.ts)


def last_report(ledger: Ledger, run_id: str) -> SolveReport | None:
    """What came of a run, as far as it came to that. A question that was answered since is none any more."""
    for stored in ledger.read(EventRow, run_id=run_id, type=REPORT, newest=True, limit=1):
        went_on = ledger.read(EventRow, run_id=run_id, type=STEP, after=stored.seq, limit=1)
        return None if went_on else SolveReport.model_validate(stored.row.payload["report"])
    return None
