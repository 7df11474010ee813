"""Runs of the plan gate as the ledger tells them, at any time and from any process."""

from __future__ import annotations

from proofstone.adapters.ledger import Ledger
from proofstone.contracts.plan_gate.record import ConvergenceStatus
from proofstone.contracts.plan_gate.report import PlanReport
from proofstone.contracts.plan_gate.setup import PlanGateSetup
from proofstone.contracts.rows import ApprovalRow, EventRow
from proofstone.core.plan_gate.admission import Judged, Mitigated, NotAdmitted, why_not_admitted
from proofstone.core.plan_gate.mitigations import to_take_in
from proofstone.engine.begun import setups_of
from proofstone.engine.plan_gate.journal import GATE, MITIGATED, REPORT
from proofstone.errors import InputError


def last_report(ledger: Ledger, run_id: str) -> PlanReport | None:
    """What came of a run, as far as it came to that. A question that was answered since is none any more."""
    for stored in ledger.read(EventRow, run_id=run_id, type=REPORT, newest=True, limit=1):
        answered = ledger.read(ApprovalRow, run_id=run_id, gate=GATE, after=stored.seq, limit=1)
        return None if answered else PlanReport.model_validate(stored.row.payload["report"])
    return None


def report_of_run(ledger: Ledger, run_id: str) -> PlanReport:
    report = last_report(ledger, run_id)
    if report is None:
        raise InputError(
            f"{run_id}: has no verdict yet, and asks nothing",
            hint=f"`proofstone verify-plan --resume {run_id}` goes on",
        )
    return report


def why_not_verified(ledger: Ledger, digest: str, repository: str) -> NotAdmitted | None:
    """Why the plan with that digest may not be implemented in that repository; None if it may. What was said of the
    same words in another repository is about other files."""
    here = {run_id for run_id, setup in setups_of(ledger, PlanGateSetup).items() if setup.repository == repository}
    judged = []
    for stored in ledger.read(EventRow, type=REPORT):
        if stored.row.run_id not in here:
            continue
        report = PlanReport.model_validate(stored.row.payload["report"])
        judged.append(
            Judged(
                run_id=report.run_id,
                digest=report.plan_digest,
                verdict=report.verdict,
                mitigations=bool(to_take_in(report.challenges)),
                alone=not report.agents,
                forced=report.status is ConvergenceStatus.FORCED_EXIT,
            )
        )
    mitigated = [
        Mitigated(one.row.run_id, str(one.row.payload["digest"])) for one in ledger.read(EventRow, type=MITIGATED)
    ]
    return why_not_admitted(digest, judged, mitigated)
