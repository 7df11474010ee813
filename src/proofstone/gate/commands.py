"""Apply the commands that people give to a run. A command is recorded first, and applied when the task can accept
it.
"""

from __future__ import annotations

from collections.abc import Callable

from proofstone.agents.roles.models.gate import ArchitectDecision, ArchitectVerdict, Recommendation, TaskState
from proofstone.common.models import Confidence
from proofstone.errors import InputError
from proofstone.gate.checking import added_by_others
from proofstone.gate.context import Journal
from proofstone.gate.models import Blocked, Confirmed, GateSetup, Overridden, Retried, TaskEvent, TaskRecord
from proofstone.gate.request import Word, WordKind
from proofstone.gate.reviewing import decided
from proofstone.gate.rules.machine import GateError, apply, ready
from proofstone.gate.rules.passing import security_blockers
from proofstone.git.repository import Repository

_OVERRIDDEN = (TaskState.SKIPPED, TaskState.FORCED)


def heed(journal: Journal, hears: Callable[[str], bool], repository: Repository, setup: GateSetup) -> list[str]:
    """Apply every pending command that can be applied now, and return the tasks that changed. The others stay
    pending.
    """
    changed = []
    for seq, task_id, command in list(journal.unheard()):
        if not hears(task_id):
            continue
        try:
            event = _derive_event(journal, journal.records[task_id], command, repository, setup)
        except InputError as error:
            journal.heard(seq, str(error))  # the command came too late
            continue
        if event is not None:
            journal.happened(task_id, event, word=seq)
            changed.append(task_id)
    return changed


def refuse_senseless(journal: Journal, task_id: str, command: Word, repository: Repository, setup: GateSetup) -> None:
    """Raise InputError, before anything is recorded, if the command makes no sense in the task's current state."""
    _derive_event(journal, journal.records[task_id], command, repository, setup)


def _derive_event(
    journal: Journal, record: TaskRecord, command: Word, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    """Return the event that follows, or None if the command is for the executor at work on the task.

    Raise InputError if the command makes no sense.
    """
    event = _find_event(journal, record, command, repository, setup)
    if event is not None:
        try:
            apply(record, event)
        except GateError as error:
            raise InputError(str(error), hint="`proofstone status` shows the open questions") from error
    return event


def _find_event(
    journal: Journal, record: TaskRecord, command: Word, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    match command.kind:
        case WordKind.DONE:
            return _confirm(journal, record, command, repository, setup)
        case WordKind.APPROVED | WordKind.REJECTED:
            return _make_verdict_event(record, command)
        case WordKind.RETRY:
            if record.state not in (TaskState.FAILED, TaskState.BLOCKED):
                raise InputError(f"{record.id} is {record.state}: there is nothing to try again")
            return Retried(by=command.by, note=command.text)
        case WordKind.SKIP | WordKind.FORCE:
            if record.state in (*_OVERRIDDEN, TaskState.APPROVED) or command.override is None:
                raise InputError(f"{record.id} is {record.state}: you can no longer skip or force it")
            if blockers := security_blockers(record):
                raise InputError(f"{record.id}: you cannot skip or force this: {blockers[0]}", hint="fix it")
            return Overridden(override=command.override)


def _confirm(
    journal: Journal, record: TaskRecord, command: Word, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    if record.checkpoint and record.state is TaskState.PENDING:
        if not ready(journal.plan.task(record.id), journal.records):
            raise InputError(
                f"{record.id} is a checkpoint that is not due yet", hint="finish the tasks that it depends on first"
            )
        return Confirmed(by=command.by, note=command.text)
    if record.state in _OVERRIDDEN:
        commits = added_by_others(repository, setup, journal)
        if not commits:
            raise InputError(
                f"{record.id} was skipped or forced, and nothing was committed to {setup.branch} in its place",
                hint=f"commit your work to {setup.branch}, then repeat this command",
            )
        return Confirmed(by=command.by, note=command.text, commit=commits[-1])
    if record.state is TaskState.EXECUTING and setup.executor == "human":
        return None
    raise InputError(
        f"{record.id} is {record.state}: it is not waiting for a person to finish it",
        hint="`proofstone status` shows the open questions",
    )


def _make_verdict_event(record: TaskRecord, command: Word) -> TaskEvent:
    if record.checkpoint and command.kind is WordKind.REJECTED:
        return Blocked(error=f"{command.by} says no: {command.text}")
    if record.state is not TaskState.REVIEWING:
        raise InputError(f"{record.id} is {record.state}: it is not waiting for a review")
    is_approval = command.kind is WordKind.APPROVED
    verdict = ArchitectVerdict(
        verdict=ArchitectDecision.APPROVED if is_approval else ArchitectDecision.REJECTED,
        confidence=Confidence.HIGH,
        findings=(command.text or "a person reviewed and approved it",) if is_approval else (),
        recommendation=Recommendation.COMMIT if is_approval else Recommendation.RETRY,
        feedback="" if is_approval else command.text,
        by=f"human ({command.by})",
    )
    return decided(record, verdict)
