"""What people say to a run, and the effect that it has: recorded first, heeded when the task can take it."""

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
    """Let every word that can have its effect now have it; the tasks that it was about. A task that does not hear now
    is told later."""
    touched = []
    for seq, task_id, word in list(journal.unheard()):
        if not hears(task_id):
            continue
        try:
            event = _effect(journal, journal.records[task_id], word, repository, setup)
        except InputError as error:
            journal.heard(seq, str(error))  # it came too late to mean anything
            continue
        if event is not None:
            journal.happened(task_id, event, word=seq)
            touched.append(task_id)
    return touched


def refuse_senseless(journal: Journal, task_id: str, word: Word, repository: Repository, setup: GateSetup) -> None:
    """InputError, before anything is recorded, if the word cannot mean anything for the task as it is."""
    _effect(journal, journal.records[task_id], word, repository, setup)


def _effect(
    journal: Journal, record: TaskRecord, word: Word, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    """The event that follows; None if it is for whoever is at work on the task. InputError if it means nothing."""
    event = _meant(journal, record, word, repository, setup)
    if event is not None:
        try:
            apply(record, event)
        except GateError as error:
            raise InputError(str(error), hint="`proofstone status` shows what is asked of you") from error
    return event


def _meant(
    journal: Journal, record: TaskRecord, word: Word, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    match word.kind:
        case WordKind.DONE:
            return _done(journal, record, word, repository, setup)
        case WordKind.APPROVED | WordKind.REJECTED:
            return _verdict(record, word)
        case WordKind.RETRY:
            if record.state not in (TaskState.FAILED, TaskState.BLOCKED):
                raise InputError(f"{record.id} is {record.state}: there is nothing to try again")
            return Retried(by=word.by, note=word.text)
        case WordKind.SKIP | WordKind.FORCE:
            if record.state in (*_OVERRIDDEN, TaskState.APPROVED) or word.override is None:
                raise InputError(f"{record.id} is {record.state}: it cannot be set aside any more")
            if blockers := security_blockers(record):
                raise InputError(f"{record.id}: nobody can set this aside: {blockers[0]}", hint="it must be put right")
            return Overridden(override=word.override)


def _done(
    journal: Journal, record: TaskRecord, word: Word, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    if record.checkpoint and record.state is TaskState.PENDING:
        if not ready(journal.plan.task(record.id), journal.records):
            raise InputError(
                f"{record.id} is a checkpoint whose turn has not come", hint="the tasks that it depends on come first"
            )
        return Confirmed(by=word.by, note=word.text)
    if record.state in _OVERRIDDEN:
        theirs = added_by_others(repository, setup, journal)
        if not theirs:
            raise InputError(
                f"{record.id} was set aside, and nothing was committed to {setup.branch} in its place",
                hint=f"commit your work to {setup.branch}, then say it again",
            )
        return Confirmed(by=word.by, note=word.text, commit=theirs[-1])
    if record.state is TaskState.EXECUTING and setup.executor == "human":
        return None
    raise InputError(
        f"{record.id} is {record.state}: nobody waits for a person to finish it",
        hint="`proofstone status` shows what is asked of you",
    )


def _verdict(record: TaskRecord, word: Word) -> TaskEvent:
    if record.checkpoint and word.kind is WordKind.REJECTED:
        return Blocked(error=f"{word.by} says no: {word.text}")
    if record.state is not TaskState.REVIEWING:
        raise InputError(f"{record.id} is {record.state}: nobody waits for a review of it")
    approved = word.kind is WordKind.APPROVED
    verdict = ArchitectVerdict(
        verdict=ArchitectDecision.APPROVED if approved else ArchitectDecision.REJECTED,
        confidence=Confidence.HIGH,
        findings=(word.text or "a person has looked at it and approves",) if approved else (),
        recommendation=Recommendation.COMMIT if approved else Recommendation.RETRY,
        feedback="" if approved else word.text,
        by=f"human ({word.by})",
    )
    return decided(record, verdict)
