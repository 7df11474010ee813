"""The state machine of the task gate: which tasks may start, what may follow what, retries, and the outcome. Pure.

A transition that is not in the table is an error and changes nothing. Two transitions need more than a place in the
table: a task is approved only if the PASS rule (`passing`) holds for the recorded evidence, and committed only with the
exact tree that the evidence is about.

The outcome of a run:

    | first match                                                                  | outcome          |
    |------------------------------------------------------------------------------|------------------|
    | the budget is exhausted                                                      | budget_exhausted |
    | 3 tasks of one wave failed, or claims were wrong in 3 tasks                  | halted           |
    | a task failed and has no attempts left, and not only because of findings that a person may accept | failed |
    | a must-have does not hold, or a person says that a criterion is not met      | failed           |
    | a person is asked: checkpoint, review, blocked task, dispute, acceptance, work they must commit | needs_human |
    | nobody has judged a criterion, or an added requirement is not met            | needs_human      |
    | every task is finished                                                       | passed           |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import CLAIM_MISMATCH, AttemptFailure, FailureType, TaskState
from proofstone.check.rules.disputes import describe_disputes
from proofstone.check.rules.outcome import ACCEPTABLE_RULES
from proofstone.common.globs import may_overlap
from proofstone.gate.models import (
    GATE_POLICY,
    AttemptApproved,
    AttemptChecked,
    AttemptExecuted,
    AttemptFailed,
    AttemptStarted,
    BranchMoved,
    CriteriaAdded,
    MustHaveResult,
    OverrideAction,
    ReviewEscalated,
    ReviewFailed,
    ReviewRepeated,
    RunOutcome,
    TaskAccepted,
    TaskBlocked,
    TaskCommitted,
    TaskConfirmed,
    TaskEvent,
    TaskOverridden,
    TaskRecord,
    TaskRetried,
)
from proofstone.gate.rules.pass_rule import find_unmet
from proofstone.plans.models import Plan, PlanTask


def find_startable(
    plan: Plan, records: Mapping[str, TaskRecord], busy: Collection[str], held: Collection[str], slots: int
) -> list[str]:
    """Return the tasks to start, in the order of the document.

    `busy`: tasks whose executors are at work; `held`: tasks in any stage, whose files no other task may touch
    meanwhile.
    """
    free = slots - len(busy)
    occupied_files = [plan.get_task(id).files for id in held]
    chosen: list[str] = []
    for task in plan.tasks:
        if len(chosen) >= free:
            break
        if task.type.is_checkpoint or not is_ready(task, records) or task.id in held:
            continue
        if any(may_overlap(task.files, files) for files in occupied_files):
            continue
        chosen.append(task.id)
        occupied_files.append(task.files)
    return chosen


def is_ready(task: PlanTask, records: Mapping[str, TaskRecord]) -> bool:
    """Whether the task only waits for a free slot or for the person."""
    pending = records[task.id].state is TaskState.PENDING
    return pending and all(records[id].is_finished for id in task.depends_on)


def find_unfinished_dependencies(task: PlanTask, records: Mapping[str, TaskRecord]) -> tuple[str, ...]:
    """Return the unfinished tasks that the task depends on."""
    return tuple(id for id in task.depends_on if not records[id].is_finished)


MAX_ATTEMPTS: Final = 3
"""The most attempts of one task, unless a person grants more. `RETRY_POLICIES` may end it earlier."""
MAX_MOVES: Final = 100
"""How often an attempt may be checked again because other tasks were committed first."""
HALT_FAILURES: Final = 3
"""The run halts if this many tasks of one wave failed."""
HALT_MISMATCHES: Final = 3
"""The run halts if the executor's claims contradict the observation in this many tasks."""


class RetryPolicy(NamedTuple):
    """What follows a failure of one type."""

    retries: int
    is_delayed: bool
    directive: str
    """What the next attempt should do differently."""


RETRY_POLICIES: Final[Mapping[FailureType, RetryPolicy]] = {
    FailureType.EXECUTION_FAILURE: RetryPolicy(2, False, "put right what stopped the last attempt"),
    FailureType.VERIFY_FAILURE: RetryPolicy(
        2, False, "make the failing checks pass by mending the work, not the checks; if a test is wrong, dispute it"
    ),
    FailureType.ARCHITECT_REJECTION: RetryPolicy(1, False, "do what the reviewer asks for"),
    FailureType.TIMEOUT: RetryPolicy(1, True, "finish what was begun; the deadline is the longest there is"),
    FailureType.MALFORMED: RetryPolicy(2, False, "write a result of the documented form, or none and an exit code"),
    FailureType.BLOCKED: RetryPolicy(0, False, "look again: what blocked the last attempt may be there by now"),
}


