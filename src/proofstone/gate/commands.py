"""Apply the commands that people give to a run. A command is recorded first, and applied when the task can accept
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proofstone.agents.roles.models.gate import ArchitectDecision, ArchitectVerdict, Recommendation, TaskState
from proofstone.check.rules.acceptance import build_acceptances, list_disputed_rules
from proofstone.common.models import Acceptance, Confidence, VerdictDispute
from proofstone.errors import InputError
from proofstone.gate.architect_review import make_review_event
from proofstone.gate.attempt_checks import find_foreign_commits
from proofstone.gate.context import GateJournal
from proofstone.gate.models import (
    GateSetup,
    ReviewRepeated,
    TaskAccepted,
    TaskBlocked,
    TaskConfirmed,
    TaskEvent,
    TaskOverridden,
    TaskRecord,
    TaskRetried,
)
from proofstone.gate.request import UserCommand, UserCommandKind
from proofstone.gate.rules.pass_rule import find_security_blockers
from proofstone.gate.rules.state_machine import (
    GateError,
    apply_task_event,
    can_accept_findings,
    is_ready,
    list_acceptable_rules,
    must_ask_person_to_review,
)
from proofstone.git.repository import Repository

_OVERRIDDEN = (TaskState.SKIPPED, TaskState.FORCED)


def apply_commands(
    journal: GateJournal, hears: Callable[[str], bool], repository: Repository, setup: GateSetup
) -> list[str]:
    """Apply every pending command that can be applied now, and return the tasks that changed. The others stay
    pending.
    """
    changed = []
    for seq, task_id, command in list(journal.pending_commands()):
        if not hears(task_id):
            continue
        try:
            event = _derive_event(journal, journal.records[task_id], command, repository, setup)
        except InputError as error:
            journal.mark_applied(seq, str(error))  # the command came too late
            continue
        if event is not None:
            journal.record_event(task_id, event, word=seq)
            changed.append(task_id)
    return changed


def validate_command(
    journal: GateJournal, task_id: str, command: UserCommand, repository: Repository, setup: GateSetup
) -> None:
    """Raise InputError, before anything is recorded, if the command makes no sense in the task's current state."""
    _derive_event(journal, journal.records[task_id], command, repository, setup)


