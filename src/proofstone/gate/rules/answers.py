"""The questions to a person with the commands that answer them, the result document of a task, and its commit message.
Pure.

A commit message is `type(phase-plan): name`, followed by the plan, the task and the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import ArchitectVerdict, Failure, TaskState
from proofstone.check.rules.protected import Role, roles
from proofstone.common.models import Confidence, Contract
from proofstone.gate.models import CriterionLink, RunView, TaskRecord, TaskView, VerifyRun
from proofstone.plans.models import Plan, PlanTask

S = TaskState


class Ask(StrEnum):
    """What a person is asked to do."""

    CHECKPOINT = "checkpoint"
    """Look at, decide or do something, and report it."""
    WORK = "work"
    """Do the task."""
    REVIEW = "review"
    FAILURE = "failure"
    """Decide about a task that failed or is blocked, and that the gate does not retry by itself."""
    COMMIT = "commit"
    """Commit a task that the person skipped or forced."""


class Answer(NamedTuple):
    """A command that answers a question, and what it means."""

    command: str
    means: str


_BY_STATE: Final[Mapping[TaskState, Ask]] = {
    S.PENDING: Ask.CHECKPOINT,
    S.EXECUTING: Ask.WORK,
    S.REVIEWING: Ask.REVIEW,
    S.FAILED: Ask.FAILURE,
    S.BLOCKED: Ask.FAILURE,
    S.SKIPPED: Ask.COMMIT,
    S.FORCED: Ask.COMMIT,
}


def asked(task: TaskView) -> Ask | None:
    """Return what the person is asked about the task, if anything."""
    return _BY_STATE.get(task.record.state) if task.asks else None


def waiting(view: RunView) -> tuple[TaskView, ...]:
    """Return the tasks about which a person is asked."""
    return tuple(task for task in view.tasks if asked(task))


def answers(run_id: str, task: TaskView) -> tuple[Answer, ...]:
    """Return every command that answers the question about the task."""
    about = f"{run_id} {task.record.id}"
    match asked(task):
        case Ask.CHECKPOINT:
            return (Answer(f'proofstone done {about} --note "…"', "you have done, seen or decided it"),)
        case Ask.WORK:
            where = f" in {task.work_tree}" if task.work_tree else ""
            return (Answer(f"proofstone done {about}", f"your work{where} is finished"),)
        case Ask.REVIEW:
            return (
                Answer(f"proofstone approve {about} approved", "it is what the plan asks for"),
                Answer(f'proofstone approve {about} rejected --reason "…"', "it is not, and why"),
            )
        case Ask.FAILURE:
            return (
                Answer(f"proofstone resume {run_id} --retry {task.record.id}", "try it again"),
                Answer(
                    f'proofstone resume {run_id} --retry {task.record.id} --note "…"',
                    "try it again, and say what to do differently",
                ),
                Answer(f"proofstone ledger show {run_id}", "see what happened"),
                Answer(
                    f'proofstone skip {about} --category verify-unavailable --reason "…"',
                    "skip verification and commit it yourself",
                ),
            )
        case Ask.COMMIT:
            return (Answer(f"proofstone done {about}", "you have committed it yourself"),)
        case None:
            return ()


def resume(run_id: str) -> str:
    """Return the command that resumes the run."""
    return f"proofstone resume {run_id}"


class ExecutorPart(Contract):
    """The executor's part of a task result."""

    status: str
    files_modified: tuple[str, ...]
    """The changed files that Proofstone observed."""
    claimed_files: tuple[str, ...] | None
    evidence: str
    mismatches: tuple[str, ...]


class GateResult(Contract):
    """The complete result of one task at the gate."""

    task: str
    task_id: str
    attempts: int
    executor: ExecutorPart | None
    verify: tuple[VerifyRun, ...]
    architect: tuple[ArchitectVerdict, ...]
    criteria: tuple[CriterionLink, ...]
    failures: tuple[Failure, ...]
    outcome: str
    """`PASSED`, `FAILED`, or the state in which a person left the task."""
    confidence: Confidence | None
    duration_ms: int
    timestamp: str
    commit_sha: str | None
    state_updated: bool = True


