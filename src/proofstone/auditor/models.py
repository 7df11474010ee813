"""What the auditor reports to the person. It instructs nobody, and nobody instructs it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from proofstone.common.models import Contract


class Detection(StrEnum):
    BOUNDARY_VIOLATION = "boundary_violation"
    """Somebody tried what they may not, or did it."""
    DRIFT = "drift"
    """A task needed correction after correction."""
    CONVERGENCE_FAILURE = "convergence_failure"
    """It came to no good end."""
    THRASHING = "thrashing"
    """The approach was thrown over again and again, and the result came no nearer."""
    SILENT_ROLE = "silent_role"
    """Somebody was asked and never answered."""
    CLAIM_MISMATCH = "claim_mismatch"
    """What an agent claimed is not what the engine saw."""


class AuditFinding(Contract):
    """One thing that was detected, and the rows that show it."""

    kind: Detection
    rule: str
    """What exactly of the kind: `off-route`, `secret`, `attempts`."""
    run_id: str
    task: str | None = None
    role: str
    detail: str
    seqs: tuple[int, ...]
    """Of the ledger's rows."""
    messages: tuple[str, ...] = ()
    """Ids of those rows that are messages."""


class Period(Contract):
    """What was looked at, from the first row to the last; empty times: nothing was there."""

    start: str = ""
    end: str = ""
    runs: int = 0


class Trend(Contract):
    """How one task came along: only tasks that were corrected or planned anew have one."""

    run_id: str
    task: str | None
    corrections: int
    distances: tuple[float, ...] = ()
    """D, round by round: the distance of the result from what was asked for."""


class ConvergenceHealth(Contract):
    avg_corrections: float
    """Per observed task."""
    trends: tuple[Trend, ...]


class ToolHealth(Contract):
    calls: int = 0
    errors: int = 0
    """Carried out, and failed."""
    refusals: int = 0
    """Not carried out."""


class AuditReport(Contract):
    report_id: str
    """Made of what was looked at: the same rows give the same report."""
    period: Period
    tasks_observed: int
    boundary_violations: tuple[AuditFinding, ...]
    convergence_health: ConvergenceHealth
    drift_alerts: tuple[AuditFinding, ...]
    anomalies: tuple[AuditFinding, ...]
    tool_health: Mapping[str, ToolHealth]
