"""Whether the work comes nearer to its end: drift, thrashing, and what came to no good end.

The auditor's report: every detection, over one run or all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.models import Envelope
from proofstone.agents.rules.tool_rules import shortened
from proofstone.auditor.models import AuditFinding, AuditReport, ConvergenceHealth, Detection, Period, ToolHealth, Trend
from proofstone.auditor.rules.detections import (
    NAME,
    Happened,
    ObservedRun,
    boundary_violations,
    claim_mismatches,
    number,
    part,
    silent_roles,
    task_of,
    text,
)

DRIFT_AT: Final = 5
"""Corrections of one task."""
ATTEMPTS_AT: Final = 3
"""Failed attempts of one task."""
THRASHING_AT: Final = 2
"""Times that the symmetry was broken without D falling."""
ENDED_BADLY: Final = frozenset(("budget_exhausted", "halted", "abandoned"))
GIVEN_UP: Final = frozenset(("abandoned", "partial"))
"""Results of the control loop: of the second kind something is left."""


def drift(run: ObservedRun) -> Iterator[AuditFinding]:
    for task, signals in _corrections(run):
        if len(signals) >= DRIFT_AT:
            role, detail = signals[-1].recipient, f"corrected {len(signals)} times"
            yield run.finding(Detection.DRIFT, "corrections", signals, role=role, detail=detail, task=task)


def convergence_failures(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _bad_ends(run)
    yield from _failed_attempts(run)


def thrashing(run: ObservedRun) -> Iterator[AuditFinding]:
    for directives in _directives(run).values():
        for streak in _streaks(directives):
            if len(streak) >= THRASHING_AT:
                detail = (
                    f"the symmetry was broken {len(streak)} times and D did not fall below {_distance(streak[0]):g}"
                )
                yield run.finding(Detection.THRASHING, "break_symmetry", streak, role=streak[-1].sender, detail=detail)


def trends(run: ObservedRun) -> Iterator[Trend]:
    corrected: dict[str | None, int] = defaultdict(int)
    for task, signals in _corrections(run):
        corrected[task] += len(signals)
    directives = _directives(run)
    for task in dict.fromkeys((*corrected, *directives)):
        distances = _distances(run, directives.get(task, ()))
        yield Trend(run_id=run.run_id, task=task, corrections=corrected[task], distances=distances)


def _corrections(run: ObservedRun) -> Iterator[tuple[str | None, list[Envelope]]]:
    """Of one task together, with all its subtasks; where there is no task, of one role."""
    found: dict[tuple[str | None, str], list[Envelope]] = defaultdict(list)
    for said in run.said("CorrectionSignal", "Repair"):
        task = task_of(said)
        found[(None, said.recipient) if task is None else (run.whole(task), "")].append(said)
    return ((task, signals) for (task, _), signals in found.items())


def _directives(run: ObservedRun) -> dict[str | None, list[Envelope]]:
    """By task. Those that do not say how far the result is from what was asked for say nothing here."""
    found: dict[str | None, list[Envelope]] = defaultdict(list)
    for said in run.said("PlanDirective"):
        if number(part(said.payload, "loss"), "D") is not None:
            found[task_of(said)].append(said)
    return found


def _streaks(directives: Iterable[Envelope]) -> Iterator[list[Envelope]]:
    """Directives that break the symmetry, one after the other, as long as D does not fall below that of the first."""
    streak: list[Envelope] = []
    for directive in directives:
        if streak and _distance(directive) < _distance(streak[0]):
            yield streak
            streak = []
        if text(directive.payload, "directive") == "break_symmetry":
            streak.append(directive)
    yield streak


def _distance(directive: Envelope) -> float:
    return number(part(directive.payload, "loss"), "D") or 0.0


def _distances(run: ObservedRun, directives: Sequence[Envelope]) -> tuple[float, ...]:
    """Of one task. A round that is accepted has no directive, only the result."""
    if not directives:
        return ()
    task = task_of(directives[0])
    results = (said for said in run.said("FinalResult") if task_of(said) == task)
    accepted = [result for result in results if text(result.payload, "status") == "accepted"]
    return tuple(_distance(said) for said in (*directives, *accepted[-1:]))


def _bad_ends(run: ObservedRun) -> Iterator[AuditFinding]:
    """A run that was resumed after its end goes on."""
    for event in list(run.happened("run.finished", "run.resumed"))[-1:]:
        outcome, reason = text(event.row.payload, "outcome"), text(event.row.payload, "reason")
        if outcome in ENDED_BADLY:
            detail = f"the run ended {outcome}" + (f": {reason}" if reason else "")
            yield run.finding(Detection.CONVERGENCE_FAILURE, outcome, [event], role="engine", detail=detail)
    directives = _directives(run)
    for said in run.said("FinalResult"):
        if (status := text(said.payload, "status")) in GIVEN_UP:
            how = _how_it_went(_distances(run, directives.get(task_of(said), ())))
            detail = f"it was given up{how}: {text(said.payload, 'summary') or 'nobody says why'}"
            yield run.finding(Detection.CONVERGENCE_FAILURE, status, [said], role=said.sender, detail=detail)


def _how_it_went(distances: Sequence[float]) -> str:
    if len(distances) < 2:
        return ""
    fell = "fell" if distances[-1] < distances[0] else "did not fall"
    return f" after {len(distances)} rounds in which D {fell} ({' → '.join(f'{distance:g}' for distance in distances)})"


def _failed_attempts(run: ObservedRun) -> Iterator[AuditFinding]:
    failed: dict[str | None, list[Happened]] = defaultdict(list)
    for event in run.happened("task.failed"):
        failed[event.row.task_id].append(event)
    for events in failed.values():
        if len(events) >= ATTEMPTS_AT:
            last = text(part(events[-1].row.payload, "event", "failure"), "error")
            detail = f"{len(events)} attempts failed, the last one with: {last}"
            yield run.finding(Detection.CONVERGENCE_FAILURE, "attempts", events, role="executor", detail=detail)


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
        times = [(said.seq, said.timestamp) for said in run.envelopes] + [(event.seq, event.at) for event in run.events]
        if not times:
            return
        (_, start), (last, end) = min(times), max(times)
        self.start = min(self.start or start, start)
        self.end = max(self.end, end)
        self.last = max(self.last, last)