def can_retry(record: TaskRecord) -> bool:
    """Whether the gate itself tries again after the last recorded failure."""
    if record.state is not TaskState.FAILED or not record.failures:
        return False
    last = record.failures[-1].type
    same_type_count = sum(failure.type is last for failure in record.failures)
    if record.failures[-1].missing_program:
        return False
    return record.attempt < MAX_ATTEMPTS + record.extra_attempts and same_type_count <= (
        RETRY_POLICIES[last].retries + record.extra_attempts
    )


def can_unblock(record: TaskRecord) -> bool:
    """Whether the gate itself tries a blocked task again once the tasks that it waits for are finished."""
    within_limit = record.attempt < MAX_ATTEMPTS + record.extra_attempts
    return record.state is TaskState.BLOCKED and bool(record.waits_for) and within_limit


def must_ask_person_to_review(record: TaskRecord) -> bool:
    """Whether the architect was asked as often as it may be and gave no verdict. The limits are those of an attempt."""
    if record.state is not TaskState.REVIEWING or not record.review_failures:
        return False
    last = record.review_failures[-1]
    same_type_count = sum(failure.type is last.type for failure in record.review_failures)
    allowed = 0 if last.missing_program else RETRY_POLICIES[last.type].retries
    return same_type_count > allowed + record.extra_reviews


def starts_clean(attempt: int) -> bool:
    """Whether the attempt starts from the base. Only the second attempt continues from the work of the first."""
    return attempt != 2


def choose_directive(failures: Sequence[AttemptFailure]) -> str:
    """Return what the next attempt should do differently."""
    return RETRY_POLICIES[failures[-1].type].directive if failures else ""


def needs_delay(failures: Sequence[AttemptFailure]) -> bool:
    """Whether the next attempt is delayed. The delay is a setting."""
    return bool(failures) and RETRY_POLICIES[failures[-1].type].is_delayed


_MAX_NAMED: Final = 10
"""The most findings that a question to a person names."""


def explain_escalation(record: TaskRecord) -> str:
    """Explain why a person is asked; "" while the gate can continue by itself."""
    if record.state is TaskState.BLOCKED:
        if can_unblock(record):
            return ""
        return record.blocked_by if record.disputes else f"it is blocked: {record.blocked_by}"
    if must_ask_person_to_review(record):
        last = record.review_failures[-1]
        times = _format_times(len(record.review_failures))
        return f"the architect was asked {times} and gave no verdict ({last.type}: {last.error})"
    if record.state is not TaskState.FAILED or can_retry(record):
        return ""
    if program := record.failures[-1].missing_program:
        return f"`{program}` was not found: install it, or name another program, then try again"
    kinds = [failure.type for failure in record.failures]
    if kinds.count(FailureType.TIMEOUT) > RETRY_POLICIES[FailureType.TIMEOUT].retries:
        return f"it ran out of time {_format_times(kinds.count(FailureType.TIMEOUT))}"
    if kinds.count(FailureType.ARCHITECT_REJECTION) > RETRY_POLICIES[FailureType.ARCHITECT_REJECTION].retries:
        return f"it was rejected {_format_times(kinds.count(FailureType.ARCHITECT_REJECTION))}"
    failed = f"it failed {_format_times(len(kinds))}"
    if can_accept_findings(record):
        return f"{failed}, and only a person can decide about this:\n{_list_acceptable_findings(record)}"
    return failed


def _list_acceptable_findings(record: TaskRecord) -> str:
    """Return the findings about the last attempt that a person may accept, each on a line."""
    reasons = [reason for reason in record.failures[-1].reasons if reason.check in ACCEPTABLE_RULES]
    lines = [f"- {reason.check}: {reason.detail.splitlines()[0]}" for reason in reasons[:_MAX_NAMED]]
    return "\n".join(lines) + (f"\n- and {len(reasons) - _MAX_NAMED} more" if len(reasons) > _MAX_NAMED else "")