def gate_result(task: PlanTask, view: TaskView) -> GateResult:
    """Build the result of a task."""
    record, evidence = view.record, view.record.evidence
    times = [datetime.fromisoformat(step.at) for step in view.steps]
    return GateResult(
        task=task.name,
        task_id=task.id,
        attempts=record.attempt,
        executor=_summarize_executor(record),
        verify=evidence.verify if evidence else (),
        architect=record.verdicts,
        criteria=evidence.criteria if evidence else (),
        failures=record.failures,
        outcome="PASSED" if record.finished and record.state is TaskState.APPROVED else record.state.value,
        confidence=view.confidence,
        duration_ms=max(0, round((times[-1] - times[0]).total_seconds() * 1000)) if times else 0,
        timestamp=view.steps[-1].at if view.steps else "",
        commit_sha=record.commit,
    )


def _summarize_executor(record: TaskRecord) -> ExecutorPart | None:
    claim = record.claim
    if claim is None:
        return None
    evidence = record.evidence
    return ExecutorPart(
        status=claim.status.value,
        files_modified=evidence.changed if evidence else (),
        claimed_files=claim.files_modified,
        evidence=claim.evidence,
        mismatches=evidence.mismatches if evidence else (),
    )


_MAX_SUBJECT = 72
_NUMBER_PREFIX = re.compile(r"^(task\s*)?\d+(\.\d+)*\s*[:.)–-]\s*", re.IGNORECASE)
_TYPE_PREFIX = re.compile(r"^(feat|fix|docs|test|refactor|chore|perf|build|ci|style)(\([^)]*\))?!?:\s*", re.IGNORECASE)
_FIX_VERB = re.compile(r"^(fix|repair|mend|correct|resolve)\b", re.IGNORECASE)


def message(plan: Plan, task: PlanTask, changed: Sequence[str], *, run_id: str) -> str:
    """Build the message of a task's commit."""
    scope = "-".join(part for part in (plan.phase, plan.plan) if part)
    name = " ".join(_NUMBER_PREFIX.sub("", task.name).split()) or task.id
    type_match = _TYPE_PREFIX.match(name)
    kind = type_match[1].lower() if type_match else kind_of(task, changed)
    title = name[type_match.end() :] if type_match else name
    subject = f"{kind}({_clean_scope(scope)}): {title}" if scope else f"{kind}: {title}"
    short_subject, is_cut = fitted(subject)
    full_title = f"{title}\n\n" if is_cut else ""
    return (
        f"{short_subject}\n\n{full_title}Plan: {plan.title}\nTask: {task.name}\nFiles:\n{listed(changed)}\n\n"
        f"Proofstone-Run: {run_id}\nProofstone-Task: {task.id}\n"
    )


def fitted(subject: str) -> tuple[str, bool]:
    """Cut the text to the length of a subject line, and return whether anything was cut."""
    if len(subject) <= _MAX_SUBJECT:
        return subject, False
    return f"{subject[: _MAX_SUBJECT - 1].rstrip()}…", True


def listed(paths: Sequence[str]) -> str:
    """Format paths as a list."""
    return "\n".join(f"- {_quote_path(path)}" for path in paths)


def kind_of(task: PlanTask, changed: Sequence[str]) -> str:
    """Return the type of the change, by the task's name and files."""
    if changed and all(path.endswith((".md", ".rst", ".txt")) or path.startswith("docs/") for path in changed):
        return "docs"
    if changed and all(Role.TESTS in roles(path) for path in changed):
        return "test"
    return "fix" if _FIX_VERB.match(_NUMBER_PREFIX.sub("", task.name)) else "feat"


def _quote_path(path: str) -> str:
    """Quote a path that could add lines of its own to the message."""
    return path if path.isprintable() else json.dumps(path)


def _clean_scope(scope: str) -> str:
    return re.sub(r"[()\s]+", "-", scope).strip("-")
