"""Print the auditor's report: violations first, then anomalies and drift, then the tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proofstone.auditor.models import AuditFinding, AuditReport, ToolHealth
from proofstone.common.text import escape_control, pluralize
from proofstone.documents.markdown import make_visible
from proofstone.plans.fields import shorten_text

if TYPE_CHECKING:
    from rich.console import Console


_MAX_LINES = 20
"""The most lines of one kind; the rest is counted, and --json has all."""
_MAX_ROWS = 8
_MAX_NAME = 40
_MAX_DETAIL = 400


def print_audit(console: Console, report: AuditReport) -> None:
    """Print the whole report."""
    _print_findings(console, "boundary violations", report.boundary_violations, "red")
    _print_findings(console, "anomalies", report.anomalies, "yellow")
    _print_findings(console, "drift", report.drift_alerts, "yellow")
    _print_trends(console, report)
    _print_tools(console, report)
    period, health = report.period, report.convergence_health
    count = len(report.boundary_violations) + len(report.anomalies) + len(report.drift_alerts)
    console.print(f"{pluralize(count, 'finding')}", style="bold red" if count else "bold green", end="")
    console.print(
        f"  {pluralize(period.runs, 'run')}, {pluralize(report.tasks_observed, 'task')}, "
        f"{health.avg_corrections:g} corrections a task; {period.start} to {period.end}",
        soft_wrap=True,
    )
    console.print(escape_control(f"  {report.report_id}"), style="dim", soft_wrap=True)


def format_audit_finding(finding: AuditFinding) -> str:
    """Format a finding as one line, with what became of it."""
    where = " ".join(filter(None, (finding.run_id, finding.task, finding.role)))
    end = f"caught: {finding.caught}" if finding.caught else "not stopped"
    detail = make_visible(shorten_text(finding.detail, _MAX_DETAIL))
    return f"{make_visible(f'{finding.kind} {finding.rule}, {where}')}: {detail} ({make_visible(end)})"


def print_audit_findings(console: Console, findings: Sequence[AuditFinding]) -> None:
    """Print what the auditor found in a run that has ended; nothing if it found nothing."""
    if not findings:
        return
    console.print("\nwhat the auditor found:", style="bold")
    for finding in findings[:_MAX_LINES]:
        console.print(f"  {format_audit_finding(finding)}", soft_wrap=True, markup=False, highlight=False)
    if len(findings) > _MAX_LINES:
        console.print(f"  … and {len(findings) - _MAX_LINES} more: proofstone audit {findings[0].run_id}", style="dim")


def _print_findings(console: Console, title: str, findings: tuple[AuditFinding, ...], style: str) -> None:
    if not findings:
        return
    console.print(f"{title}:", style="bold")
    for finding in findings[:_MAX_LINES]:
        where = " ".join(part for part in (finding.run_id, finding.task, finding.role) if part)
        console.print(escape_control(f"  {finding.kind} {finding.rule}  {where}"), style=style, soft_wrap=True)
        console.print(f"    {escape_control(finding.detail)}", soft_wrap=True)
        if finding.caught:
            console.print(f"    caught: {escape_control(finding.caught)}", style="green", soft_wrap=True)
        rows = ", ".join(map(str, finding.seqs[:_MAX_ROWS])) + (" …" if len(finding.seqs) > _MAX_ROWS else "")
        console.print(f"    rows {rows}", style="dim", soft_wrap=True)
    if len(findings) > _MAX_LINES:
        console.print(f"  … and {len(findings) - _MAX_LINES} more", style="dim")
    console.print()


def _print_trends(console: Console, report: AuditReport) -> None:
    measured = [trend for trend in report.convergence_health.trends if trend.distances]
    if not measured:
        return
    console.print("distance from the goal, round by round:", style="bold")
    for trend in measured[:_MAX_LINES]:
        rounds = " → ".join(f"{distance:g}" for distance in trend.distances)
        console.print(escape_control(f"  {trend.task or trend.run_id}  {rounds}"), soft_wrap=True)
    console.print()


def _print_tools(console: Console, report: AuditReport) -> None:
    if not report.tool_health:
        return
    # Executed tools first: an agent can call any number of tools that do not exist.
    used = sorted(report.tool_health.items(), key=lambda pair: (pair[1].calls == pair[1].refusals, pair[0]))
    rows = [(_shorten_name(name), health) for name, health in used[:_MAX_LINES]]
    width = max(4, *(len(name) for name, _ in rows))
    console.print(f"{'tool':<{width}}  calls  errors  refused", style="dim")
    for name, health in rows:
        console.print(f"{name:<{width}}  {_format_counts(health)}", soft_wrap=True)
    if len(used) > _MAX_LINES:
        console.print(f"… and {len(used) - _MAX_LINES} more", style="dim")
    console.print()


def _shorten_name(name: str) -> str:
    shown = escape_control(name).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= _MAX_NAME else f"{shown[:_MAX_NAME]}…"


def _format_counts(health: ToolHealth) -> str:
    return f"{health.calls:>5}  {health.errors:>6}  {health.refusals:>7}"