def _derive_event(
    journal: GateJournal, record: TaskRecord, command: UserCommand, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    """Return the event that follows, or None if the command is for the executor at work on the task.

    Raise InputError if the command makes no sense.
    """
    event = _find_event(journal, record, command, repository, setup)
    if event is not None:
        try:
            apply_task_event(record, event)
        except GateError as error:
            raise InputError(str(error), hint="`proofstone status` shows the open questions") from error
    return event


def _find_event(
    journal: GateJournal, record: TaskRecord, command: UserCommand, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    match command.kind:
        case UserCommandKind.DONE:
            return _confirm(journal, record, command, repository, setup)
        case UserCommandKind.APPROVED | UserCommandKind.REJECTED:
            return _make_verdict_event(record, command)
        case UserCommandKind.RETRY:
            if must_ask_person_to_review(record):
                return ReviewRepeated(by=command.by, seconds=command.seconds)
            if record.state not in (TaskState.FAILED, TaskState.BLOCKED):
                raise InputError(f"{record.id} is {record.state}: there is nothing to try again")
            return TaskRetried(by=command.by, note=command.text, seconds=command.seconds)
        case UserCommandKind.ACCEPT if record.disputes:
            return _decide_dispute(record, command, "is right", accept_disputed(record.disputes, command))
        case UserCommandKind.ACCEPT:
            rules = list_acceptable_rules(record)
            if not can_accept_findings(record):
                raise InputError(f"{record.id} is {record.state}: no finding about it can be accepted")
            reasons = dict.fromkeys(rules, command.text)
            return TaskAccepted(accepted=build_acceptances(reasons, command.by, command.method))
        case UserCommandKind.REJECT:
            return _decide_dispute(record, command, "is rejected; do the task as it is written")
        case UserCommandKind.AMEND:
            return _decide_dispute(record, command, "is decided otherwise")
        case UserCommandKind.SKIP | UserCommandKind.FORCE:
            if record.state in (*_OVERRIDDEN, TaskState.APPROVED) or command.override is None:
                raise InputError(f"{record.id} is {record.state}: you can no longer skip or force it")
            if blockers := find_security_blockers(record):
                raise InputError(f"{record.id}: you cannot skip or force this: {blockers[0]}", hint="fix it")
            return TaskOverridden(override=command.override, has_work=_has_work(record, repository))


def _decide_dispute(
    record: TaskRecord, command: UserCommand, decision: str, accepted: tuple[Acceptance, ...] = ()
) -> TaskEvent:
    """Return the event with which the next attempt begins and is told the decision."""
    if not record.disputes:
        raise InputError(
            f"{record.id} is {record.state}: its executor disputes nothing",
            hint="`proofstone status` shows the open questions",
        )
    subjects = ", ".join(dispute.subject for dispute in record.disputes)
    note = f"A person decided: your dispute of {subjects} {decision}. They say: {command.text}"
    return TaskRetried(by=command.by, note=note, accepted=accepted)


def accept_disputed(disputes: Sequence[VerdictDispute], command: UserCommand) -> tuple[Acceptance, ...]:
    """Return what a person accepts who agrees with disputes: changes of the disputed tests, or the disputed rule."""
    return tuple(
        Acceptance(
            rule=rule, reason=command.text, accepted_by=command.by, method=command.method, subject=dispute.subject
        )
        for dispute in disputes
        for rule in list_disputed_rules(dispute.subject)
    )


def _confirm(
    journal: GateJournal, record: TaskRecord, command: UserCommand, repository: Repository, setup: GateSetup
) -> TaskEvent | None:
    if record.checkpoint and record.state is TaskState.PENDING:
        if not is_ready(journal.plan.get_task(record.id), journal.records):
            raise InputError(
                f"{record.id} is a checkpoint that is not due yet", hint="finish the tasks that it depends on first"
            )
        return TaskConfirmed(by=command.by, note=command.text)
    if record.state in _OVERRIDDEN:
        commits = () if setup.parent else find_foreign_commits(repository, setup, journal)
        if not commits and (setup.parent or not record.has_work):
            return TaskConfirmed(by=command.by, note=command.text, is_left_out=True)
        if not commits:
            raise InputError(
                f"{record.id} was skipped or forced, and nothing was committed to {setup.branch} in its place",
                hint=f"commit your work to {setup.branch}, then repeat this command",
            )
        return TaskConfirmed(by=command.by, note=command.text, commit=commits[-1])
    if record.state is TaskState.EXECUTING and setup.executor == "human":
        return None
    raise InputError(
        f"{record.id} is {record.state}: it is not waiting for a person to finish it",
        hint="`proofstone status` shows the open questions",
    )


def _has_work(record: TaskRecord, repository: Repository) -> bool:
    """Whether the task has left anything that a person could commit."""
    if record.checkpoint or record.tree is None or record.base_commit is None:
        return False
    return record.tree != repository.git.find_tree(record.base_commit)


def _make_verdict_event(record: TaskRecord, command: UserCommand) -> TaskEvent:
    if record.checkpoint and command.kind is UserCommandKind.REJECTED:
        return TaskBlocked(error=f"{command.by} says no: {command.text}")
    if record.state is not TaskState.REVIEWING:
        raise InputError(f"{record.id} is {record.state}: it is not waiting for a review")
    is_approval = command.kind is UserCommandKind.APPROVED
    verdict = ArchitectVerdict(
        verdict=ArchitectDecision.APPROVED if is_approval else ArchitectDecision.REJECTED,
        confidence=Confidence.HIGH,
        findings=(command.text or "a person reviewed and approved it",) if is_approval else (),
        recommendation=Recommendation.COMMIT if is_approval else Recommendation.RETRY,
        feedback="" if is_approval else command.text,
        by=f"human ({command.by})",
    )
    return make_review_event(record, verdict)
