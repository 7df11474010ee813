"""The auditor's report to the user. The auditor instructs no agent, and no agent instructs it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from proofstone.common.models import FrozenModel


class Detection(StrEnum):
    BOUNDARY_VIOLATION = "boundary_violation"
    """An agent tried something that its role may not do, or did it."""
    DRIFT = "drift"
    """A task needed one correction after another."""
    CONVERGENCE_FAILURE = "convergence_failure"
    """A run or a task did not reach a good end."""
    THRASHING = "thrashing"
    """The approach was replaced again and again, and the result did not get closer to the goal."""
    SILENT_ROLE = "silent_role"
    """A role received a request and never answered."""
    CLAIM_MISMATCH = "claim_mismatch"
    """The claim of an agent contradicts what the engine observed."""


class AuditFinding(FrozenModel):
    """A finding of the auditor, with the rows that show it."""

    kind: Detection
    rule: str
    """The exact rule within the kind: `off-route`, `secret`, `attempts`."""
    run_id: str
    task: str | None = None
    role: str
    detail: str
    seqs: tuple[int, ...]
    """The sequence numbers of the ledger rows that show the finding."""
    messages: tuple[str, ...] = ()
    """The ids of those rows that are messages."""
    caught: str = ""
    """How the engine stopped it; empty if nothing did."""


class AuditPeriod(FrozenModel):
    """The period of the audit, from the first row to the last; the times are empty if there are no rows."""

    start: str = ""
    end: str = ""
    runs: int = 0


class TaskTrend(FrozenModel):
    """How a task developed. Only tasks that were corrected or replanned have a trend."""

    run_id: str
    task: str | None
    corrections: int
    distances: tuple[float, ...] = ()
    """D of each round: the distance of the result from the goal."""


class ConvergenceHealth(FrozenModel):
    avg_corrections: float
    """The average per observed task."""
    trends: tuple[TaskTrend, ...]


class ToolHealth(FrozenModel):
    calls: int = 0
    errors: int = 0
    """The calls that were executed and failed."""
    refusals: int = 0
    """The calls that were not executed."""


class AuditReport(FrozenModel):
    report_id: str
    """Derived from the audited rows: the same rows give the same report."""
    period: AuditPeriod
    tasks_observed: int
    boundary_violations: tuple[AuditFinding, ...]
    convergence_health: ConvergenceHealth
    drift_alerts: tuple[AuditFinding, ...]
    anomalies: tuple[AuditFinding, ...]
    tool_health: Mapping[str, ToolHealth]
