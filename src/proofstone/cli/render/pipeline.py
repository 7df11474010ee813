"""Words about a run of the pipeline that its live view, its report and its questions share.

Whatever an agent or a person wrote is one line here, and drives no terminal.

What came of a feature, as a person reads it: how it ended, how sure one can be, what is asked, what to do next.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final

from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.rules.budget import summary
from proofstone.cli.render.gate import OUTCOME
from proofstone.cli.render.solve_words import one_line, seconds
from proofstone.common.models import Allowance, Confidence, Severity
from proofstone.common.text import counted, printable
from proofstone.documents.markdown import visible
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.pipeline.models.run import (
    ApprovalEntry,
    ApprovalOption,
    ApprovalRequest,
    FinalChecks,
    GateSummary,
    KnownIssue,
    PlanGateSummary,
    Reviewed,
    RunReport,
)

if TYPE_CHECKING:
    from rich.console import Console


WANT_WORDS: Final = frozenset(("expand", "modify", "revise"))
"""Options that say nothing to whoever goes on, unless the person says what they want."""
_SHORT: Final = 12
_LONG: Final = 400


def approval(entry: ApprovalEntry) -> str:
    how = ", by default" if entry.auto_selected else ", by a person"
    said = f": {one_line(entry.user_response_raw, _LONG)}" if entry.user_response_raw.strip() else ""
    return f"{visible(entry.gate_id)}: {visible(entry.selected_option)}{how}{said}"


def option_line(option: ApprovalOption) -> str:
    default = " (the default)" if option.is_default else ""
    return f"{one_line(option.label)}{default}: {one_line(option.description, _LONG)}"


def answer_command(run_id: str, request: ApprovalRequest, option: ApprovalOption) -> str:
    """The command that takes this option."""
    words = ' --note "…"' if option.id in WANT_WORDS else ""
    return f"proofstone approve {run_id} {shlex.quote(request.gate_id)} {shlex.quote(option.id)}{words}"


def cascade(checks: FinalChecks) -> str:
    """What the whole cascade gave."""
    tree = checks.tree[:_SHORT]
    if checks.passed:
        return f"✓ all checks pass on the merged tree {tree}, confidence {checks.confidence}"
    broken = f"; {counted(len(checks.regressions), 'regression')}" if checks.regressions else ""
    return f"✗ the merged tree {tree} does not pass: {one_line(checks.reason or 'nobody said why', _LONG)}{broken}"


def task_line(task: TaskReport) -> str:
    confidence = f", confidence {task.confidence}" if task.confidence else ""
    tries = counted(task.attempts, "attempt")
    mark = {TaskState.APPROVED: "✓", TaskState.FAILED: "✗", TaskState.BLOCKED: "✗"}.get(task.state, "–")
    return f"{mark} {visible(task.id)} {one_line(task.name)}  {task.state.value.lower()}, {tries}{confidence}"


def trouble(task: TaskReport) -> Iterator[str]:
    """Why a task is not through; of one that is, nothing."""
    if task.override is not None:
        yield f"set aside by {visible(task.override.by)}: {one_line(task.override.reason, _LONG)}"
    if task.failures and task.state is not TaskState.APPROVED:
        last = task.failures[-1]
        yield f"{last.type}: {one_line(last.error, _LONG)}"
    if task.asks:
        yield one_line(task.asks, _LONG)


def review_line(word: Reviewed) -> str:
    """`security approve (1 minor), by gpt-5`."""
    if word.verdict is None:
        return f"{word.focus} not heard"
    found = ", ".join(f"{word.findings[item]} {item}" for item in Severity if word.findings.get(item))
    model = f", by {visible(word.model)}" if word.model else ""
    return f"{word.focus} {word.verdict}{f' ({found})' if found else ''}{model}"


def issue_line(issue: KnownIssue) -> str:
    where = f" in {one_line(', '.join(issue.where))}" if issue.where else ""
    return f"{issue.severity}: {one_line(issue.title, _LONG)}{where} ({one_line(issue.source)})"


def cost(report: RunReport) -> str:
    spent = summary(report.spent, Allowance()) or "no model calls"
    return f"agents asked {counted(report.dispatches, 'time')}, {spent}, {seconds(report.elapsed_ms)}"


_MOST: Final = 20
"""Of one kind; the rest is counted, and in --json."""
_PIPELINE_LONG: Final = 400
_PIPELINE_SHORT: Final = 12
_CONFIDENCE: Final = {Confidence.HIGH: "green", Confidence.MEDIUM: "yellow", Confidence.LOW: "red"}
_SEVERITY: Final = tuple(Severity)


def print_run(console: Console, report: RunReport) -> None:
    """The end of `proofstone run`, and `proofstone status` of its runs."""
    _outcome(console, report)
    if report.waiting is not None:
        _question(console, report, report.waiting)
    _section(console, "plan gate", [_plan_gate(gate) for gate in report.plan_gates])
    _tasks(console, report.gates)
    _reviews(console, report)
    _checks(console, report)
    graver_first = sorted(report.known_issues, key=lambda one: _SEVERITY.index(one.severity))
    _section(console, "known issues", map(issue_line, graver_first))
    _section(console, "approvals", map(approval, report.approvals))
    _section(
        console, "changed", [f"{item.risk} {visible(item.path)} ({visible(item.change)})" for item in report.changed]
    )
    _section(console, "notes", map(visible, report.notes))
    _end(console, report)


def _outcome(console: Console, report: RunReport) -> None:
    console.print(report.outcome.value.upper(), style=OUTCOME[report.outcome], end="")
    _line(console, f"  {one_line(report.reason, _PIPELINE_LONG)}".rstrip())
    _line(console, f"asked for: {one_line(report.request, _PIPELINE_LONG)}")
    if report.confidence is not None:
        raising = " It would be higher without this:" if report.confidence_reasons else ""
        _line(console, f"confidence {report.confidence}.{raising}", _CONFIDENCE[report.confidence])
        _list(console, [one_line(reason, _PIPELINE_LONG) for reason in report.confidence_reasons])
    why = f": {one_line(report.lane_reason)}" if report.lane_reason else ""
    _line(console, f"lane {report.lane}{why}", "dim")


def _question(console: Console, report: RunReport, request: ApprovalRequest) -> None:
    """What is asked, and for each option the command that takes it."""
    console.print("\nyou are asked:", style="bold")
    _line(console, f"  {one_line(request.question, _PIPELINE_LONG)}", "yellow")
    _line(console, indent(printable(request.context), "  "))
    for option in request.options:
        _line(console, f"  {answer_command(report.run_id, request, option)}")
        _line(console, f"    {option_line(option)}", "dim")
    _line(console, f"  and then: proofstone resume {report.run_id}")


def _plan_gate(gate: PlanGateSummary) -> str:
    verdict = gate.verdict or "a question is waiting"
    return f"{gate.iteration}. {verdict}: {one_line(gate.reason, _PIPELINE_LONG)} (run {gate.run_id})"


def _tasks(console: Console, gates: Sequence[GateSummary]) -> None:
    for gate in gates:
        reason = f": {one_line(gate.reason, _PIPELINE_LONG)}" if gate.reason else ""
        _line(console, f"\ntasks of plan {gate.iteration}, {gate.outcome}{reason} (run {gate.run_id}):", "bold")
        for task in gate.tasks:
            _line(console, f"  {task_line(task)}")
            for why in trouble(task):
                _line(console, f"    {why}", "red")


def _reviews(console: Console, report: RunReport) -> None:
    if not report.reviews:
        return
    console.print("\nreviews:", style="bold")
    for (scope, round), words in groupby(report.reviews, key=lambda one: (one.scope, one.round)):
        _line(console, f"  {scope}, round {round}")
        for word in words:
            _line(console, f"    {review_line(word)}")
    if report.single_model:
        _line(console, "  all of them are one model, which looked for different things", "yellow")


def _checks(console: Console, report: RunReport) -> None:
    if report.final is None:
        return
    console.print("\nchecks:", style="bold")
    _line(console, f"  {cascade(report.final)}", "green" if report.final.passed else "red")
    _list(console, [f"worked before: {visible(regression)}" for regression in report.final.regressions])


def _end(console: Console, report: RunReport) -> None:
    console.print()
    if report.commit is not None:
        branch = shlex.quote(report.branch)
        _line(console, f"one commit, {report.commit[:_PIPELINE_SHORT]}, is on {visible(report.branch)}", "green")
        _line(console, f"  take it over with: git merge --ff-only {branch}")
        _line(console, f"  once it is merged, take it back with: {report.rollback}")
    else:
        _left(console, report)
    if report.next_step and report.waiting is None:
        _next(console, report)
    if report.bundle:
        _line(console, f"evidence: {report.bundle}")
    _line(console, f"documents: {report.directory}", "dim")
    _line(console, f"cost: {cost(report)}", "dim")
    _line(console, f"run {report.run_id}; `proofstone ledger show {report.run_id}` shows all of it", "dim")


def _next(console: Console, report: RunReport) -> None:
    """A part of the run may be what asks: whoever has answered it goes on with the whole."""
    resume = f"proofstone resume {report.run_id}"
    asks = report.outcome is RunOutcome.NEEDS_HUMAN and report.next_step != resume
    then = f"; when you have answered: {resume}" if asks else ""
    _line(console, f"next: {visible(report.next_step)}{then}")


def _left(console: Console, report: RunReport) -> None:
    """Nothing is committed; what was made is kept as a patch."""
    _line(console, "nothing is committed, and your files are as they were")
    patch = Path(report.directory, "change.patch")
    if patch.is_file():
        command = f"git -C {shlex.quote(report.repository)} apply {shlex.quote(str(patch))}"
        waits = report.outcome is RunOutcome.NEEDS_HUMAN
        _line(console, f"  what there is {'so far' if waits else 'and was not accepted'}: {command}", "dim")


def _section(console: Console, title: str, lines: Iterable[str]) -> None:
    listed = list(lines)
    if listed:
        console.print(f"\n{title}:", style="bold")
        _list(console, listed)


def _list(console: Console, lines: Sequence[str]) -> None:
    for line in lines[:_MOST]:
        _line(console, f"  {line}")
    if len(lines) > _MOST:
        _line(console, f"  … and {len(lines) - _MOST} more", "dim")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(printable(text), style=style, soft_wrap=True)
