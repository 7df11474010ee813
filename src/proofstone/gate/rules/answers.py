"""What a person is asked about a task, and the commands with which they answer. Pure.

The complete result of one task at the gate, as one document. Pure.

The message of a task's commit: `type(phase-plan): name`, then what it belongs to. Pure.
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
    CHECKPOINT = "checkpoint"
    """See, decide or do something, and say so."""
    WORK = "work"
    """The work itself is theirs."""
    REVIEW = "review"
    FAILURE = "failure"
    """It failed or is blocked, and the gate does not go on by itself."""
    COMMIT = "commit"
    """They took it upon themselves: they commit it."""


class Answer(NamedTuple):
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
    return _BY_STATE.get(task.record.state) if task.asks else None


def waiting(view: RunView) -> tuple[TaskView, ...]:
    """The tasks about which a person is asked."""
    return tuple(task for task in view.tasks if asked(task))


def answers(run_id: str, task: TaskView) -> tuple[Answer, ...]:
    """Every way to answer, as one would type it."""
    about = f"{run_id} {task.record.id}"
    match asked(task):
        case Ask.CHECKPOINT:
            return (Answer(f'proofstone done {about} --note "…"', "it is done, seen or decided"),)
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
                    f'proofstone resume {run_id} --retry {task.record.id} --note "…"', "and say what to do differently"
                ),
                Answer(f"proofstone ledger show {run_id}", "look into it"),
                Answer(
                    f'proofstone skip {about} --category verify-unavailable --reason "…"',
                    "take it upon yourself, unverified",
                ),
            )
        case Ask.COMMIT:
            return (Answer(f"proofstone done {about}", "you have committed it yourself"),)
        case None:
            return ()


def resume(run_id: str) -> str:
    return f"proofstone resume {run_id}"


class ExecutorPart(Contract):
    status: str
    files_modified: tuple[str, ...]
    """What it changed, as the engine saw it."""
    claimed_files: tuple[str, ...] | None
    evidence: str
    mismatches: tuple[str, ...]


class GateResult(Contract):
    task: str
    task_id: str
    attempts: int
    executor: ExecutorPart | None
    verify: tuple[VerifyRun, ...]
    architect: tuple[ArchitectVerdict, ...]
    criteria: tuple[CriterionLink, ...]
    failures: tuple[Failure, ...]
    outcome: str
    """`PASSED`, `FAILED`, or the state in which a person has left it."""
    confidence: Confidence | None
    duration_ms: int
    timestamp: str
    commit_sha: str | None
    state_updated: bool = True


def gate_result(task: PlanTask, view: TaskView) -> GateResult:
    record, evidence = view.record, view.record.evidence
    times = [datetime.fromisoformat(step.at) for step in view.steps]
    return GateResult(
        task=task.name,
        task_id=task.id,
        attempts=record.attempt,
        executor=_executor(record),
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


def _executor(record: TaskRecord) -> ExecutorPart | None:
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


_LONGEST_SUBJECT = 72
_NUMBERED = re.compile(r"^(task\s*)?\d+(\.\d+)*\s*[:.)–-]\s*", re.IGNORECASE)
_KNOWN = re.compile(r"^(feat|fix|docs|test|refactor|chore|perf|build|ci|style)(\([^)]*\))?!?:\s*", re.IGNORECASE)
_MENDS = re.compile(r"^(fix|repair|mend|correct|resolve)\b", re.IGNORECASE)


def message(plan: Plan, task: PlanTask, changed: Sequence[str], *, run_id: str) -> str:
    scope = "-".join(part for part in (plan.phase, plan.plan) if part)
    name = " ".join(_NUMBERED.sub("", task.name).split()) or task.id
    known = _KNOWN.match(name)
    kind = known[1].lower() if known else kind_of(task, changed)
    told = name[known.end() :] if known else name
    subject = f"{kind}({_text(scope)}): {told}" if scope else f"{kind}: {told}"
    cut, is_cut = fitted(subject)
    whole = f"{told}\n\n" if is_cut else ""
    return (
        f"{cut}\n\n{whole}Plan: {plan.title}\nTask: {task.name}\nFiles:\n{listed(changed)}\n\n"
        f"Proofstone-Run: {run_id}\nProofstone-Task: {task.id}\n"
    )


def fitted(subject: str) -> tuple[str, bool]:
    """As much of it as the first line of a message should hold, and whether that is not all."""
    if len(subject) <= _LONGEST_SUBJECT:
        return subject, False
    return f"{subject[: _LONGEST_SUBJECT - 1].rstrip()}…", True


def listed(paths: Sequence[str]) -> str:
    return "\n".join(f"- {_quoted(path)}" for path in paths)


def kind_of(task: PlanTask, changed: Sequence[str]) -> str:
    """What kind of change it is, by its name and its files."""
    if changed and all(path.endswith((".md", ".rst", ".txt")) or path.startswith("docs/") for path in changed):
        return "docs"
    if changed and all(Role.TESTS in roles(path) for path in changed):
        return "test"
    return "fix" if _MENDS.match(_NUMBERED.sub("", task.name)) else "feat"


def _quoted(path: str) -> str:
    """A name cannot write lines of its own into the message."""
    return path if path.isprintable() else json.dumps(path)


def _text(scope: str) -> str:
    return re.sub(r"[()\s]+", "-", scope).strip("-")
