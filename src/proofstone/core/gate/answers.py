"""What a person is asked about a task, and the commands with which they answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from proofstone.contracts.gate import TaskState
from proofstone.contracts.gate_report import RunView, TaskView

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