def _format_times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


S = TaskState

TRANSITIONS: Final[Mapping[tuple[TaskState, str], TaskState]] = {
    (S.PENDING, "started"): S.EXECUTING,
    (S.PENDING, "confirmed"): S.APPROVED,
    (S.PENDING, "blocked"): S.BLOCKED,
    (S.PENDING, "overridden"): S.SKIPPED,
    (S.EXECUTING, "executed"): S.VERIFYING,
    (S.EXECUTING, "failed"): S.FAILED,
    (S.EXECUTING, "blocked"): S.BLOCKED,
    (S.EXECUTING, "overridden"): S.SKIPPED,
    (S.VERIFYING, "checked"): S.REVIEWING,
    (S.VERIFYING, "failed"): S.FAILED,
    (S.VERIFYING, "overridden"): S.SKIPPED,
    (S.REVIEWING, "approved"): S.APPROVED,
    (S.REVIEWING, "failed"): S.FAILED,
    (S.REVIEWING, "asked"): S.REVIEWING,
    (S.REVIEWING, "unanswered"): S.REVIEWING,
    (S.REVIEWING, "ask-again"): S.REVIEWING,
    (S.REVIEWING, "moved"): S.VERIFYING,
    (S.REVIEWING, "amended"): S.VERIFYING,
    (S.REVIEWING, "overridden"): S.SKIPPED,
    (S.APPROVED, "moved"): S.VERIFYING,
    (S.APPROVED, "amended"): S.VERIFYING,
    (S.APPROVED, "committed"): S.APPROVED,
    (S.FAILED, "retried"): S.PENDING,
    (S.FAILED, "accepted"): S.VERIFYING,
    (S.FAILED, "overridden"): S.SKIPPED,
    (S.BLOCKED, "retried"): S.PENDING,
    (S.BLOCKED, "overridden"): S.SKIPPED,
    (S.SKIPPED, "confirmed"): S.SKIPPED,
    (S.FORCED, "confirmed"): S.FORCED,
}
"""`overridden` leads to FORCED instead if the person forced the task."""


class GateError(Exception):
    """The event is not allowed in the task's state."""


