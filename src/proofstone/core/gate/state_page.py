"""STATE.md: where a run stands. Derived from the ledger whenever something happens, and never read back. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from proofstone.contracts.gate import Failure, TaskState
from proofstone.contracts.gate_report import RunView, TaskView
from proofstone.core.gate.answers import answers, waiting
from proofstone.core.gate.outcome import exhausted
from proofstone.core.gate.page_text import Value, code, prose, visible, yaml_block
from proofstone.core.gate.position import (
    STEPS,
    UNDER_WAY,
    bar,
    current,
    position,
    statistics,
    status_word,
    step_lines,
)
from proofstone.core.gate.retry import MAX_ATTEMPTS

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
