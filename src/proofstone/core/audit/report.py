"""The auditor's report: every detection, over one run or all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from proofstone.contracts.audit import (
    AuditFinding,
    AuditReport,
    ConvergenceHealth,
    Detection,
    Period,
    ToolHealth,
    Trend,
)
from proofstone.core.agent.tool_rules import shortened
from proofstone.core.audit.answers import silent_roles
from proofstone.core.audit.boundaries import boundary_violations
from proofstone.core.audit.claims import claim_mismatches
from proofstone.core.audit.convergence import convergence_failures, drift, thrashing, trends
from proofstone.core.audit.observed import NAME, ObservedRun, part, text

DETECTIONS: Final[tuple[Callable[[ObservedRun], Iterator[AuditFinding]], ...]] = (
    boundary_violations,
    drift,
    convergence_failures,
    thrashing,
    silent_roles,
    claim_mismatches,
)

GRAVE: Final = frozenset((Detection.BOUNDARY_VIOLATION, Detection.CLAIM_MISMATCH))
"""What somebody did that they must not; the rest is work that goes badly."""


def audit(runs: Iterable[ObservedRun], scope: str) -> AuditReport:
    """`scope`: the run that was asked about, or `all`. Runs are looked at one after the other and not kept."""
    seen = _Seen()
    for run in runs:
        seen.take_in(run)
    return AuditReport(
        report_id=f"audit-{scope}-{seen.last}",
        period=Period(start=seen.start, end=seen.end, runs=seen.runs),
        tasks_observed=seen.tasks,
        boundary_violations=seen.of(Detection.BOUNDARY_VIOLATION),
        convergence_health=ConvergenceHealth(
            avg_corrections=round(sum(trend.corrections for trend in seen.trends) / max(seen.tasks, 1), 3),
            trends=tuple(seen.trends),
        ),
        drift_alerts=seen.of(Detection.DRIFT),
        anomalies=seen.of(
            Detection.CONVERGENCE_FAILURE, Detection.THRASHING, Detection.SILENT_ROLE, Detection.CLAIM_MISMATCH
        ),
        tool_health={name: ToolHealth(**counts) for name, counts in sorted(seen.tools.items())},
    )


def is_grave(report: AuditReport) -> bool:
    return any(finding.kind in GRAVE for finding in (*report.boundary_violations, *report.anomalies))


@dataclass
class _Seen:
    """What has been seen so far."""

    runs: int = 0
    tasks: int = 0
    last: int = 0
    start: str = ""
    end: str = ""
    findings: list[AuditFinding] = field(default_factory=list)
    trends: list[Trend] = field(default_factory=list)
    tools: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))

    def take_in(self, run: ObservedRun) -> None:
        self.runs += 1
        self.tasks += len(run.tasks)
        self.findings += (finding for detect in DETECTIONS for finding in detect(run))
        self.trends += trends(run)
        self._tools(run)
        self._period(run)

    def of(self, *kinds: Detection) -> tuple[AuditFinding, ...]:
        """In the order of the ledger."""
        found = (finding for finding in self.findings if finding.kind in kinds)
        return tuple(sorted(found, key=lambda finding: finding.seqs))

    def _tools(self, run: ObservedRun) -> None:
        for said in run.said("ToolResult"):
            result = part(said.payload, "result")
            counts = self.tools[shortened(text(result, "name"), NAME)]
            counts["calls"] += 1
            counts["refusals"] += result.get("refused") is not None
            counts["errors"] += result.get("refused") is None and result.get("ok") is False

    def _period(self, run: ObservedRun) -> None:
        times = [(said.seq, said.timestamp) for said in run.envelopes] + [(one.seq, one.at) for one in run.events]
        if not times:
            return
        (_, start), (last, end) = min(times), max(times)
        self.start = min(self.start or start, start)
        self.end = max(self.end, end)
        self.last = max(self.last, last)
