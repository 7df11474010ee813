"""A run of the gate as a person reads it: the table, what failed and why, what they are asked, what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final

from proofstone.agents.roles.models.gate import Failure, TaskState
from proofstone.agents.rules.budget import more_of_it, summary
from proofstone.common.text import printable
from proofstone.gate.models import GateReport, MustHaveResult, RunOutcome, RunView, TaskView
from proofstone.gate.rules.answers import Ask, answers, asked, resume, waiting
from proofstone.gate.rules.direction import figures, trajectory
from proofstone.gate.rules.machine import exhausted
from proofstone.gate.rules.position import STEPS, UNDER_WAY, bar, current, position, statistics, status_word, step_lines

if TYPE_CHECKING:
    from rich.console import Console


OUTCOME: Final = {
    RunOutcome.PASSED: "bold green",
    RunOutcome.FAILED: "bold red",
    RunOutcome.HALTED: "bold red",
    RunOutcome.NEEDS_HUMAN: "bold yellow",
    RunOutcome.BUDGET_EXHAUSTED: "bold yellow",
}
_STATE: Final = {
    TaskState.APPROVED: "green",
    TaskState.FAILED: "red",
    TaskState.BLOCKED: "red",
    TaskState.SKIPPED: "yellow",
    TaskState.FORCED: "yellow",
}
_MOST_REASONS: Final = 8
_SHORT: Final = 12


def print_gate(console: Console, report: GateReport, view: RunView) -> None:
    """The end of `proofstone gate` and `proofstone resume`."""
    print_tasks(console, view)
    _failures(console, [task for task in view.tasks if _in_trouble(task)], view)
    _must_haves(console, report.must_haves)
    _notes(console, report.notes)
    _questions(console, view)
    console.print()
    console.print(report.outcome.value.upper(), style=OUTCOME[report.outcome], end="")
    _line(console, f"  {report.reason}".rstrip())
    if report.confidence and report.outcome is RunOutcome.PASSED:
        _line(console, f"  confidence {report.confidence.value}")
    if spent := summary(view.spent, view.budget.run):
        _line(console, f"  {spent}")
    _next(console, report, view)


def print_status(console: Console, view: RunView) -> None:
    """`proofstone status`: where the run stands."""
    _line(console, view.plan.title, "bold")
    _line(console, f"run {view.run_id}  {state_of(view)}  onto {view.branch}  in {view.repository}")
    if view.reason:
        _line(console, f"  {view.reason}")
    counted = statistics(view)
    _line(
        console,
        f"{counted.passed} of {counted.total} passed, {counted.failed} failed, {counted.in_progress} under way, "
        f"{counted.pending} pending; pass rate {counted.pass_rate}, {counted.average_attempts} attempts on average\n",
        "dim",
    )
    if spent := summary(view.spent, view.budget.run):
        _line(console, f"{spent}\n", "dim")
    print_tasks(console, view)
    _bars(console, view)
    _failures(console, [task for task in view.tasks if task.record.failures and not task.record.finished], view)
    _must_haves(console, view.must_haves)
    _notes(console, view.warnings)
    _questions(console, view)
    if not view.running:
        _go_on(console, view)


def state_of(view: RunView) -> str:
    """In one word: what became of it, or that it goes on, or that it was interrupted."""
    if view.running:
        return "running"
    if view.outcome is not None:
        return view.outcome.value
    return "interrupted" if view.interrupted else "not finished"


def print_trouble(console: Console, view: RunView, task: TaskView) -> None:
    """Everything that is known of one task that did not pass: for a person who looks into it."""
    for failure in task.record.failures:
        _failure(console, view, task, failure, most=len(failure.reasons))
    _left(console, view, task)
    if task.record.note:
        _line(console, f"  {task.record.note}")
    _line(console, f"  all of it: proofstone ledger show {view.run_id}", "dim")


def print_tasks(console: Console, view: RunView) -> None:
    """The table: one line for each task."""
    states = {task.record.id: status_word(task.record) for task in view.tasks}
    width = max([5, *map(len, states.values())])
    console.print(f"{'task':<8} {'state':<{width}} {'tries':>5}  {'confidence':<10}  {'commit':<12}  name", style="dim")
    for task in view.tasks:
        record = task.record
        console.print(f"{record.id:<8} ", end="")
        console.print(f"{states[record.id]:<{width}}", style=_STATE.get(record.state, "cyan"), end="")
        confidence = task.confidence.value if task.confidence else "–"
        commit = record.commit[:_SHORT] if record.commit else "–"
        waits = f"  (waits for {', '.join(task.waits_for)})" if task.waits_for else ""
        name = view.plan.task(record.id).name
        _line(console, f" {record.attempt:>5}  {confidence:<10}  {commit:<12}  {name}{waits}")


def _bars(console: Console, view: RunView) -> None:
    shown = [task for task in view.tasks if task.record.state in UNDER_WAY]
    now = current(view)
    if not shown and now is not None and not now.record.finished:
        shown = [now]
    for task in shown:
        place = position(task)
        _line(console, f"\n{task.record.id} {view.plan.task(task.record.id).name}", "bold")
        _line(console, f"Gate Progress: {bar(place)} Step {place.step}/{STEPS}")
        for line in step_lines(task):
            _line(console, f"  {line}")


def _in_trouble(task: TaskView) -> bool:
    return exhausted(task.record) or (bool(task.record.failures) and not task.record.finished)


def _failures(console: Console, tasks: Sequence[TaskView], view: RunView) -> None:
    if tasks:
        console.print("\nwhat did not pass:", style="bold")
    for task in tasks:
        if task.record.failures:
            _failure(console, view, task, task.record.failures[-1], most=_MOST_REASONS)
            if len(task.record.failures) > 1 and (losses := trajectory(task.record.failures)):
                _line(console, f"    loss so far: {losses}", "dim")
            _left(console, view, task)


def _failure(console: Console, view: RunView, task: TaskView, failure: Failure, *, most: int) -> None:
    name = view.plan.task(task.record.id).name
    _line(console, f"  {task.record.id} {name}: attempt {failure.attempt}, {failure.type}", "red")
    _line(console, indent(failure.error, "    "))
    for reason in failure.reasons[:most]:
        if reason.detail != failure.error:
            _line(console, indent(f"- {reason.check} ({reason.verdict}): {reason.detail}", "    "))
        if reason.artifact:
            _line(console, f"      evidence: proofstone ledger artifact {reason.artifact[:_SHORT]}", "dim")
    if len(failure.reasons) > most:
        _line(console, f"    … and {len(failure.reasons) - most} more", "dim")
    if failure.direction:
        _line(console, f"    {figures(failure.direction)}: {failure.direction.rationale}", "dim")


def _left(console: Console, view: RunView, task: TaskView) -> None:
    """What the attempts left is kept as a patch."""
    patch = Path(view.repository, ".proofstone", view.run_id, f"{task.record.id}.patch")
    if patch.is_file():
        _line(console, f"    what it left: git apply {patch}", "dim")


def _must_haves(console: Console, results: Sequence[MustHaveResult]) -> None:
    if not results:
        return
    console.print("\nmust-haves:", style="bold")
    for result in results:
        mark, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}[result.holds]
        _line(console, f"  {mark} {result.what}{f': {result.detail}' if result.detail else ''}", style)


def _notes(console: Console, notes: Sequence[str]) -> None:
    for note in notes:
        _line(console, f"note: {note}", "yellow")


def _questions(console: Console, view: RunView) -> None:
    tasks = waiting(view)
    if tasks:
        console.print("\nyou are asked:", style="bold")
    for task in tasks:
        asks = indent(task.asks, "    ").lstrip()
        _line(console, f"  {task.record.id} {view.plan.task(task.record.id).name}: {asks}", "yellow")
        if task.work_tree:
            _line(console, f"    work in: {task.work_tree}")
        for answer in answers(view.run_id, task):
            _line(console, f"    {answer.command}   # {answer.means}")


def _next(console: Console, report: GateReport, view: RunView) -> None:
    if report.commit:
        _line(console, f"  commits are on {report.branch}; take them over with: git merge --ff-only {report.branch}")
    _go_on(console, view)
    pages = [f"state: {report.state}", *([f"summary: {report.bundle}"] if report.bundle else [])]
    _line(console, f"  {'; '.join(pages)}", "dim")
    _line(console, f"  run {report.run_id}; `proofstone ledger show {report.run_id}` shows the evidence", "dim")


def _go_on(console: Console, view: RunView) -> None:
    """Resuming alone helps where nobody is asked, or where the answer was given by another command."""
    if view.outcome is RunOutcome.PASSED or any(asked(task) is Ask.FAILURE for task in view.tasks):
        return
    when = "when you have answered, go on with" if waiting(view) else "go on with"
    more = more_of_it(view.budget.run, view.spent) if view.outcome is RunOutcome.BUDGET_EXHAUSTED else ""
    _line(console, f"  {when}: {resume(view.run_id)}{more}")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(printable(text), style=style, soft_wrap=True)
