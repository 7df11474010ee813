"""STATE.md and SUMMARY.md: the pages next to a plan, and their names. Pure.

Both are derived from the ledger, never from prose. STATE.md shows the state of a run; it is written whenever something
happens, and never read back. SUMMARY.md shows what a run has done and the evidence for it. A plan is complete when its
SUMMARY.md exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from proofstone.agents.roles.models.gate import ArchitectVerdict, Failure, TaskState
from proofstone.documents.markdown import Value, code, prose, visible, yaml, yaml_block
from proofstone.gate.models import CriterionLink, MustHaveResult, RunView, TaskRecord, TaskView
from proofstone.gate.rules.answers import answers, waiting
from proofstone.gate.rules.direction import trajectory
from proofstone.gate.rules.machine import MAX_ATTEMPTS, exhausted
from proofstone.gate.rules.position import STEPS, UNDER_WAY, bar, current, position, statistics, status_word, step_lines
from proofstone.plans.models import PlanTask

_MAX_FAILURES: Final = 10
_HEAD: Final = (
    "Written by Proofstone from its ledger whenever something happens, and never read back: editing it changes nothing."
)


def state_page(view: RunView) -> str:
    """Return the content of STATE.md."""
    current_task = current(view)
    parts = [f"# State: {prose(view.plan.title)}", _HEAD, yaml_block({"run": _run_fields(view)})]
    if current_task is not None:
        parts += [f"## Current Task: {prose(_task_name(view, current_task))}", _format_progress(current_task)]
    parts.append(yaml_block({"current_task": _current_task_fields(view, current_task)}))
    parts += _list_parallel_tasks(view, current_task)
    parts += _format_questions(view)
    parts += ["## Statistics", yaml_block({"gate_stats": _statistics_fields(view, current_task)})]
    parts += ["## Tasks", yaml_block({"tasks": [_task_fields(view, task) for task in view.tasks]})]
    parts += ["## Recent failures", yaml_block({"recent_failures": _list_recent_failures(view)})]
    parts += ["## Concerns", yaml_block({"concerns": list(_list_concerns(view))})]
    return "\n\n".join(parts) + "\n"


def _task_name(view: RunView, task: TaskView) -> str:
    return view.plan.task(task.record.id).name


def _run_fields(view: RunView) -> dict[str, Value]:
    return {
        "id": view.run_id,
        "plan": view.plan_path,
        "outcome": view.outcome.value if view.outcome else None,
        "reason": view.reason,
        "running": view.running,
        "interrupted": view.interrupted,
        "branch": view.branch,
        "base_commit": view.base_commit,
        "executor": view.executor,
        "architect": view.architect,
        "started_at": view.started_at,
        "updated_at": view.updated_at,
    }


def _format_progress(task: TaskView) -> str:
    task_position = position(task)
    lines = [f"Gate Progress: {bar(task_position)} Step {task_position.step}/{STEPS}", "", *step_lines(task)]
    return "\n".join(("```", *lines, "", f"Status: {status_word(task.record)}", "```"))


def _current_task_fields(view: RunView, task: TaskView | None) -> Value:
    if task is None:
        return None
    record, task_position = task.record, position(task)
    return {
        "name": _task_name(view, task),
        "phase": view.plan.phase,
        "plan": view.plan.plan,
        "gate_status": record.state.value,
        "gate_step": task_position.step,
        "executor_status": task_position.executor,
        "verify_status": task_position.verify,
        "architect_status": task_position.architect,
        "started_at": next((step.at for step in task.steps if step.kind == "started"), None),
        "last_step_at": task.steps[-1].at if task.steps else None,
        "attempt": record.attempt,
        "max_attempts": MAX_ATTEMPTS + record.extra_attempts,
        "previous_failures": [f"{failure.type}: {failure.error}" for failure in record.failures],
    }


def _list_parallel_tasks(view: RunView, current_task: TaskView | None) -> Iterator[str]:
    """Yield the tasks in progress at the same time, each with its own bar."""
    others = [task for task in view.tasks if task.record.state in UNDER_WAY and task is not current_task]
    if others:
        yield "## At the same time"
    for task in others:
        yield f"### {prose(_task_name(view, task))}"
        yield _format_progress(task)


def _format_questions(view: RunView) -> Iterator[str]:
    tasks = waiting(view)
    if not tasks:
        return
    yield "## Waits for a person"
    for task in tasks:
        lines = [f"**{prose(_task_name(view, task))}** ({task.record.id}): {prose(task.asks)}", ""]
        lines += [f"- {code(answer.command)}: {prose(answer.means)}" for answer in answers(view.run_id, task)]
        yield "\n".join(lines)


def _statistics_fields(view: RunView, current_task: TaskView | None) -> dict[str, Value]:
    stats = statistics(view)
    gate: Value = None
    if current_task is not None:
        gate = {
            "task": _task_name(view, current_task),
            "status": current_task.record.state.value,
            "attempt": current_task.record.attempt,
        }
    return {
        "total_tasks": stats.total,
        "passed": stats.passed,
        "failed": stats.failed,
        "in_progress": stats.in_progress,
        "pending": stats.pending,
        "pass_rate": stats.pass_rate,
        "avg_attempts": stats.average_attempts,
        "current_gate": gate,
    }


def _task_fields(view: RunView, task: TaskView) -> dict[str, Value]:
    record = task.record
    fields: dict[str, Value] = {
        "name": _task_name(view, task),
        "id": record.id,
        "status": status_word(record),
        "attempts": record.attempt,
        "commit": record.commit,
    }
    if record.override is not None:
        category = f"{record.override.category}: " if record.override.category else ""
        fields |= {
            "skip_reason": f"{category}{record.override.reason}",
            "skipped_by": record.override.by,
            "skipped_at": record.override.at,
            "requires_manual_commit": not record.finished,
        }
    return fields


def _list_recent_failures(view: RunView) -> list[Value]:
    failures: list[tuple[tuple[int, str], TaskView, Failure]] = []
    for task in view.tasks:
        when = {step.attempt: (step.seq, step.at) for step in task.steps if step.kind == "failed"}
        failures += [(when.get(failure.attempt, (0, "")), task, failure) for failure in task.record.failures]
    failures.sort(key=lambda entry: entry[0])
    return [_failure_fields(view, task, failure) for _, task, failure in failures[-_MAX_FAILURES:]]


def _failure_fields(view: RunView, task: TaskView, failure: Failure) -> dict[str, Value]:
    record = task.record
    return {
        "task": _task_name(view, task),
        "attempt": failure.attempt,
        "failure_type": failure.type.value,
        "error": failure.error,
        "recovered": record.state is TaskState.APPROVED,
        "resolution": resolution(task, failure),
    }


def resolution(task: TaskView, failure: Failure) -> str:
    """Describe what followed a failure."""
    record = task.record
    if record.state is TaskState.APPROVED:
        return f"attempt {record.attempt} passed"
    if record.override is not None:
        return f"{status_word(record)}, on the word of {visible(record.override.by)}"
    if failure.attempt < record.attempt:
        return f"attempt {failure.attempt + 1} followed"
    return "a person is asked" if exhausted(record) else "another attempt follows"


def _list_concerns(view: RunView) -> Iterator[str]:
    yield from view.warnings
    for task in view.tasks:
        for concern in dict.fromkeys(task.record.concerns):
            yield f"{task.record.id}: {concern}"


def summary_page(view: RunView) -> str:
    """Return the content of SUMMARY.md."""
    parts = [f"---\n{yaml(_frontmatter(view))}\n---", f"# Summary: {prose(view.plan.title)}"]
    parts += _format_warnings(view)
    parts.append(_format_outcome(view))
    parts.append("## What was done")
    for task in view.tasks:
        parts += _summarize_task(view.plan.task(task.record.id), task)
    if view.must_haves:
        parts += ["## Must-haves", "\n".join(_format_must_have(have) for have in view.must_haves)]
    parts += ["## How to check it", _format_check_commands(view)]
    return "\n\n".join(parts) + "\n"


def _frontmatter(view: RunView) -> dict[str, Value]:
    return {
        "phase": view.plan.phase,
        "plan": view.plan.plan,
        "run": view.run_id,
        "outcome": view.outcome.value if view.outcome else None,
        "branch": view.branch,
        "commits": [task.record.commit for task in view.tasks if task.record.commit],
        "duration": duration(view.started_at, view.updated_at),
    }


def duration(start: str, end: str) -> str:
    """Format the time between two timestamps as `1 h 2 min 3 s`."""
    return lasting(max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()))


def lasting(elapsed: float) -> str:
    """Format a number of seconds as `1 h 2 min 3 s`."""
    seconds = max(0, round(elapsed))
    hours, minutes = seconds // 3600, seconds // 60 % 60
    parts = ((hours, "h"), (minutes, "min"), (seconds % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def _format_warnings(view: RunView) -> Iterator[str]:
    """Yield what was skipped, forced or left out, as the first thing to read."""
    yield from (f"**WARNING: {prose(warning)}**" for warning in view.warnings)


def _format_outcome(view: RunView) -> str:
    outcome = view.outcome.value if view.outcome else "not finished"
    why = f": {prose(view.reason)}" if view.reason else ""
    how = f"Executor {code(view.executor)}, architect {code(view.architect)}, branch {code(view.branch)}."
    return f"Outcome: **{outcome}**{why}. {how} Written by Proofstone from its ledger."


def _summarize_task(plan: PlanTask, task: TaskView) -> Iterator[str]:
    yield f"### {prose(plan.name)} ({plan.id})"
    yield "\n".join(_format_facts(plan, task))
    if criteria := list(_format_criteria(plan, task.record)):
        yield "\n".join(("Done when:", "", *criteria))
    if concerns := list(dict.fromkeys(task.record.concerns)):
        yield "\n".join(("Concerns:", "", *(f"- {prose(concern)}" for concern in concerns)))
    if task.record.failures:
        yield "\n".join(("Attempts that did not pass:", "", *_format_failures(task)))


def _format_facts(plan: PlanTask, task: TaskView) -> Iterator[str]:
    record = task.record
    yield f"- state: {status_word(record)}"
    if record.commit:
        yield f"- commit: {code(record.commit)}"
    if record.evidence and record.commit:
        yield "- files: " + (", ".join(code(path) for path in record.evidence.changed) or "none")
    if task.confidence:
        yield f"- confidence: {task.confidence.value}"
    if not plan.type.is_checkpoint:
        yield f"- attempts: {record.attempt}"
    if losses := trajectory(record.failures):
        yield f"- loss after attempts that did not pass: {losses}"
    if record.state is TaskState.BLOCKED:
        yield f"- blocked: {prose(record.blocked_by)}"
    elif record.note and record.finished and (record.checkpoint or record.override):
        yield f"- a person's note: {prose(record.note)}"


def _format_criteria(plan: PlanTask, record: TaskRecord) -> Iterator[str]:
    """Yield each criterion with its evidence. A task that did not pass has no evidence."""
    if record.evidence is None or record.commit is None:
        yield from (f"- [ ] {prose(criterion)}" for criterion in plan.done)
        return
    for link in record.evidence.criteria:
        yield f"- [x] {prose(link.criterion)}: {_describe_evidence(link, record.verdicts)}"


def _describe_evidence(link: CriterionLink, verdicts: tuple[ArchitectVerdict, ...]) -> str:
    if link.check is not None:
        return f"shown by {code(link.check)}"
    names = ", ".join(code(verdict.by or "architect") for verdict in verdicts)
    return f"on the word of {names or 'the architect'}; no check shows it"


def _format_failures(task: TaskView) -> Iterator[str]:
    for failure in task.record.failures:
        result = resolution(task, failure)
        yield f"- attempt {failure.attempt}, {failure.type.value}: {prose(failure.error)} ({result})"


def _format_must_have(result: MustHaveResult) -> str:
    detail = f": {prose(result.detail)}" if result.detail else ""
    if result.holds is None:
        return f"- [ ] {prose(result.what)}: for a person to judge{detail}"
    return f"- [{'x' if result.holds else ' '}] {prose(result.what)}{'' if result.holds else ': does not hold'}{detail}"


def _format_check_commands(view: RunView) -> str:
    return "\n".join(
        (
            f"- {code(f'proofstone ledger show {view.run_id}')}: every check and every event of the run",
            f"- {code('proofstone ledger verify')}: that nobody has changed the record since",
            f"- {code(f'git log --stat {view.base_commit[:12]}..{view.branch}')}: the commits, one for each task",
        )
    )


_PLAN_NAME: Final = re.compile(r"^(?P<before>.*?)PLAN\.md$", re.IGNORECASE)
MARK: Final = "Written by Proofstone from its ledger"
"""Part of every page, so that Proofstone never overwrites a page of somebody else."""


def state_name(plan: str) -> str:
    """Return the name of the state page: `03-01-STATE.md` for `03-01-PLAN.md`, since a folder may hold several
    plans.
    """
    return f"{_read_prefix(plan)}STATE.md"


def summary_name(plan: str) -> str:
    """Return the name of the summary page."""
    return f"{_read_prefix(plan)}SUMMARY.md"


def aside_name(page: str, run_id: str) -> str:
    """Return the temporary name while a page is written. Only the beginning of a long name is used."""
    beginning = page.encode("utf-8", "surrogateescape")[:180].decode("utf-8", "ignore")
    return f".{beginning}.{run_id}.proofstone"


def summaries_of(plan: str) -> tuple[str, ...]:
    """Return where the summary of another plan may be, relative to the folder of a plan that depends on it."""
    names = (f"{plan}-SUMMARY.md", f"{plan}/SUMMARY.md")
    return tuple(f"{folder}{name}" for folder in ("", "../", "../*/") for name in names)


def _read_prefix(plan: str) -> str:
    match = _PLAN_NAME.match(plan)
    return match["before"] if match else ""
