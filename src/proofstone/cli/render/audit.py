"""The auditor's report as a person reads it: what was overstepped first, then what goes badly, then the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proofstone.auditor.models import AuditFinding, AuditReport, ToolHealth
from proofstone.common.text import counted, printable

if TYPE_CHECKING:
    from rich.console import Console


_MOST = 20
"""Of one kind; the rest is counted, and in --json."""
_ROWS = 8
_NAME = 40


def print_audit(console: Console, report: AuditReport) -> None:
    _findings(console, "boundary violations", report.boundary_violations, "red")
    _findings(console, "anomalies", report.anomalies, "yellow")
    _findings(console, "drift", report.drift_alerts, "yellow")
    _trends(console, report)
    _tools(console, report)
    period, health = report.period, report.convergence_health
    found = len(report.boundary_violations) + len(report.anomalies) + len(report.drift_alerts)
    console.print(f"{counted(found, 'finding')}", style="bold red" if found else "bold green", end="")
    console.print(
        f"  {counted(period.runs, 'run')}, {counted(report.tasks_observed, 'task')}, "
        f"{health.avg_corrections:g} corrections a task; {period.start} to {period.end}",
        soft_wrap=True,
    )
    console.print(printable(f"  {report.report_id}"), style="dim", soft_wrap=True)


def _findings(console: Console, title: str, findings: tuple[AuditFinding, ...], style: str) -> None:
    if not findings:
        return
    console.print(f"{title}:", style="bold")
    for finding in findings[:_MOST]:
        where = " ".join(part for part in (finding.run_id, finding.task, finding.role) if part)
        console.print(printable(f"  {finding.kind} {finding.rule}  {where}"), style=style, soft_wrap=True)
        console.print(f"    {printable(finding.detail)}", soft_wrap=True)
        rows = ", ".join(map(str, finding.seqs[:_ROWS])) + (" …" if len(finding.seqs) > _ROWS else "")
        console.print(f"    rows {rows}", style="dim", soft_wrap=True)
    if len(findings) > _MOST:
        console.print(f"  … and {len(findings) - _MOST} more", style="dim")
    console.print()


def _trends(console: Console, report: AuditReport) -> None:
    falling = [trend for trend in report.convergence_health.trends if trend.distances]
    if not falling:
        return
    console.print("distance from what was asked for, round by round:", style="bold")
    for trend in falling[:_MOST]:
        rounds = " → ".join(f"{distance:g}" for distance in trend.distances)
        console.print(printable(f"  {trend.task or trend.run_id}  {rounds}"), soft_wrap=True)
    console.print()


def _tools(console: Console, report: AuditReport) -> None:
    if not report.tool_health:
        return
    # Those that were carried out first: an agent can call by any number of names.
    used = sorted(report.tool_health.items(), key=lambda one: (one[1].calls == one[1].refusals, one[0]))
    rows = [(_column(name), health) for name, health in used[:_MOST]]
    width = max(4, *(len(name) for name, _ in rows))
    console.print(f"{'tool':<{width}}  calls  errors  refused", style="dim")
    for name, health in rows:
        console.print(f"{name:<{width}}  {_counts(health)}", soft_wrap=True)
    if len(used) > _MOST:
        console.print(f"… and {len(used) - _MOST} more", style="dim")
    console.print()


def _column(name: str) -> str:
    shown = printable(name).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= _NAME else f"{shown[:_NAME]}…"


def _counts(health: ToolHealth) -> str:
    return f"{health.calls:>5}  {health.errors:>6}  {health.refusals:>7}"
