"""Print the report of a run of the pipeline, and format the lines that its live view and questions share.

Text of an agent or a person is shortened to one line and cannot control the terminal.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final

from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.rules.budget import summarize_spending
from proofstone.cli.render.audit import format_audit_finding
from proofstone.cli.render.confidence_text import print_confidence
from proofstone.cli.render.gate import OUTCOME_STYLES
from proofstone.cli.render.solve_text import format_seconds, shorten_visibly
from proofstone.common.models import Allowance, Severity
from proofstone.common.text import escape_control, pluralize
from proofstone.documents.markdown import make_visible
from proofstone.gate.models import CriterionStatus, RunOutcome, TaskReport
from proofstone.pipeline.models.run import (
    ApprovalEntry,
    ApprovalOption,
    ApprovalRequest,
    FinalChecks,
    GateSummary,
    KnownIssue,
    PlanGateSummary,
    ReviewerVerdict,
    RunReport,
)
from proofstone.pipeline.rules.approvals import OPTIONS_WITH_NOTE

if TYPE_CHECKING:
    from rich.console import Console


_HASH_LENGTH: Final = 12
_MAX_TEXT: Final = 400


def format_approval(entry: ApprovalEntry) -> str:
    """Describe a decision at an approval gate."""
    how = ", by default" if entry.auto_selected else ", by a person"
    note = f": {shorten_visibly(entry.user_response_raw, _MAX_TEXT)}" if entry.user_response_raw.strip() else ""
    return f"{make_visible(entry.gate_id)}: {make_visible(entry.selected_option)}{how}{note}"


def format_option(option: ApprovalOption) -> str:
    """Describe an option of an approval gate."""
    default = " (the default)" if option.is_default else ""
    return f"{shorten_visibly(option.label)}{default}: {shorten_visibly(option.description, _MAX_TEXT)}"


def format_approval_facts(request: ApprovalRequest) -> str:
    """Describe the gate, and what is known about the run at this point."""
    facts = request.metadata
    return "; ".join(
        (
            f"{make_visible(request.gate_id)}, step {make_visible(request.pipeline_step)}",
            *((f"risk {make_visible(facts.risk_summary)}",) if facts.risk_summary else ()),
            pluralize(facts.findings_count, "finding"),
            *((f"{make_visible(facts.elapsed_time)} so far",) if facts.elapsed_time else ()),
        )
    )


def format_approve_command(run_id: str, request: ApprovalRequest, option: ApprovalOption) -> str:
    """Return the command that chooses this option."""
    note = ' --note "…"' if option.id in OPTIONS_WITH_NOTE else ""
    return f"proofstone approve {run_id} {shlex.quote(request.gate_id)} {shlex.quote(option.id)}{note}"


def format_final_checks(checks: FinalChecks) -> str:
    """Describe the result of all checks on the merged tree."""
    tree = checks.tree[:_HASH_LENGTH]
    if checks.passed:
        return f"✓ all checks pass on the merged tree {tree}"
    broken = f"; {pluralize(len(checks.regressions), 'regression')}" if checks.regressions else ""
    return (
        f"✗ the merged tree {tree} does not pass: "
        f"{shorten_visibly(checks.reason or 'no reason was given', _MAX_TEXT)}{broken}"
    )


def format_task_line(task: TaskReport) -> str:
    """Describe the state of a task."""
    tries = pluralize(task.attempts, "attempt")
    mark = {TaskState.APPROVED: "✓", TaskState.FAILED: "✗", TaskState.BLOCKED: "✗"}.get(task.state, "–")
    return f"{mark} {make_visible(task.id)} {shorten_visibly(task.name)}  {task.state.value.lower()}, {tries}"


def task_problems(task: TaskReport) -> Iterator[str]:
    """Yield why a task has not passed; nothing for a task that has."""
    if task.override is not None:
        yield f"set aside by {make_visible(task.override.by)}: {shorten_visibly(task.override.reason, _MAX_TEXT)}"
    if task.failures and task.state is not TaskState.APPROVED:
        last = task.failures[-1]
        yield f"{last.type}: {shorten_visibly(last.error, _MAX_TEXT)}"
    if task.asks:
        yield shorten_visibly(task.asks, _MAX_TEXT)


def format_review(word: ReviewerVerdict) -> str:
    """Describe a review: `security approve (1 minor), by gpt-5`."""
    if word.verdict is None:
        return f"{word.focus} not heard"
    counts = ", ".join(f"{word.findings[severity]} {severity}" for severity in Severity if word.findings.get(severity))
    model = f", by {make_visible(word.model)}" if word.model else ""
    return f"{word.focus} {word.verdict}{f' ({counts})' if counts else ''}{model}"


def format_issue(issue: KnownIssue) -> str:
    """Describe a known issue."""
    where = f" in {shorten_visibly(', '.join(issue.where))}" if issue.where else ""
    return f"{issue.severity}: {shorten_visibly(issue.title, _MAX_TEXT)}{where} ({shorten_visibly(issue.source)})"


def format_run_cost(report: RunReport) -> str:
    """Describe what the run has cost."""
    spent = summarize_spending(report.spent, Allowance()) or "no model calls"
    return f"agents asked {pluralize(report.dispatches, 'time')}, {spent}, {format_seconds(report.elapsed_ms)}"


_MAX_LINES: Final = 20
"""The most lines of one kind; the rest is counted, and --json has all."""
_SEVERITY: Final = tuple(Severity)


def print_pipeline_report(console: Console, report: RunReport, *, verbose: bool = True) -> None:
    """Print the result at the end of `proofstone run`, and for `proofstone status`. Unless `verbose`, what went well is
    left out: only what did not pass, what is open and what to do."""
    _print_outcome(console, report)
    if report.waiting is not None:
        _print_question(console, report, report.waiting)
    if verbose:
        _print_section(console, "plan gate", [_plan_gate_line(gate) for gate in report.plan_gates])
    _print_tasks(console, report.gates, verbose=verbose)
    if verbose:
        _print_reviews(console, report)
    if verbose or (report.final is not None and not report.final.passed):
        _print_checks(console, report)
    issues = sorted(report.known_issues, key=lambda issue: _SEVERITY.index(issue.severity))
    _print_section(console, "known issues", map(format_issue, issues))
    if report.commit is None:
        _print_issue_details(console, issues)
    _print_section(console, "criteria that nobody judged", _list_unjudged(report))
    _print_section(
        console,
        "added while it ran",
        [f"{'✓' if added.is_met else '✗ not met:'} {make_visible(added.text)}" for added in report.requirements],
    )
    _print_section(console, "overridden, cut short, or looked at by nobody", map(make_visible, report.gaps))
    _print_section(console, "what the auditor found", map(format_audit_finding, report.audit))
    if verbose:
        _print_section(console, "approvals", map(format_approval, report.approvals))
        _print_section(
            console,
            "changed",
            [f"{file.risk} {make_visible(file.path)} ({make_visible(file.change)})" for file in report.changed],
        )
    _print_section(console, "notes", map(make_visible, report.notes))
    _print_end(console, report)


def _print_outcome(console: Console, report: RunReport) -> None:
    console.print(report.outcome.value.upper(), style=OUTCOME_STYLES[report.outcome], end="")
    _print_line(console, f"  {shorten_visibly(report.reason, _MAX_TEXT)}".rstrip())
    _print_line(console, f"asked for: {shorten_visibly(report.request, _MAX_TEXT)}")
    if report.confidence is not None:
        print_confidence(console, report.confidence, report.reasons, indent="")
    why = f": {shorten_visibly(report.lane_reason)}" if report.lane_reason else ""
    _print_line(console, f"lane {report.lane}{why}", "dim")


def _print_question(console: Console, report: RunReport, request: ApprovalRequest) -> None:
    """Print the question, and for each option the command that chooses it."""
    console.print("\nyou are asked:", style="bold")
    _print_line(console, f"  {shorten_visibly(request.question, _MAX_TEXT)}", "yellow")
    _print_line(console, indent(escape_control(request.context), "  "))
    _print_line(console, f"  {format_approval_facts(request)}", "dim")
    for option in request.options:
        _print_line(console, f"  {format_approve_command(report.run_id, request, option)}")
        _print_line(console, f"    {format_option(option)}", "dim")
    _print_line(console, f"  and then: proofstone resume {report.run_id}")


def _print_issue_details(console: Console, issues: Sequence[KnownIssue]) -> None:
    """Print what shows each severe finding and what would put it right: they are why nothing is committed."""
    for issue in issues:
        if issue.severity in (Severity.BLOCKER, Severity.CRITICAL) and (issue.evidence or issue.recommendation):
            _print_line(console, f"  {issue.severity}: {shorten_visibly(issue.title, _MAX_TEXT)}", "red")
            _print_line(console, f"    seen: {shorten_visibly(issue.evidence, _MAX_TEXT)}")
            _print_line(console, f"    recommended: {shorten_visibly(issue.recommendation, _MAX_TEXT)}")


def _list_unjudged(report: RunReport) -> list[str]:
    return [
        f"[ ] {make_visible(result.task)}: {make_visible(result.criterion)}"
        for task in report.tasks
        for result in task.criteria
        if result.status is CriterionStatus.UNJUDGED
    ]


def _plan_gate_line(gate: PlanGateSummary) -> str:
    verdict = gate.verdict or "a question is waiting"
    return f"{gate.iteration}. {verdict}: {shorten_visibly(gate.reason, _MAX_TEXT)} (run {gate.run_id})"


def _print_tasks(console: Console, gates: Sequence[GateSummary], *, verbose: bool) -> None:
    for gate in gates:
        if not verbose and all(task.state is TaskState.APPROVED for task in gate.tasks):
            continue
        reason = f": {shorten_visibly(gate.reason, _MAX_TEXT)}" if gate.reason else ""
        _print_line(console, f"\ntasks of plan {gate.iteration}, {gate.outcome}{reason} (run {gate.run_id}):", "bold")
        for task in gate.tasks:
            _print_line(console, f"  {format_task_line(task)}")
            for why in task_problems(task):
                _print_line(console, f"    {why}", "red")


def _print_reviews(console: Console, report: RunReport) -> None:
    if not report.reviews:
        return
    console.print("\nreviews:", style="bold")
    for (scope, round), words in groupby(report.reviews, key=lambda review: (review.scope, review.round)):
        _print_line(console, f"  {scope}, round {round}")
        for word in words:
            _print_line(console, f"    {format_review(word)}")
    if report.single_model:
        _print_line(console, "  all reviews are by one model, each with a different focus", "yellow")


def _print_checks(console: Console, report: RunReport) -> None:
    if report.final is None:
        return
    console.print("\nchecks:", style="bold")
    _print_line(console, f"  {format_final_checks(report.final)}", "green" if report.final.passed else "red")
    _print_list(console, [f"worked before: {make_visible(regression)}" for regression in report.final.regressions])


def _print_end(console: Console, report: RunReport) -> None:
    console.print()
    if report.commit is not None:
        branch = shlex.quote(report.branch)
        _print_line(
            console, f"one commit, {report.commit[:_HASH_LENGTH]}, is on {make_visible(report.branch)}", "green"
        )
        _print_line(console, f"  merge it with: git merge --ff-only {branch}")
        _print_line(console, f"  once it is merged, revert it with: {report.rollback}")
    else:
        _print_patch(console, report)
    _print_section(console, "what was accomplished", map(make_visible, report.partial))
    _print_section(console, "what you could do now", map(make_visible, report.next_moves))
    if report.next_step and report.waiting is None:
        _print_next(console, report)
    if report.bundle:
        _print_line(console, f"evidence: {report.bundle}")
    _print_line(console, f"documents: {report.directory}", "dim")
    _print_line(console, f"cost: {format_run_cost(report)}", "dim")
    _print_line(console, f"run {report.run_id}; `proofstone ledger show {report.run_id}` shows all of it", "dim")


def _print_next(console: Console, report: RunReport) -> None:
    """Print the next step. If a part of the run asks, the person answers that and then resumes the whole run."""
    resume = f"proofstone resume {report.run_id}"
    is_part_asking = report.outcome is RunOutcome.NEEDS_HUMAN and report.next_step != resume
    then = f"; when you have answered: {resume}" if is_part_asking else ""
    _print_line(console, f"next: {make_visible(report.next_step)}{then}")


def _print_patch(console: Console, report: RunReport) -> None:
    """Say that nothing is committed, and print how to apply the patch of the work so far."""
    _print_line(console, "nothing is committed, and your files are unchanged")
    patch = Path(report.directory, "change.patch")
    if patch.is_file():
        command = f"git -C {shlex.quote(report.repository)} apply {shlex.quote(str(patch))}"
        waits = report.outcome is RunOutcome.NEEDS_HUMAN
        _print_line(console, f"  what there is {'so far' if waits else 'and was not accepted'}: {command}", "dim")


def _print_section(console: Console, title: str, lines: Iterable[str]) -> None:
    listed = list(lines)
    if listed:
        console.print(f"\n{title}:", style="bold")
        _print_list(console, listed)


def _print_list(console: Console, lines: Sequence[str]) -> None:
    for line in lines[:_MAX_LINES]:
        _print_line(console, f"  {line}")
    if len(lines) > _MAX_LINES:
        _print_line(console, f"  … and {len(lines) - _MAX_LINES} more", "dim")


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(escape_control(text), style=style, soft_wrap=True)
