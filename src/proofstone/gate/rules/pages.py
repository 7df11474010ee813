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

from proofstone.agents.roles.models.gate import AttemptFailure, TaskState
from proofstone.check.rules.acceptance import describe_acceptance
from proofstone.check.rules.disputes import describe_dispute
from proofstone.documents.markdown import (
    YamlValue,
    code_span,
    escape_markdown,
    format_yaml,
    format_yaml_block,
    make_visible,
)
from proofstone.gate.models import (
    CriterionResult,
    CriterionStatus,
    MustHaveResult,
    RequirementResult,
    RunView,
    TaskView,
)
from proofstone.gate.rules.direction import format_trajectory
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
from proofstone.gate.rules.questions import list_answers, list_criteria_answers, list_waiting_tasks
from proofstone.gate.rules.state_machine import MAX_ATTEMPTS, is_exhausted
from proofstone.plans.models import PlanTask

_MAX_FAILURES: Final = 10
_HEAD: Final = (
    "Written by Proofstone from its ledger whenever something happens, and never read back: editing it changes nothing."
)


def render_state_page(view: RunView) -> str:
    """Return the content of STATE.md."""
    current_task = find_current_task(view)
    parts = [f"# State: {escape_markdown(view.plan.title)}", _HEAD, format_yaml_block({"run": _run_fields(view)})]
    if current_task is not None:
        parts += [f"## Current Task: {escape_markdown(_task_name(view, current_task))}", _format_progress(current_task)]
    parts.append(format_yaml_block({"current_task": _current_task_fields(view, current_task)}))
    parts += _list_parallel_tasks(view, current_task)
    parts += _format_questions(view)
    parts += ["## Statistics", format_yaml_block({"gate_stats": _statistics_fields(view, current_task)})]
    parts += ["## Tasks", format_yaml_block({"tasks": [_task_fields(view, task) for task in view.tasks]})]
    if view.requirements:
        parts += ["## Added requirements", "\n".join(map(_format_requirement, view.requirements))]
    if unjudged := [result for task in view.tasks for result in task.criteria if _needs_word(result)]:
        parts += ["## Criteria without a judge", "\n".join(map(_format_task_criterion, unjudged))]
    parts += ["## Recent failures", format_yaml_block({"recent_failures": _list_recent_failures(view)})]
    parts += ["## Concerns", format_yaml_block({"concerns": list(_list_concerns(view))})]
    return "\n\n".join(parts) + "\n"


def _task_name(view: RunView, task: TaskView) -> str:
    return view.plan.get_task(task.record.id).name


def _run_fields(view: RunView) -> dict[str, YamlValue]:
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
    task_position = locate_task(task)
    lines = [
        f"Gate Progress: {format_bar(task_position)} Step {task_position.step}/{STEP_COUNT}",
        "",
        *format_steps(task),
    ]
    return "\n".join(("```", *lines, "", f"Status: {describe_status(task.record)}", "```"))


def _current_task_fields(view: RunView, task: TaskView | None) -> YamlValue:
    if task is None:
        return None
    record, task_position = task.record, locate_task(task)
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
    others = [task for task in view.tasks if task.record.state in ACTIVE_STATES and task is not current_task]
    if others:
        yield "## At the same time"
    for task in others:
        yield f"### {escape_markdown(_task_name(view, task))}"
        yield _format_progress(task)


def _format_questions(view: RunView) -> Iterator[str]:
    tasks = list_waiting_tasks(view)
    if not tasks and not view.asks:
        return
    yield "## Waits for a person"
    if view.asks:
        answers = (
            f"- {code_span(answer.command)}: {escape_markdown(answer.meaning)}"
            for answer in list_criteria_answers(view.run_id)
        )
        question, _, criteria = view.asks.partition("\n")
        listed = (f"- {escape_markdown(line.removeprefix('- '))}" for line in criteria.splitlines())
        yield "\n".join((f"**All tasks**: {escape_markdown(question)}", "", *listed, "", *answers))
    for task in tasks:
        lines = [f"**{escape_markdown(_task_name(view, task))}** ({task.record.id}): {escape_markdown(task.asks)}", ""]
        lines += [
            f"- {code_span(answer.command)}: {escape_markdown(answer.meaning)}"
            for answer in list_answers(view.run_id, task, view.branch)
        ]
        yield "\n".join(lines)


