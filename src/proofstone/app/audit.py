"""The auditor's report at the end of a run of the task gate or of the control loop."""

from __future__ import annotations

from pathlib import Path

from proofstone.app.context import ensure_private_home, open_writable_ledger
from proofstone.auditor.delivery import send_audit_report
from proofstone.auditor.models import AuditFinding
from proofstone.auditor.rules.report import list_findings


def audit_ended_run(run_id: str, home: Path | None = None) -> tuple[AuditFinding, ...]:
    """Send the auditor's report about the run to the person, and return its findings."""
    with open_writable_ledger(ensure_private_home(home)) as ledger:
        return list_findings(send_audit_report(ledger, run_id))
