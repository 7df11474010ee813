"""Runs of the whole pipeline as the ledger tells them, at any time and from any process."""

from __future__ import annotations

from typing import Final

from proofstone.adapters.ledger import Ledger, Stored
from proofstone.adapters.ledger.runs import KnownRun
from proofstone.contracts.pipeline.bundle import Child
from proofstone.contracts.pipeline.run import RunReport
from proofstone.contracts.rows import ApprovalRow, EventRow
from proofstone.engine.begun import CHILD
from proofstone.engine.pipeline.journal import REPORT, STEP

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
    started = [one for one in reversed(ledger.read(EventRow, type="run.started")) if _has_bundle(one)]
    return [_known(one) for one in sorted(started, key=_is_part)]


def _has_bundle(started: Stored[EventRow]) -> bool:
    return started.row.payload.get("command") in BUNDLED


def _is_part(started: Stored[EventRow]) -> bool:
    return bool(started.row.payload.get("parent"))


def _known(started: Stored[EventRow]) -> KnownRun:
    return KnownRun(started.row.run_id, str(started.row.payload["repository"]))
