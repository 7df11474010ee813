"""The auditor's report: every detection, over one run or all runs.

The detections in this module tell whether the work converges: drift, thrashing, and bad ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.models import Envelope
from proofstone.agents.rules.tool_rules import shorten_text
from proofstone.auditor.models import (
    AuditFinding,
    AuditPeriod,
    AuditReport,
    ConvergenceHealth,
    Detection,
    TaskTrend,
    ToolHealth,
)
from proofstone.auditor.rules.detections import (
    MAX_NAME,
    ObservedEvent,
    ObservedRun,
    find_boundary_violations,
    find_claim_mismatches,
    find_silent_roles,
    nested_object,
    number_field,
    task_of,
    text_field,
)

DRIFT_AT: Final = 5
"""The number of corrections of one task that counts as drift."""
ATTEMPTS_AT: Final = 3
"""The number of failed attempts of one task that is reported."""
THRASHING_AT: Final = 2
"""How often the symmetry may be broken without D falling before that is reported."""
BAD_OUTCOMES: Final = frozenset(("budget_exhausted", "halted", "abandoned"))
GIVEN_UP_STATUSES: Final = frozenset(("abandoned", "partial"))
"""The results of the control loop without success; a `partial` result leaves something usable."""


def find_drift(run: ObservedRun) -> Iterator[AuditFinding]:
    for task, signals in _group_corrections(run):
        if len(signals) >= DRIFT_AT:
            role, detail = signals[-1].recipient, f"corrected {len(signals)} times"
            yield run.make_finding(Detection.DRIFT, "corrections", signals, role=role, detail=detail, task=task)


def find_convergence_failures(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _find_bad_ends(run)
    yield from _find_failed_attempts(run)


def find_thrashing(run: ObservedRun) -> Iterator[AuditFinding]:
    for directives in _group_directives(run).values():
        for streak in _find_streaks(directives):
            if len(streak) >= THRASHING_AT:
                start = _read_distance(streak[0])
                detail = f"the symmetry was broken {len(streak)} times and D did not fall below {start:g}"
                yield run.make_finding(
                    Detection.THRASHING, "break_symmetry", streak, role=streak[-1].sender, detail=detail
                )


def compute_trends(run: ObservedRun) -> Iterator[TaskTrend]:
    corrected: dict[str | None, int] = defaultdict(int)
    for task, signals in _group_corrections(run):
        corrected[task] += len(signals)
    directives = _group_directives(run)
    for task in dict.fromkeys((*corrected, *directives)):
        distances = _read_distances(run, directives.get(task, ()))
        yield TaskTrend(run_id=run.run_id, task=task, corrections=corrected[task], distances=distances)


def _group_corrections(run: ObservedRun) -> Iterator[tuple[str | None, list[Envelope]]]:
    """Group the corrections by task, including its subtasks; corrections without a task are grouped by role."""
    groups: dict[tuple[str | None, str], list[Envelope]] = defaultdict(list)
    for message in run.messages_of("CorrectionSignal", "Repair"):
        task = task_of(message)
        groups[(None, message.recipient) if task is None else (run.parent_task(task), "")].append(message)
    return ((task, signals) for (task, _), signals in groups.items())


def _group_directives(run: ObservedRun) -> dict[str | None, list[Envelope]]:
    """Group the directives by task. Directives that do not state the distance D are ignored."""
    groups: dict[str | None, list[Envelope]] = defaultdict(list)
    for message in run.messages_of("PlanDirective"):
        if number_field(nested_object(message.payload, "loss"), "D") is not None:
            groups[task_of(message)].append(message)
    return groups


def _find_streaks(directives: Iterable[Envelope]) -> Iterator[list[Envelope]]:
    """Yield sequences of directives that break the symmetry, as long as D does not fall below that of the first one."""
    streak: list[Envelope] = []
    for directive in directives:
        if streak and _read_distance(directive) < _read_distance(streak[0]):
            yield streak
            streak = []
        if text_field(directive.payload, "directive") == "break_symmetry":
            streak.append(directive)
    yield streak


def _read_distance(directive: Envelope) -> float:
    return number_field(nested_object(directive.payload, "loss"), "D") or 0.0


def _read_distances(run: ObservedRun, directives: Sequence[Envelope]) -> tuple[float, ...]:
    """Return the distances of one task, round by round. An accepted round has no directive, only a result."""
    if not directives:
        return ()
    task = task_of(directives[0])
    results = (message for message in run.messages_of("FinalResult") if task_of(message) == task)
    accepted = [result for result in results if text_field(result.payload, "status") == "accepted"]
    return tuple(_read_distance(message) for message in (*directives, *accepted[-1:]))


def _find_bad_ends(run: ObservedRun) -> Iterator[AuditFinding]:
    """Yield bad ends. A run that was resumed after its end has not ended."""
    for event in list(run.events_of("run.finished", "run.resumed"))[-1:]:
        outcome, reason = text_field(event.row.payload, "outcome"), text_field(event.row.payload, "reason")
        if outcome in BAD_OUTCOMES:
            detail = f"the run ended {outcome}" + (f": {reason}" if reason else "")
            yield run.make_finding(Detection.CONVERGENCE_FAILURE, outcome, [event], role="engine", detail=detail)
    directives = _group_directives(run)
    for message in run.messages_of("FinalResult"):
        if (status := text_field(message.payload, "status")) in GIVEN_UP_STATUSES:
            course = _describe_distances(_read_distances(run, directives.get(task_of(message), ())))
            detail = f"it was given up{course}: {text_field(message.payload, 'summary') or 'no reason was given'}"
            yield run.make_finding(Detection.CONVERGENCE_FAILURE, status, [message], role=message.sender, detail=detail)


def _describe_distances(distances: Sequence[float]) -> str:
    if len(distances) < 2:
        return ""
    trend = "fell" if distances[-1] < distances[0] else "did not fall"
    return (
        f" after {len(distances)} rounds in which D {trend} ({' → '.join(f'{distance:g}' for distance in distances)})"
    )


def _find_failed_attempts(run: ObservedRun) -> Iterator[AuditFinding]:
    failures: dict[str | None, list[ObservedEvent]] = defaultdict(list)
    for event in run.events_of("task.failed"):
        failures[event.row.task_id].append(event)
    for events in failures.values():
        if len(events) >= ATTEMPTS_AT:
            last = text_field(nested_object(events[-1].row.payload, "event", "failure"), "error")
            detail = f"{len(events)} attempts failed, the last one with: {last}"
            yield run.make_finding(Detection.CONVERGENCE_FAILURE, "attempts", events, role="executor", detail=detail)


DETECTIONS: Final[tuple[Callable[[ObservedRun], Iterator[AuditFinding]], ...]] = (
    find_boundary_violations,
    find_drift,
    find_convergence_failures,
    find_thrashing,
    find_silent_roles,
    find_claim_mismatches,
)

SEVERE_DETECTIONS: Final = frozenset((Detection.BOUNDARY_VIOLATION, Detection.CLAIM_MISMATCH))
"""Findings about what somebody did and must not do; the other kinds are about work that goes badly."""


def audit_runs(runs: Iterable[ObservedRun], scope: str) -> AuditReport:
    """Audit the runs. `scope` is the requested run, or `all`. Runs are read one after the other and not kept."""
    state = _Audit()
    for run in runs:
        state.take_in(run)
    return AuditReport(
        report_id=f"audit-{scope}-{state.last}",
        period=AuditPeriod(start=state.start, end=state.end, runs=state.runs),
        tasks_observed=state.tasks,
        boundary_violations=state.of(Detection.BOUNDARY_VIOLATION),
        convergence_health=ConvergenceHealth(
            avg_corrections=round(sum(trend.corrections for trend in state.trends) / max(state.tasks, 1), 3),
            trends=tuple(state.trends),
        ),
        drift_alerts=state.of(Detection.DRIFT),
        anomalies=state.of(
            Detection.CONVERGENCE_FAILURE, Detection.THRASHING, Detection.SILENT_ROLE, Detection.CLAIM_MISMATCH
        ),
        tool_health={name: ToolHealth(**counts) for name, counts in sorted(state.tools.items())},
    )


def list_findings(report: AuditReport) -> tuple[AuditFinding, ...]:
    """Return all findings of the report, the most serious kinds first."""
    return (*report.boundary_violations, *report.anomalies, *report.drift_alerts)


def has_severe_findings(report: AuditReport) -> bool:
    return any(finding.kind in SEVERE_DETECTIONS for finding in (*report.boundary_violations, *report.anomalies))


@dataclass
class _Audit:
    """The results of the audit so far."""

    runs: int = 0
    tasks: int = 0
    last: int = 0
    start: str = ""
    end: str = ""
    findings: list[AuditFinding] = field(default_factory=list)
    trends: list[TaskTrend] = field(default_factory=list)
    tools: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))

    def take_in(self, run: ObservedRun) -> None:
        self.runs += 1
        self.tasks += len(run.tasks)
        self.findings += (finding for detect in DETECTIONS for finding in detect(run))
        self.trends += compute_trends(run)
        self._count_tools(run)
        self._extend_period(run)

    def of(self, *kinds: Detection) -> tuple[AuditFinding, ...]:
        """Return the findings of these kinds, in the order of the ledger."""
        selected = (finding for finding in self.findings if finding.kind in kinds)
        return tuple(sorted(selected, key=lambda finding: finding.seqs))

    def _count_tools(self, run: ObservedRun) -> None:
        for message in run.messages_of("ToolResult"):
            result = nested_object(message.payload, "result")
            counts = self.tools[shorten_text(text_field(result, "name"), MAX_NAME)]
            counts["calls"] += 1
            counts["refusals"] += result.get("refused") is not None
            counts["errors"] += result.get("refused") is None and result.get("ok") is False

    def _extend_period(self, run: ObservedRun) -> None:
        times = [(message.seq, message.timestamp) for message in run.envelopes] + [
            (event.seq, event.at) for event in run.events
        ]
        if not times:
            return
        (_, start), (last, end) = min(times), max(times)
        self.start = min(self.start or start, start)
        self.end = max(self.end, end)
        self.last = max(self.last, last)
