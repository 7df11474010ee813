"""The auditor's report at the end of a run of the task gate or of the control loop."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from proofstone.app.context import ensure_private_home, open_writable_ledger
from proofstone.auditor.delivery import send_audit_report
from proofstone.auditor.models import AuditFinding
from proofstone.auditor.rules.report import list_findings
from proofstone.gate.models import GateReport
from proofstone.solve.models import SolveReport

ReportT = TypeVar("ReportT", GateReport, SolveReport)


def audit_ended_run(report: ReportT, home: Path | None = None) -> tuple[ReportT, tuple[AuditFinding, ...]]:
    """Send the auditor's report about the run to the person. Return the report of the run with the findings, and the
    findings.
    """
    with open_writable_ledger(ensure_private_home(home)) as ledger:
        findings = list_findings(send_audit_report(ledger, report.run_id))
    audit = tuple(finding.model_dump(mode="json") for finding in findings)
    return report.model_copy(update={"audit": audit}), findings