def apply_task_event(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """Return the task after the event. Raise GateError, and change nothing, if the event is not allowed."""
    to = TRANSITIONS.get((record.state, event.kind))
    if to is None:
        raise GateError(f"{record.id}: `{event.kind}` cannot happen to a task that is {record.state}")
    if refusal := _find_refusal(record, event):
        raise GateError(f"{record.id}: {refusal}")
    return record.model_copy(update={"state": to, **_derive_changes(record, event)})


def _find_refusal(record: TaskRecord, event: TaskEvent) -> str:
    """Explain why the event is not allowed although the table has it; "" if it is allowed."""
    match event:
        case AttemptStarted() if record.checkpoint:
            return "a checkpoint is confirmed by the person, not executed"
        case AttemptStarted() if event.attempt != record.attempt + 1:
            return f"attempt {event.attempt} cannot follow attempt {record.attempt}"
        case TaskBlocked() if record.state is S.PENDING and not record.checkpoint:
            return "it was not tried yet"
        case TaskConfirmed() if not record.checkpoint and record.override is None:
            return "only a checkpoint can be confirmed; a task must pass"
        case TaskConfirmed() if record.override and record.has_work and event.commit is None and not event.is_left_out:
            return "its work is not committed yet"
        case AttemptChecked() if event.evidence.claim != record.claim:
            return "the evidence is about another attempt"
        case AttemptApproved():
            return _explain_missing_pass(record, event)
        case BranchMoved() | CriteriaAdded() if record.commit is not None or record.checkpoint:
            return "there is nothing left to check"
        case ReviewRepeated() if not must_ask_person_to_review(record):
            return "its architect is asked anyway"
        case BranchMoved() if record.moves >= MAX_MOVES:
            return f"other tasks were committed first {record.moves} times"
        case TaskCommitted():
            return _explain_missing_verification(record, event)
        case AttemptFailed() if event.failure.attempt != record.attempt:
            return f"attempt {event.failure.attempt} is not under way"
        case TaskAccepted() if record.claim is None or record.tree is None or not can_accept_findings(record):
            return "no finding about it can be accepted"
        case TaskRetried() if event.by == GATE_POLICY and not (can_retry(record) or can_unblock(record)):
            return "it has no attempts left"
    return ""


def _explain_missing_pass(record: TaskRecord, event: AttemptApproved) -> str:
    if record.evidence is None:
        return "it has no evidence"
    return "; ".join(reason.detail for reason in find_unmet(record.evidence, event.verdicts))


def _explain_missing_verification(record: TaskRecord, event: TaskCommitted) -> str:
    if record.checkpoint or record.commit is not None or record.evidence is None:
        return "there is nothing to commit"
    if (event.tree, event.commit) != (record.evidence.tree, record.candidate):
        return "the commit is not the one that was verified"
    return ""


def _derive_changes(record: TaskRecord, event: TaskEvent) -> dict[str, object]:
    """Return the fields of the record that the event changes."""
    match event:
        case AttemptStarted():
            fresh = {"claim": None, "evidence": None, "candidate": None, "verdicts": (), "moves": 0, "asked": None}
            fresh |= {"review_failures": (), "extra_reviews": 0}
            kept = tuple(acceptance for acceptance in record.accepted if acceptance.subject)
            changes = {"attempt": event.attempt, "base_commit": event.base_commit, "tree": event.tree}
            return {**changes, "accepted": kept, "disputes": (), **fresh}
        case AttemptExecuted():
            return {"claim": event.claim, "tree": event.tree}
        case AttemptChecked():
            others = tuple(verdict for verdict in record.verdicts if verdict.by != event.rules.by)
            return {"evidence": event.evidence, "candidate": event.commit, "verdicts": (event.rules, *others)}
        case AttemptApproved():
            return {"verdicts": event.verdicts}
        case ReviewEscalated():
            return {"asked": event.verdict}
        case ReviewFailed():
            return {"review_failures": (*record.review_failures, event.failure)}
        case ReviewRepeated():
            seconds = event.seconds or record.deadline_seconds
            extra = record.extra_reviews + len(record.review_failures)
            return {"extra_reviews": extra, "deadline_seconds": seconds}
        case BranchMoved():
            return {"evidence": None, "candidate": None, "moves": record.moves + 1}
        case CriteriaAdded():
            return {"evidence": None, "candidate": None, "verdicts": (), "asked": None, "moves": record.moves + 1}
        case AttemptFailed():
            tree_update = {"tree": event.tree} if event.tree else {}
            return {"failures": (*record.failures, event.failure), "evidence": None, "candidate": None, **tree_update}
        case TaskBlocked():
            tree_update = {"tree": event.tree} if event.tree else {}
            changes = {"blocked_by": event.error, "disputes": event.disputes, "waits_for": event.waits_for}
            return {**changes, "failures": (*record.failures, *_list_blocked_attempt(record, event)), **tree_update}
        case TaskRetried():
            is_extra = event.by != GATE_POLICY and not can_retry(record)
            return {
                "extra_attempts": record.extra_attempts + is_extra,
                "note": event.note or record.note,
                "deadline_seconds": event.seconds or record.deadline_seconds,
                "accepted": (*record.accepted, *event.accepted),
                "disputes": (),
            }
        case TaskAccepted():
            return {"accepted": (*record.accepted, *event.accepted)}
        case TaskOverridden():
            state = S.FORCED if event.override.action is OverrideAction.FORCE else S.SKIPPED
            return {"override": event.override, "state": state, "has_work": event.has_work}
        case TaskConfirmed():
            settled_by = event.commit or ("" if record.override else None)
            return {"note": event.note, "settled_by": settled_by}
        case TaskCommitted():
            return {"commit": event.commit}


def _list_blocked_attempt(record: TaskRecord, event: TaskBlocked) -> tuple[AttemptFailure, ...]:
    """Return the attempt that ended because something blocked it. A checkpoint and a dispute are none."""
    if record.state is not S.EXECUTING or event.disputes:
        return ()
    return (AttemptFailure(attempt=record.attempt, type=FailureType.BLOCKED, error=event.error),)


def draw_state_diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    arrows: dict[tuple[TaskState, TaskState], list[str]] = {}
    for (state, kind), to in TRANSITIONS.items():
        targets = (S.SKIPPED, S.FORCED) if kind == "overridden" else (to,)
        for target in targets:
            word = {S.SKIPPED: "skip", S.FORCED: "force"}.get(target, kind) if kind == "overridden" else kind
            arrows.setdefault((state, target), []).append(word)
    lines = [f"    {start} --> {end}: {', '.join(words)}" for (start, end), words in arrows.items()]
    return "\n".join(("stateDiagram-v2", f"    [*] --> {S.PENDING}", *lines, f"    {S.APPROVED} --> [*]"))


_FOLLOWING_CHECKS: Final = ("verify", "signals")
"""Conditions of the gate that fail only because of the findings beside them."""


def list_acceptable_rules(record: TaskRecord) -> tuple[str, ...]:
    """Return the rules of the findings about the last attempt that a person may accept."""
    reasons = record.failures[-1].reasons if record.state is TaskState.FAILED and record.failures else ()
    return tuple(dict.fromkeys(reason.check for reason in reasons if reason.check in ACCEPTABLE_RULES))


def can_accept_findings(record: TaskRecord) -> bool:
    """Whether the last attempt failed only because of findings that a person may accept."""
    if not list_acceptable_rules(record):
        return False
    return all(
        reason.check in ACCEPTABLE_RULES or reason.layer == "cascade" or reason.check in _FOLLOWING_CHECKS
        for reason in record.failures[-1].reasons
    )


def is_exhausted(record: TaskRecord) -> bool:
    """Whether the task failed and the gate does not try again."""
    return record.state is TaskState.FAILED and not can_retry(record)


def find_halt_reason(plan: Plan, records: Mapping[str, TaskRecord], recent: Collection[str]) -> str:
    """Explain why the run must stop at once; "" if it need not.

    `recent`: tasks with events since a person last resumed the run. What that person had already seen does not stop the
    run again.
    """
    failed = Counter(plan.get_task(id).wave for id in recent if is_exhausted(records[id]))
    for wave, count in sorted(failed.items()):
        if count >= HALT_FAILURES:
            return f"{count} tasks of wave {wave} failed"
    mismatched = sorted(id for id in recent if _has_false_claims(records[id]))
    if len(mismatched) >= HALT_MISMATCHES:
        return f"the executor's claims contradict the facts in {', '.join(mismatched)}"
    return ""


def decide_run_outcome(
    plan: Plan,
    records: Mapping[str, TaskRecord],
    must_haves: Sequence[MustHaveResult],
    *,
    recent: Collection[str],
    budget: str = "",
    rejected: str = "",
    unjudged: str = "",
) -> tuple[RunOutcome, str]:
    """Return the outcome, and why it is not `passed`. `rejected` and `unjudged` say which criteria are not met, and
    which nobody has judged.
    """
    if budget:
        return RunOutcome.BUDGET_EXHAUSTED, budget
    if why := find_halt_reason(plan, records, recent):
        return RunOutcome.HALTED, why
    failed = [
        f"{plan.get_task(id).name} ({id})"
        for id, record in records.items()
        if is_exhausted(record) and not can_accept_findings(record)
    ]
    if failed:
        return RunOutcome.FAILED, f"failed: {', '.join(failed)}"
    missing = [have for have in must_haves if have.holds is False]
    if missing:
        return RunOutcome.FAILED, f"{missing[0].what}: {missing[0].detail}"
    if rejected:
        return RunOutcome.FAILED, rejected
    if all(record.is_finished for record in records.values()):
        return (RunOutcome.NEEDS_HUMAN, unjudged) if unjudged else (RunOutcome.PASSED, "")
    questioned = [task.id for task in plan.tasks if _needs_person(task, records)]
    disputes = [dispute for record in records.values() for dispute in record.disputes]
    why = f": {describe_disputes(disputes)}" if disputes else ""
    return RunOutcome.NEEDS_HUMAN, f"a person must decide about {', '.join(questioned)}{why}"


def _needs_person(task: PlanTask, records: Mapping[str, TaskRecord]) -> bool:
    """Whether the task waits for a person, and not for another task."""
    record = records[task.id]
    if record.state is TaskState.PENDING:
        return is_ready(task, records)
    return not record.is_finished and not can_unblock(record)


def _has_false_claims(record: TaskRecord) -> bool:
    if record.evidence is not None and record.evidence.mismatches:
        return True
    last = record.failures[-1:]
    return any(reason.check == CLAIM_MISMATCH for failure in last for reason in failure.reasons)
