"""SUMMARY.md: what a run has done and what shows it. Derived from the ledger, never from anybody's prose. Pure.

A plan is complete when its SUMMARY.md exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from proofstone.contracts.gate import ArchitectVerdict, TaskState
from proofstone.contracts.gate_record import CriterionLink, TaskRecord
from proofstone.contracts.gate_report import MustHaveResult, RunView, TaskView
from proofstone.contracts.plan import PlanTask
from proofstone.core.gate.direction import trajectory
from proofstone.core.gate.page_text import Value, code, prose, yaml
from proofstone.core.gate.position import status_word
from proofstone.core.gate.state_page import resolution


def summary_page(view: RunView) -> str:
    parts = [f"---\n{yaml(_frontmatter(view))}\n---", f"# Summary: {prose(view.plan.title)}"]
    parts += _warnings(view)
    parts.append(_outcome(view))
    parts.append("## What was done")
    for task in view.tasks:
        parts += _task(view.plan.task(task.record.id), task)
    if view.must_haves:
        parts += ["## Must-haves", "\n".join(_must_have(one) for one in view.must_haves)]
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


def _task(plan: PlanTask, task: TaskView) -> Iterator[str]:
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
