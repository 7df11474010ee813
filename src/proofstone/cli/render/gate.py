"""Print a run of the gate: the table of tasks, what failed and why, the questions, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final

from proofstone.agents.roles.models.gate import AttemptFailure, TaskState
from proofstone.agents.rules.budget import suggest_raise, summarize_spending
from proofstone.auditor.models import AuditFinding
from proofstone.cli.render.audit import print_audit_findings
from proofstone.cli.render.confidence_text import print_confidence
from proofstone.common.text import escape_control
from proofstone.gate.models import (
    CriterionStatus,
    GateReport,
    MustHaveResult,
    RequirementResult,
    RunOutcome,
    RunView,
    TaskView,
)
from proofstone.gate.rules.direction import format_figures, format_trajectory
from proofstone.gate.rules.judgements import describe_criterion
from proofstone.gate.rules.progress import (
    ACTIVE_STATES,
    STEP_COUNT,
    count_tasks,
    describe_status,
    find_current_task,
    format_bar,
    format_steps,
    locate_task,
)
from proofstone.gate.rules.questions import (
    QuestionKind,
    find_question_kind,
    format_resume_command,
    list_answers,
    list_criteria_answers,
    list_waiting_tasks,
)
from proofstone.gate.rules.state_machine import is_exhausted

if TYPE_CHECKING:
    from rich.console import Console


OUTCOME_STYLES: Final = {
    RunOutcome.PASSED: "bold green",
    RunOutcome.FAILED: "bold red",
    RunOutcome.HALTED: "bold red",
    RunOutcome.NEEDS_HUMAN: "bold yellow",
    RunOutcome.BUDGET_EXHAUSTED: "bold yellow",
}
_STATE_STYLES: Final = {
    TaskState.APPROVED: "green",
    TaskState.FAILED: "red",
    TaskState.BLOCKED: "red",
    TaskState.SKIPPED: "yellow",
    TaskState.FORCED: "yellow",
}
_MAX_REASONS: Final = 8
_HASH_LENGTH: Final = 12


def print_gate(
    console: Console,
    report: GateReport,
    view: RunView,
    findings: Sequence[AuditFinding] = (),
    *,
    verbose: bool = True,
) -> None:
    """Print the result at the end of `proofstone gate` and `proofstone resume`; with the controller's figures if
    `verbose`."""
    print_tasks(console, view)
    _print_failures(console, [task for task in view.tasks if _has_failed(task)], view, verbose=verbose)
    _print_criteria(console, view)
    _print_requirements(console, report.requirements)
    _print_must_haves(console, report.must_haves)
    _print_notes(console, report.notes)
    print_audit_findings(console, findings)
    _print_questions(console, view)
    console.print()
    console.print(report.outcome.value.upper(), style=OUTCOME_STYLES[report.outcome], end="")
    _print_line(console, f"  {report.reason}".rstrip())
    if report.confidence and report.outcome is RunOutcome.PASSED:
        print_confidence(console, report.confidence, report.reasons)
    else:
        _print_task_confidence(console, view)
    if spent := summarize_spending(view.spent, view.budget.run):
        _print_line(console, f"  {spent}")
    _print_next(console, report, view)


def print_status(console: Console, view: RunView) -> None:
    """Print the state of a run for `proofstone status`."""
    _print_line(console, view.plan.title, "bold")
    _print_line(console, f"run {view.run_id}  {view.state}  onto {view.branch}  in {view.repository}")
    if view.reason:
        _print_line(console, f"  {view.reason}")
    counts = count_tasks(view)
    _print_line(
        console,
        f"{counts.passed} of {counts.total} passed, {counts.failed} failed, {counts.in_progress} under way, "
        f"{counts.pending} pending; pass rate {counts.pass_rate}, {counts.average_attempts} attempts on average\n",
        "dim",
    )
    if spent := summarize_spending(view.spent, view.budget.run):
        _print_line(console, f"{spent}\n", "dim")
    print_tasks(console, view)
    _print_task_confidence(console, view)
    _print_bars(console, view)
    _print_failures(
        console, [task for task in view.tasks if task.record.failures and not task.record.is_finished], view
    )
    _print_criteria(console, view)
    _print_requirements(console, view.requirements)
    _print_must_haves(console, view.must_haves)
    _print_notes(console, view.warnings)
    _print_questions(console, view)
    if not view.running:
        _print_resume(console, view)


def print_task_failures(console: Console, view: RunView, task: TaskView) -> None:
    """Print everything that is known about a failed task, for a person who investigates it."""
    for failure in task.record.failures:
        _print_failure(console, view, task, failure, most=len(failure.reasons))
    _print_patch(console, view, task)
    if task.record.note:
        _print_line(console, f"  {task.record.note}")
    _print_line(console, f"  all of it: proofstone ledger show {view.run_id}", "dim")


def print_tasks(console: Console, view: RunView) -> None:
    """Print the table with one line for each task."""
    states = {task.record.id: describe_status(task.record) for task in view.tasks}
    width = max([5, *map(len, states.values())])
    console.print(f"{'task':<8} {'state':<{width}} {'tries':>5}  {'confidence':<10}  {'commit':<12}  name", style="dim")
    for task in view.tasks:
        record = task.record
        console.print(f"{record.id:<8} ", end="")
        console.print(f"{states[record.id]:<{width}}", style=_STATE_STYLES.get(record.state, "cyan"), end="")
        confidence = task.confidence.value if task.confidence else "–"
        commit = record.commit[:_HASH_LENGTH] if record.commit else "–"
        waits = f"  (waits for {', '.join(task.waits_for)})" if task.waits_for else ""
        name = view.plan.get_task(record.id).name
        _print_line(console, f" {record.attempt:>5}  {confidence:<10}  {commit:<12}  {name}{waits}")


def _print_task_confidence(console: Console, view: RunView) -> None:
    """Print why the confidence in a task is not high."""
    for task in view.tasks:
        if task.confidence is not None and task.reasons:
            print_confidence(console, task.confidence, task.reasons, subject=f"{task.record.id}: confidence")


def _print_bars(console: Console, view: RunView) -> None:
    shown = [task for task in view.tasks if task.record.state in ACTIVE_STATES]
    now = find_current_task(view)
    if not shown and now is not None and not now.record.is_finished:
        shown = [now]
    for task in shown:
        progress = locate_task(task)
        _print_line(console, f"\n{task.record.id} {view.plan.get_task(task.record.id).name}", "bold")
        _print_line(console, f"Gate Progress: {format_bar(progress)} Step {progress.step}/{STEP_COUNT}")
        for line in format_steps(task):
            _print_line(console, f"  {line}")


def _has_failed(task: TaskView) -> bool:
    return is_exhausted(task.record) or (bool(task.record.failures) and not task.record.is_finished)


def _print_failures(console: Console, tasks: Sequence[TaskView], view: RunView, *, verbose: bool = True) -> None:
    if tasks:
        console.print("\nwhat did not pass:", style="bold")
    for task in tasks:
        if task.record.failures:
            _print_failure(console, view, task, task.record.failures[-1], most=_MAX_REASONS, figures=verbose)
            if verbose and len(task.record.failures) > 1 and (losses := format_trajectory(task.record.failures)):
                _print_line(console, f"    loss so far: {losses}", "dim")
            _print_patch(console, view, task)


def _print_failure(
    console: Console, view: RunView, task: TaskView, failure: AttemptFailure, *, most: int, figures: bool = True
) -> None:
    name = view.plan.get_task(task.record.id).name
    _print_line(console, f"  {task.record.id} {name}: attempt {failure.attempt}, {failure.type}", "red")
    _print_line(console, indent(failure.error, "    "))
    for reason in failure.reasons[:most]:
        if reason.detail != failure.error:
            _print_line(console, indent(f"- {reason.check} ({reason.verdict}): {reason.detail}", "    "))
        for line in reason.failures[:most]:
            _print_line(console, f"      {line}")
        if reason.remedy:
            _print_line(console, f"      what you can do: {reason.remedy}", "dim")
        if reason.artifact:
            _print_line(console, f"      evidence: proofstone ledger artifact {reason.artifact[:_HASH_LENGTH]}", "dim")
    if len(failure.reasons) > most:
        _print_line(console, f"    … and {len(failure.reasons) - most} more", "dim")
    if failure.direction and figures:
        _print_line(console, f"    {format_figures(failure.direction)}: {failure.direction.rationale}", "dim")


def _print_patch(console: Console, view: RunView, task: TaskView) -> None:
    """Print how to apply the patch that the attempts left."""
    patch = Path(view.repository, ".proofstone", view.run_id, f"{task.record.id}.patch")
    if patch.is_file():
        _print_line(console, f"    what it left: git apply {patch}", "dim")


def _print_criteria(console: Console, view: RunView) -> None:
    """Print the criteria that no check shows, and commands of criteria. The others are in SUMMARY.md."""
    shown = [
        result
        for task in view.tasks
        for result in task.criteria
        if result.status in (CriterionStatus.UNJUDGED, CriterionStatus.UNMET)
    ]
    if shown:
        console.print("\ncriteria that no check shows:", style="bold")
    for result in shown:
        _print_line(console, f"  [ ] {result.task}: {result.criterion}: {describe_criterion(result)}", "yellow")


def _print_requirements(console: Console, requirements: Sequence[RequirementResult]) -> None:
    if requirements:
        console.print("\nadded while it ran:", style="bold")
    for result in requirements:
        mark, style = ("✓", "green") if result.is_met else ("✗", "red")
        _print_line(console, f"  {mark} {result.text}{f': {result.detail}' if result.detail else ''}", style)


def _print_must_haves(console: Console, results: Sequence[MustHaveResult]) -> None:
    if not results:
        return
    console.print("\nmust-haves:", style="bold")
    for result in results:
        mark, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}[result.holds]
        _print_line(console, f"  {mark} {result.what}{f': {result.detail}' if result.detail else ''}", style)


def _print_notes(console: Console, notes: Sequence[str]) -> None:
    for note in notes:
        _print_line(console, f"note: {note}", "yellow")


def _print_questions(console: Console, view: RunView) -> None:
    tasks = list_waiting_tasks(view)
    if tasks or view.asks:
        console.print("\nyou are asked:", style="bold")
    if view.asks:
        _print_line(console, f"  {indent(view.asks, '  ').lstrip()}", "yellow")
        for answer in list_criteria_answers(view.run_id):
            _print_line(console, f"    {answer.command}   # {answer.meaning}")
    for task in tasks:
        asks = indent(task.asks, "    ").lstrip()
        _print_line(console, f"  {task.record.id} {view.plan.get_task(task.record.id).name}: {asks}", "yellow")
        if task.work_tree:
            _print_line(console, f"    work in: {task.work_tree}")
        for answer in list_answers(view.run_id, task, view.branch):
            _print_line(console, f"    {answer.command}   # {answer.meaning}")


def _print_next(console: Console, report: GateReport, view: RunView) -> None:
    if report.commit and report.asks:
        look = f"git log -p {view.base_commit[:_HASH_LENGTH]}..{report.branch}"
        _print_line(console, f"  commits are on {report.branch}; look at them with: {look}")
    elif report.commit:
        _print_line(console, f"  commits are on {report.branch}; merge them with: git merge --ff-only {report.branch}")
    _print_resume(console, view)
    pages = [f"state: {report.state}", *([f"summary: {report.bundle}"] if report.bundle else [])]
    _print_line(console, f"  {'; '.join(pages)}", "dim")
    _print_line(console, f"  run {report.run_id}; `proofstone ledger show {report.run_id}` shows the evidence", "dim")


def _print_resume(console: Console, view: RunView) -> None:
    """Print the command that resumes the run. It is of no use if a failed task needs a decision, or if all passed."""
    if view.outcome in (RunOutcome.PASSED, RunOutcome.CANCELLED) or any(
        find_question_kind(task) is QuestionKind.FAILURE for task in view.tasks
    ):
        return
    when = "when you have answered, resume with" if list_waiting_tasks(view) or view.asks else "resume with"
    more = suggest_raise(view.budget.run, view.spent) if view.outcome is RunOutcome.BUDGET_EXHAUSTED else ""
    _print_line(console, f"  {when}: {format_resume_command(view.run_id)}{more}")


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(escape_control(text), style=style, soft_wrap=True)
