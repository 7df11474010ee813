"""Runs of the whole pipeline as the ledger tells them, at any time and from any process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.adapters.ledger import Ledger, Stored
from assay.adapters.ledger.runs import KnownRun
from assay.contracts.pipeline.bundle import Child
from assay.contracts.pipeline.run import RunReport, RunSetup
from assay.contracts.rows import EventRow
from assay.engine.pipeline.journal import CHILD, REPORT, STEP

BUNDLED: Final = ("run", "gate")
"""Commands whose runs have a bundle."""


def setups(ledger: Ledger) -> dict[str, RunSetup]:
    """What every run of the pipeline was started with, newest first."""
    started = [one.row for one in ledger.read(EventRow, type="run.started")]
    ours = [row for row in started if row.payload.get("command") == "run"]
    return {row.run_id: RunSetup.model_validate(row.payload) for row in reversed(ours)}


@dataclass(frozen=True)
class PipelineView:
    """A run of the pipeline in one line."""

    run_id: str
    setup: RunSetup
    state: str
    """How it ended, or why it has not: `waiting`, `running`, `interrupted`, `budget_exhausted`."""
    reason: str
    started_at: str
    updated_at: str


def view_of(ledger: Ledger, run_id: str, setup: RunSetup, *, running: bool) -> PipelineView:
    events = [one for one in ledger.read(EventRow, run_id=run_id) if one.row.type.startswith("run.")]
    last = [one for one in events if one.row.type != CHILD][-1]
    outcome, reason = (str(last.row.payload.get(key, "")) for key in ("outcome", "reason"))
    found = reported(ledger, run_id)
    state = "running" if running else outcome or "interrupted"
    if found is not None and not running:
        state = "waiting" if found[0].waiting else found[0].outcome.value
    return PipelineView(run_id, setup, state, reason, events[0].ts, last.ts)


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
        return RunReport.model_validate(stored.row.payload["report"]), stored.seq
    return None


def bundled_runs(ledger: Ledger) -> list[KnownRun]:
    """Runs that a bundle can be made of, newest first. Parts of other runs come behind all of these: they can be named,
    but `last` means a run that a person has started."""
    started = [one for one in reversed(ledger.read(EventRow, type="run.started")) if _has_bundle(one)]
    return [_known(one) for one in sorted(started, key=_is_part)]


def _has_bundle(started: Stored[EventRow]) -> bool:
    return started.row.payload.get("command") in BUNDLED


def _is_part(started: Stored[EventRow]) -> bool:
    return bool(started.row.payload.get("parent"))


def _known(started: Stored[EventRow]) -> KnownRun:
    return KnownRun(started.row.run_id, str(started.row.payload["repository"]))
