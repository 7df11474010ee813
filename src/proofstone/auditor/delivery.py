"""Send the auditor's report to the person when a run has ended. The engine sends it; the auditor only reads."""

from __future__ import annotations

from proofstone.agents.bus import MessageBus
from proofstone.auditor.models import AuditReport
from proofstone.auditor.tap import audit_run_with_parts
from proofstone.ledger import Ledger


def send_audit_report(ledger: Ledger, run_id: str) -> AuditReport:
    """Audit the run with its parts, put the report on the bus, and return it."""
    report = audit_run_with_parts(ledger, run_id)
    payload = report.model_dump(mode="json")
    MessageBus(ledger, run_id).publish("auditor", "person", "AuditReport", payload, message_id=report.report_id)
    return report
