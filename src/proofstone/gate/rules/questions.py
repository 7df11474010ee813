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

from proofstone.agents.roles.models.gate import ArchitectVerdict, AttemptFailure, FailureType, TaskState
from proofstone.check.rules.acceptance import format_acceptance_trailers
from proofstone.check.rules.protected import ProtectedRole, find_roles
from proofstone.common.models import Acceptance, Confidence, ConfidenceReason, FrozenModel
from proofstone.gate.models import CriterionResult, RunView, TaskView, VerifyRun
from proofstone.gate.rules.attempt_results import AttemptResult, ExecutorSummary, summarize_executor
from proofstone.gate.rules.judgements import CRITERIA_GATE
from proofstone.gate.rules.state_machine import can_accept_findings, list_acceptable_rules, must_ask_person_to_review
from proofstone.plans.models import Plan, PlanTask

S = TaskState


class QuestionKind(StrEnum):
    """What a person is asked to do."""

    CHECKPOINT = "checkpoint"
    """Look at, decide or do something, and report it."""
    WORK = "work"
    """Do the task."""
    REVIEW = "review"
    FAILURE = "failure"
    """Decide about a task that failed or is blocked, and that the gate does not retry by itself."""
    ACCEPTANCE = "acceptance"
    """Accept the findings because of which a task failed, or have it tried again."""
    DISPUTE = "dispute"
    """Decide whether a test, a rule or a requirement that the executor disputes is wrong."""
    COMMIT = "commit"
    """Commit a task that the person skipped or forced."""


_HIDDEN_REFS: Final = "refs/"


class AnswerCommand(NamedTuple):
    """A command that answers a question, and what it means."""

    command: str
    meaning: str


_BY_STATE: Final[Mapping[TaskState, QuestionKind]] = {
    S.PENDING: QuestionKind.CHECKPOINT,
    S.EXECUTING: QuestionKind.WORK,
    S.REVIEWING: QuestionKind.REVIEW,
    S.FAILED: QuestionKind.FAILURE,
    S.BLOCKED: QuestionKind.FAILURE,
    S.SKIPPED: QuestionKind.COMMIT,
    S.FORCED: QuestionKind.COMMIT,
}


_DISPUTE_MEANINGS: Final[Mapping[str, str]] = {
    "accept": "it is wrong: the next attempt may change it",
    "reject": "it is right: the next attempt must do the task as it is written",
    "amend": "something else applies, as your note says",
}


def find_question_kind(task: TaskView) -> QuestionKind | None:
    """Return what the person is asked about the task, if anything."""
    if not task.asks:
        return None
    if task.record.disputes:
        return QuestionKind.DISPUTE
    return QuestionKind.ACCEPTANCE if can_accept_findings(task.record) else _BY_STATE.get(task.record.state)


def list_waiting_tasks(view: RunView) -> tuple[TaskView, ...]:
    """Return the tasks about which a person is asked."""
    return tuple(task for task in view.tasks if find_question_kind(task))


def list_answers(run_id: str, task: TaskView, branch: str = "") -> tuple[AnswerCommand, ...]:
    """Return every command that answers the question about the task. The commits of a part of a larger run go to a
    hidden ref, where nobody commits by hand.
    """
    is_part = branch.startswith(_HIDDEN_REFS)
    about = f"{run_id} {task.record.id}"
    match find_question_kind(task):
        case QuestionKind.CHECKPOINT:
            return (AnswerCommand(f'proofstone done {about} --note "…"', "you have done, seen or decided it"),)
        case QuestionKind.WORK:
            where = f" in {task.work_tree}" if task.work_tree else ""
            return (AnswerCommand(f"proofstone done {about}", f"your work{where} is finished"),)
        case QuestionKind.REVIEW:
            return (
                AnswerCommand(f"proofstone approve {about} approved", "it is what the plan asks for"),
                AnswerCommand(f'proofstone approve {about} rejected --reason "…"', "it is not, and why"),
                *(
                    (AnswerCommand(f"proofstone resume {run_id} --retry {task.record.id}", "ask the architect again"),)
                    if must_ask_person_to_review(task.record)
                    else ()
                ),
            )
        case QuestionKind.DISPUTE:
            return tuple(
                AnswerCommand(f'proofstone answer {run_id} {task.record.id}={option} --note "…"', meaning)
                for option, meaning in _DISPUTE_MEANINGS.items()
            )
        case QuestionKind.ACCEPTANCE | QuestionKind.FAILURE as kind:
            rules = ", ".join(list_acceptable_rules(task.record))
            accept = AnswerCommand(
                f'proofstone answer {run_id} {task.record.id}=accept --note "…"', f"accept {rules}, and say why"
            )
            return (
                *((accept,) if kind is QuestionKind.ACCEPTANCE else ()),
                AnswerCommand(f"proofstone resume {run_id} --retry {task.record.id}", "try it again"),
                AnswerCommand(
                    f'proofstone resume {run_id} --retry {task.record.id} --note "…"',
                    "try it again, and say what to do differently",
                ),
                *(
                    (
                        AnswerCommand(
                            f"proofstone resume {run_id} --retry {task.record.id} --timeout 20m",
                            "try it again with more time",
                        ),
                    )
                    if any(failure.type is FailureType.TIMEOUT for failure in task.record.failures[-1:])
                    else ()
                ),
                AnswerCommand(f"proofstone ledger show {run_id}", "see what happened"),
                AnswerCommand(
                    f'proofstone skip {about} --category verify-unavailable --reason "…"',
                    "go on without its work" if is_part else "skip verification and commit it yourself",
                ),
            )
        case QuestionKind.COMMIT:
            meaning = "go on without its work" if is_part else "you have committed it yourself"
            return (AnswerCommand(f"proofstone done {about}", meaning),)
        case None:
            return ()


