"""STATE.md: where a run stands. Derived from the ledger whenever something happens, and never read back. Pure.

SUMMARY.md: what a run has done and what shows it. Derived from the ledger, never from anybody's prose. Pure.

A plan is complete when its SUMMARY.md exists.

What the pages beside a plan are called. Pure.
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

_MOST_FAILURES: Final = 10
_HEAD: Final = (
    "Written by Proofstone from its ledger whenever something happens, and never read back: editing it changes nothing."
)


def state_page(view: RunView) -> str:
    now = current(view)
    parts = [f"# State: {prose(view.plan.title)}", _HEAD, yaml_block({"run": _run(view)})]
    if now is not None:
        parts += [f"## Current Task: {prose(_name(view, now))}", _progress(now)]
    parts.append(yaml_block({"current_task": _current_task(view, now)}))
    parts += _beside(view, now)
    parts += _questions(view)
    parts += ["## Statistics", yaml_block({"gate_stats": _statistics(view, now)})]
    parts += ["## Tasks", yaml_block({"tasks": [_task(view, task) for task in view.tasks]})]
    parts += ["## Recent failures", yaml_block({"recent_failures": _recent_failures(view)})]
    parts += ["## Concerns", yaml_block({"concerns": list(_concerns(view))})]
    return "\n\n".join(parts) + "\n"


def _name(view: RunView, task: TaskView) -> str:
    return view.plan.task(task.record.id).name


def _run(view: RunView) -> dict[str, Value]:
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


def _progress(task: TaskView) -> str:
    place = position(task)
    lines = [f"Gate Progress: {bar(place)} Step {place.step}/{STEPS}", "", *step_lines(task)]
    return "\n".join(("```", *lines, "", f"Status: {status_word(task.record)}", "```"))


def _current_task(view: RunView, task: TaskView | None) -> Value:
    if task is None:
        return None
    record, place = task.record, position(task)
    return {
        "name": _name(view, task),
        "phase": view.plan.phase,
        "plan": view.plan.plan,
        "gate_status": record.state.value,
        "gate_step": place.step,
        "executor_status": place.executor,
        "verify_status": place.verify,
        "architect_status": place.architect,
        "started_at": next((step.at for step in task.steps if step.kind == "started"), None),
        "last_step_at": task.steps[-1].at if task.steps else None,
        "attempt": record.attempt,
        "max_attempts": MAX_ATTEMPTS + record.extra_attempts,
        "previous_failures": [f"{failure.type}: {failure.error}" for failure in record.failures],
    }


def _beside(view: RunView, now: TaskView | None) -> Iterator[str]:
    """Tasks that are under way at the same time, each with a bar of its own."""
    others = [task for task in view.tasks if task.record.state in UNDER_WAY and task is not now]
    if others:
        yield "## At the same time"
    for task in others:
        yield f"### {prose(_name(view, task))}"
        yield _progress(task)


def _questions(view: RunView) -> Iterator[str]:
    tasks = waiting(view)
    if not tasks:
        return
    yield "## Waits for a person"
    for task in tasks:
        lines = [f"**{prose(_name(view, task))}** ({task.record.id}): {prose(task.asks)}", ""]
        lines += [f"- {code(answer.command)}: {prose(answer.means)}" for answer in answers(view.run_id, task)]
        yield "\n".join(lines)


def _statistics(view: RunView, now: TaskView | None) -> dict[str, Value]:
    counted = statistics(view)
    gate: Value = None
    if now is not None:
        gate = {"task": _name(view, now), "status": now.record.state.value, "attempt": now.record.attempt}
    return {
        "total_tasks": counted.total,
        "passed": counted.passed,
        "failed": counted.failed,
        "in_progress": counted.in_progress,
        "pending": counted.pending,
        "pass_rate": counted.pass_rate,
        "avg_attempts": counted.average_attempts,
        "current_gate": gate,
    }


def _task(view: RunView, task: TaskView) -> dict[str, Value]:
    record = task.record
    told: dict[str, Value] = {
        "name": _name(view, task),
        "id": record.id,
        "status": status_word(record),
        "attempts": record.attempt,
        "commit": record.commit,
    }
    if record.override is not None:
        category = f"{record.override.category}: " if record.override.category else ""
        told |= {
            "skip_reason": f"{category}{record.override.reason}",
            "skipped_by": record.override.by,
            "skipped_at": record.override.at,
            "requires_manual_commit": not record.finished,
        }
    return told


def _recent_failures(view: RunView) -> list[Value]:
    found: list[tuple[tuple[int, str], TaskView, Failure]] = []
    for task in view.tasks:
        when = {step.attempt: (step.seq, step.at) for step in task.steps if step.kind == "failed"}
        found += [(when.get(failure.attempt, (0, "")), task, failure) for failure in task.record.failures]
    found.sort(key=lambda one: one[0])
    return [_failure(view, task, failure) for _, task, failure in found[-_MOST_FAILURES:]]


def _failure(view: RunView, task: TaskView, failure: Failure) -> dict[str, Value]:
    record = task.record
    return {
        "task": _name(view, task),
        "attempt": failure.attempt,
        "failure_type": failure.type.value,
        "error": failure.error,
        "recovered": record.state is TaskState.APPROVED,
        "resolution": resolution(task, failure),
    }


def resolution(task: TaskView, failure: Failure) -> str:
    """What became of a failure."""
    record = task.record
    if record.state is TaskState.APPROVED:
        return f"attempt {record.attempt} passed"
    if record.override is not None:
        return f"{status_word(record)}, on the word of {visible(record.override.by)}"
    if failure.attempt < record.attempt:
        return f"attempt {failure.attempt + 1} followed"
    return "a person is asked" if exhausted(record) else "another attempt follows"


def _concerns(view: RunView) -> Iterator[str]:
    yield from view.warnings
    for task in view.tasks:
        for concern in dict.fromkeys(task.record.concerns):
            yield f"{task.record.id}: {concern}"


def summary_page(view: RunView) -> str:
    parts = [f"---\n{yaml(_frontmatter(view))}\n---", f"# Summary: {prose(view.plan.title)}"]
    parts += _warnings(view)
    parts.append(_outcome(view))
    parts.append("## What was done")
    for task in view.tasks:
        parts += _summary_page_task(view.plan.task(task.record.id), task)
    if view.must_haves:
        parts += ["## Must-haves", "\n".join(_must_have(have) for have in view.must_haves)]
    parts += ["## How to check it", _how_to_check(view)]
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
    """Between two time stamps, as `1 h 2 min 3 s`."""
    return lasting(max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()))


def lasting(elapsed: float) -> str:
    """So many seconds, in the same words."""
    seconds = max(0, round(elapsed))
    hours, minutes = seconds // 3600, seconds // 60 % 60
    parts = ((hours, "h"), (minutes, "min"), (seconds % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def _warnings(view: RunView) -> Iterator[str]:
    """What was skipped, forced or left out, before anything else is read."""
    yield from (f"**WARNING: {prose(warning)}**" for warning in view.warnings)


def _outcome(view: RunView) -> str:
    outcome = view.outcome.value if view.outcome else "not finished"
    why = f": {prose(view.reason)}" if view.reason else ""
    how = f"Executor {code(view.executor)}, architect {code(view.architect)}, branch {code(view.branch)}."
    return f"Outcome: **{outcome}**{why}. {how} Written by Proofstone from its ledger."


def _summary_page_task(plan: PlanTask, task: TaskView) -> Iterator[str]:
    yield f"### {prose(plan.name)} ({plan.id})"
    yield "\n".join(_facts(plan, task))
    if criteria := list(_criteria(plan, task.record)):
        yield "\n".join(("Done when:", "", *criteria))
    if concerns := list(dict.fromkeys(task.record.concerns)):
        yield "\n".join(("Concerns:", "", *(f"- {prose(concern)}" for concern in concerns)))
    if task.record.failures:
        yield "\n".join(("Attempts that did not pass:", "", *_failures(task)))


def _facts(plan: PlanTask, task: TaskView) -> Iterator[str]:
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
        yield f"- a person's word: {prose(record.note)}"


def _criteria(plan: PlanTask, record: TaskRecord) -> Iterator[str]:
    """Each with what shows it; nothing is shown of a task that did not pass."""
    if record.evidence is None or record.commit is None:
        yield from (f"- [ ] {prose(criterion)}" for criterion in plan.done)
        return
    for link in record.evidence.criteria:
        yield f"- [x] {prose(link.criterion)}: {_shown_by(link, record.verdicts)}"


def _shown_by(link: CriterionLink, verdicts: tuple[ArchitectVerdict, ...]) -> str:
    if link.check is not None:
        return f"shown by {code(link.check)}"
    names = ", ".join(code(verdict.by or "architect") for verdict in verdicts)
    return f"on the word of {names or 'the architect'}; no check shows it"


def _failures(task: TaskView) -> Iterator[str]:
    for failure in task.record.failures:
        became = resolution(task, failure)
        yield f"- attempt {failure.attempt}, {failure.type.value}: {prose(failure.error)} ({became})"


def _must_have(one: MustHaveResult) -> str:
    detail = f": {prose(one.detail)}" if one.detail else ""
    if one.holds is None:
        return f"- [ ] {prose(one.what)}: for a person to judge{detail}"
    return f"- [{'x' if one.holds else ' '}] {prose(one.what)}{'' if one.holds else ': does not hold'}{detail}"


def _how_to_check(view: RunView) -> str:
    return "\n".join(
        (
            f"- {code(f'proofstone ledger show {view.run_id}')}: every check and every event of the run",
            f"- {code('proofstone ledger verify')}: that nobody has changed the record since",
            f"- {code(f'git log --stat {view.base_commit[:12]}..{view.branch}')}: the commits, one for each task",
        )
    )


_PLAN: Final = re.compile(r"^(?P<before>.*?)PLAN\.md$", re.IGNORECASE)
MARK: Final = "Written by Proofstone from its ledger"
"""Stands in every page, so that nobody else's is ever overwritten."""


def state_name(plan: str) -> str:
    """`03-01-PLAN.md` has `03-01-STATE.md` beside it, since a folder may hold several plans; others STATE.md."""
    return f"{_before(plan)}STATE.md"


def summary_name(plan: str) -> str:
    return f"{_before(plan)}SUMMARY.md"


def aside_name(page: str, run_id: str) -> str:
    """While it is being written. The page's name may be as long as a name can be, so only its beginning is taken."""
    beginning = page.encode("utf-8", "surrogateescape")[:180].decode("utf-8", "ignore")
    return f".{beginning}.{run_id}.proofstone"


def summaries_of(plan: str) -> tuple[str, ...]:
    """Where, from the plan's own folder, the summary of another plan may lie that it depends on."""
    names = (f"{plan}-SUMMARY.md", f"{plan}/SUMMARY.md")
    return tuple(f"{folder}{name}" for folder in ("", "../", "../*/") for name in names)


def _before(plan: str) -> str:
    found = _PLAN.match(plan)
    return found["before"] if found else ""