def _statistics_fields(view: RunView, current_task: TaskView | None) -> dict[str, YamlValue]:
    stats = count_tasks(view)
    gate: YamlValue = None
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


def _task_fields(view: RunView, task: TaskView) -> dict[str, YamlValue]:
    record = task.record
    fields: dict[str, YamlValue] = {
        "name": _task_name(view, task),
        "id": record.id,
        "status": describe_status(record),
        "attempts": record.attempt,
        "commit": record.commit,
    }
    if record.evidence is not None and record.evidence.accepted:
        fields["accepted"] = [describe_acceptance(acceptance) for acceptance in record.evidence.accepted]
    if record.disputes:
        fields["disputes"] = [describe_dispute(dispute) for dispute in record.disputes]
    if record.override is not None:
        category = f"{record.override.category}: " if record.override.category else ""
        fields |= {
            "skip_reason": f"{category}{record.override.reason}",
            "skipped_by": record.override.by,
            "skipped_at": record.override.at,
            "requires_manual_commit": not record.is_finished,
        }
    return fields


def _list_recent_failures(view: RunView) -> list[YamlValue]:
    failures: list[tuple[tuple[int, str], TaskView, AttemptFailure]] = []
    for task in view.tasks:
        when = {step.attempt: (step.seq, step.at) for step in task.steps if step.kind == "failed"}
        failures += [(when.get(failure.attempt, (0, "")), task, failure) for failure in task.record.failures]
        unanswered = [(step.seq, step.at) for step in task.steps if step.kind == "unanswered"]
        reviews = task.record.review_failures
        failures += [(at, task, failure) for at, failure in zip(unanswered[-len(reviews) :], reviews, strict=False)]
    failures.sort(key=lambda entry: entry[0])
    return [_failure_fields(view, task, failure) for _, task, failure in failures[-_MAX_FAILURES:]]


def _failure_fields(view: RunView, task: TaskView, failure: AttemptFailure) -> dict[str, YamlValue]:
    record = task.record
    return {
        "task": _task_name(view, task),
        "attempt": failure.attempt,
        "failure_type": failure.type.value,
        "error": failure.error,
        "recovered": record.state is TaskState.APPROVED,
        "resolution": describe_resolution(task, failure),
    }


def describe_resolution(task: TaskView, failure: AttemptFailure) -> str:
    """Describe what followed a failure."""
    record = task.record
    if record.state is TaskState.APPROVED:
        return f"attempt {record.attempt} passed"
    if record.override is not None:
        return f"{describe_status(record)}, on the word of {make_visible(record.override.by)}"
    if failure.attempt < record.attempt:
        return f"attempt {failure.attempt + 1} followed"
    return "a person is asked" if is_exhausted(record) else "another attempt follows"


def _list_concerns(view: RunView) -> Iterator[str]:
    yield from view.warnings
    for task in view.tasks:
        for concern in dict.fromkeys(task.record.concerns):
            yield f"{task.record.id}: {concern}"


def render_summary_page(view: RunView) -> str:
    """Return the content of SUMMARY.md."""
    parts = [f"---\n{format_yaml(_frontmatter(view))}\n---", f"# Summary: {escape_markdown(view.plan.title)}"]
    parts += _format_warnings(view)
    parts.append(_format_outcome(view))
    parts.append("## What was done")
    for task in view.tasks:
        parts += _summarize_task(view.plan.get_task(task.record.id), task)
    if view.requirements:
        parts += ["## Added requirements", "\n".join(map(_format_requirement, view.requirements))]
    if view.must_haves:
        parts += ["## Must-haves", "\n".join(_format_must_have(have) for have in view.must_haves)]
    parts += ["## How to check it", _format_check_commands(view)]
    return "\n\n".join(parts) + "\n"