def list_criteria_answers(run_id: str) -> tuple[AnswerCommand, ...]:
    """Return the commands that answer the question about the criteria that nobody has judged."""
    return (
        AnswerCommand(f"proofstone approve {run_id} {CRITERIA_GATE} approved", "you have looked, and all of them hold"),
        AnswerCommand(
            f'proofstone approve {run_id} {CRITERIA_GATE} rejected --reason "…"', "at least one does not, and which"
        ),
    )


def format_resume_command(run_id: str) -> str:
    """Return the command that resumes the run."""
    return f"proofstone resume {run_id}"


class GateResult(FrozenModel):
    """The complete result of one task at the gate."""

    task: str
    task_id: str
    attempts: int
    executor: ExecutorSummary | None
    verify: tuple[VerifyRun, ...]
    architect: tuple[ArchitectVerdict, ...]
    criteria: tuple[CriterionResult, ...]
    accepted: tuple[Acceptance, ...] = ()
    failures: tuple[AttemptFailure, ...]
    results: tuple[AttemptResult, ...] = ()
    """The complete result of each attempt."""
    outcome: str
    """`PASSED`, `FAILED`, or the state in which a person left the task."""
    confidence: Confidence | None
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""
    duration_ms: int
    timestamp: str
    commit_sha: str | None
    state_updated: bool = True


def build_gate_result(task: PlanTask, view: TaskView, results: tuple[AttemptResult, ...]) -> GateResult:
    """Build the result of a task."""
    record, evidence = view.record, view.record.evidence
    times = [datetime.fromisoformat(step.at) for step in view.steps]
    return GateResult(
        task=task.name,
        task_id=task.id,
        attempts=record.attempt,
        executor=summarize_executor(record.claim, evidence),
        verify=evidence.verify if evidence else (),
        architect=record.verdicts,
        criteria=view.criteria if evidence else (),
        accepted=evidence.accepted if evidence else (),
        failures=record.failures,
        results=results,
        outcome="PASSED" if record.is_finished and record.state is TaskState.APPROVED else record.state.value,
        confidence=view.confidence,
        reasons=view.reasons,
        duration_ms=max(0, round((times[-1] - times[0]).total_seconds() * 1000)) if times else 0,
        timestamp=view.steps[-1].at if view.steps else "",
        commit_sha=record.commit,
    )


_MAX_SUBJECT = 72
_NUMBER_PREFIX = re.compile(r"^(task\s*)?\d+(\.\d+)*\s*[:.)–-]\s*", re.IGNORECASE)
_TYPE_PREFIX = re.compile(r"^(feat|fix|docs|test|refactor|chore|perf|build|ci|style)(\([^)]*\))?!?:\s*", re.IGNORECASE)
_FIX_VERB = re.compile(r"^(fix|repair|mend|correct|resolve)\b", re.IGNORECASE)


def build_task_message(
    plan: Plan, task: PlanTask, changed: Sequence[str], *, run_id: str, accepted: Sequence[Acceptance] = ()
) -> str:
    """Build the message of a task's commit. Its trailers name what a person accepted."""
    scope = "-".join(part for part in (plan.phase, plan.plan) if part)
    name = " ".join(_NUMBER_PREFIX.sub("", task.name).split()) or task.id
    type_match = _TYPE_PREFIX.match(name)
    kind = type_match[1].lower() if type_match else classify_change(task, changed)
    title = name[type_match.end() :] if type_match else name
    subject = f"{kind}({_clean_scope(scope)}): {title}" if scope else f"{kind}: {title}"
    short_subject, is_cut = fit_subject(subject)
    full_title = f"{title}\n\n" if is_cut else ""
    return (
        f"{short_subject}\n\n{full_title}Plan: {plan.title}\nTask: {task.name}\nFiles:\n{format_paths(changed)}\n\n"
        f"Proofstone-Run: {run_id}\nProofstone-Task: {task.id}\n{format_acceptance_trailers(accepted)}"
    )


def fit_subject(subject: str) -> tuple[str, bool]:
    """Cut the text to the length of a subject line, and return whether anything was cut."""
    if len(subject) <= _MAX_SUBJECT:
        return subject, False
    return f"{subject[: _MAX_SUBJECT - 1].rstrip()}…", True


def format_paths(paths: Sequence[str]) -> str:
    """Format paths as a list."""
    return "\n".join(f"- {_quote_path(path)}" for path in paths)


def classify_change(task: PlanTask, changed: Sequence[str]) -> str:
    """Return the type of the change, by the task's name and files."""
    if changed and all(path.endswith((".md", ".rst", ".txt")) or path.startswith("docs/") for path in changed):
        return "docs"
    if changed and all(ProtectedRole.TESTS in find_roles(path) for path in changed):
        return "test"
    return "fix" if _FIX_VERB.match(_NUMBER_PREFIX.sub("", task.name)) else "feat"


def _quote_path(path: str) -> str:
    """Quote a path that could add lines of its own to the message."""
    return path if path.isprintable() else json.dumps(path)


def _clean_scope(scope: str) -> str:
    return re.sub(r"[()\s]+", "-", scope).strip("-")