def _frontmatter(view: RunView) -> dict[str, YamlValue]:
    return {
        "phase": view.plan.phase,
        "plan": view.plan.plan,
        "run": view.run_id,
        "outcome": view.outcome.value if view.outcome else None,
        "branch": view.branch,
        "commits": [task.record.commit for task in view.tasks if task.record.commit],
        "duration": format_time_between(view.started_at, view.updated_at),
    }


def format_time_between(start: str, end: str) -> str:
    """Format the time between two timestamps as `1 h 2 min 3 s`."""
    return format_duration(max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()))


def format_duration(elapsed: float) -> str:
    """Format a number of seconds as `1 h 2 min 3 s`."""
    seconds = max(0, round(elapsed))
    hours, minutes = seconds // 3600, seconds // 60 % 60
    parts = ((hours, "h"), (minutes, "min"), (seconds % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def _format_warnings(view: RunView) -> Iterator[str]:
    """Yield what was skipped, forced or left out, as the first thing to read."""
    yield from (f"**WARNING: {escape_markdown(warning)}**" for warning in view.warnings)


def _format_outcome(view: RunView) -> str:
    outcome = view.outcome.value if view.outcome else "not finished"
    why = f": {escape_markdown(view.reason)}" if view.reason else ""
    how = (
        f"Executor {code_span(view.executor)}, architect {code_span(view.architect)}, branch {code_span(view.branch)}."
    )
    return f"Outcome: **{outcome}**{why}. {how} Written by Proofstone from its ledger."


def _summarize_task(plan: PlanTask, task: TaskView) -> Iterator[str]:
    yield f"### {escape_markdown(plan.name)} ({plan.id})"
    yield "\n".join(_format_facts(plan, task))
    if criteria := [_format_criterion(result) for result in task.criteria]:
        yield "\n".join(("Done when:", "", *criteria))
    if concerns := list(dict.fromkeys(task.record.concerns)):
        yield "\n".join(("Concerns:", "", *(f"- {escape_markdown(concern)}" for concern in concerns)))
    if task.record.failures:
        yield "\n".join(("Attempts that did not pass:", "", *_format_failures(task)))


def _format_facts(plan: PlanTask, task: TaskView) -> Iterator[str]:
    record = task.record
    yield f"- state: {describe_status(record)}"
    if record.commit:
        yield f"- commit: {code_span(record.commit)}"
    if record.evidence and record.commit:
        yield "- files: " + (", ".join(code_span(path) for path in record.evidence.changed) or "none")
    if task.confidence:
        yield f"- confidence: {task.confidence.value}"
        yield from (f"  - {escape_markdown(str(reason))}" for reason in task.reasons)
    if not plan.type.is_checkpoint:
        yield f"- attempts: {record.attempt}"
    for acceptance in record.evidence.accepted if record.evidence else ():
        yield f"- accepted: {escape_markdown(describe_acceptance(acceptance))}"
    for dispute in record.disputes:
        yield f"- disputed: {escape_markdown(describe_dispute(dispute))}"
    if losses := format_trajectory(record.failures):
        yield f"- loss after attempts that did not pass: {losses}"
    if record.state is TaskState.BLOCKED:
        yield f"- blocked: {escape_markdown(record.blocked_by)}"
    elif record.note and record.is_finished and (record.checkpoint or record.override):
        yield f"- a person's note: {escape_markdown(record.note)}"


def _format_criterion(result: CriterionResult) -> str:
    """Format a criterion with its evidence. A task that did not pass has none."""
    mark = "x" if result.status in (CriterionStatus.SHOWN, CriterionStatus.JUDGED) else " "
    added = " (added while it ran)" if result.is_added else ""
    if result.status is CriterionStatus.OPEN:
        return f"- [ ] {escape_markdown(result.criterion)}{added}"
    return f"- [{mark}] {escape_markdown(result.criterion)}{added}: {_describe_evidence(result)}"


def _describe_evidence(result: CriterionResult) -> str:
    if result.status is CriterionStatus.SHOWN:
        command = f", {code_span(result.command)}" if result.command else ""
        return f"shown by {code_span(result.check or '')}{command}"
    if result.status is CriterionStatus.JUDGED:
        return f"judged by {', '.join(map(code_span, result.judged_by))}; no check shows it"
    return escape_markdown(describe_criterion(result))


def _needs_word(result: CriterionResult) -> bool:
    return result.status in (CriterionStatus.UNJUDGED, CriterionStatus.UNMET)


def _format_task_criterion(result: CriterionResult) -> str:
    return f"- [ ] {result.task}: {escape_markdown(result.criterion)}: {_describe_evidence(result)}"


def _format_requirement(result: RequirementResult) -> str:
    mark = "x" if result.is_met else " "
    detail = f": {escape_markdown(result.detail)}" if result.detail else ""
    met = "" if result.is_met else " is **not met**"
    return f"- [{mark}] {escape_markdown(result.text)} (added by {escape_markdown(result.added_by)}){met}{detail}"


def _format_failures(task: TaskView) -> Iterator[str]:
    for failure in task.record.failures:
        result = describe_resolution(task, failure)
        yield f"- attempt {failure.attempt}, {failure.type.value}: {escape_markdown(failure.error)} ({result})"


def _format_must_have(result: MustHaveResult) -> str:
    detail = f": {escape_markdown(result.detail)}" if result.detail else ""
    if result.holds is None:
        return f"- [ ] {escape_markdown(result.what)}: for a person to judge{detail}"
    return (
        f"- [{'x' if result.holds else ' '}] "
        f"{escape_markdown(result.what)}{'' if result.holds else ': does not hold'}{detail}"
    )


def _format_check_commands(view: RunView) -> str:
    return "\n".join(
        (
            f"- {code_span(f'proofstone ledger show {view.run_id}')}: every check and every event of the run",
            f"- {code_span('proofstone ledger verify')}: that nobody has changed the record since",
            f"- {code_span(f'git log --stat {view.base_commit[:12]}..{view.branch}')}: the commits, one for each task",
        )
    )


_PLAN_NAME: Final = re.compile(r"^(?P<before>.*?)PLAN\.md$", re.IGNORECASE)
PAGE_MARK: Final = "Written by Proofstone from its ledger"
"""Part of every page, so that Proofstone never overwrites a page of somebody else."""


def name_state_page(plan: str) -> str:
    """Return the name of the state page: `03-01-STATE.md` for `03-01-PLAN.md`, since a folder may hold several
    plans.
    """
    return f"{_read_prefix(plan)}STATE.md"


def name_summary_page(plan: str) -> str:
    """Return the name of the summary page."""
    return f"{_read_prefix(plan)}SUMMARY.md"


def name_temporary_page(page: str, run_id: str) -> str:
    """Return the temporary name while a page is written. Only the beginning of a long name is used."""
    beginning = page.encode("utf-8", "surrogateescape")[:180].decode("utf-8", "ignore")
    return f".{beginning}.{run_id}.proofstone"


def list_summary_patterns(plan: str) -> tuple[str, ...]:
    """Return where the summary of another plan may be, relative to the folder of a plan that depends on it."""
    names = (f"{plan}-SUMMARY.md", f"{plan}/SUMMARY.md")
    return tuple(f"{folder}{name}" for folder in ("", "../", "../*/") for name in names)


def _read_prefix(plan: str) -> str:
    match = _PLAN_NAME.match(plan)
    return match["before"] if match else ""
