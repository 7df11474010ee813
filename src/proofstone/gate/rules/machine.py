"""Which tasks may start now. Pure: the same plan and the same records give the same answer.

What follows a failed attempt. Pure; the table is design and documentation at once.

The task gate: states, and what may follow what. A transition that is not in the table is an error and changes
nothing.

Two transitions ask for more than their place in the table: a task is approved only when the PASS rule
(`passing.py`) holds for the evidence on record, and committed only with the very tree that the evidence is about.

What became of a run as a whole. Pure.

| first match                                                                  | outcome          |
|------------------------------------------------------------------------------|------------------|
| the budget ran out                                                           | budget_exhausted |
| 3 tasks of one wave failed, or claims were wrong in 3 tasks                   | halted           |
| a task failed and has no attempts left, or a must-have does not hold         | failed           |
| a person is asked: checkpoint, review, blocked task, work they must commit   | needs_human      |
| every task is finished                                                       | passed           |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import CLAIM_MISMATCH, Failure, FailureType, TaskState
from proofstone.common.globs import overlap
from proofstone.gate.models import POLICY as MODELS_POLICY
from proofstone.gate.models import (
    Approved,
    Asked,
    AttemptFailed,
    Blocked,
    Checked,
    Committed,
    Confirmed,
    Executed,
    Moved,
    MustHaveResult,
    Overridden,
    OverrideAction,
    Retried,
    RunOutcome,
    Started,
    TaskEvent,
    TaskRecord,
)
from proofstone.gate.rules.passing import unmet
from proofstone.plans.models import Plan, PlanTask


def startable(
    plan: Plan, records: Mapping[str, TaskRecord], busy: Collection[str], held: Collection[str], slots: int
) -> list[str]:
    """Tasks to start, in document order. `busy`: executors at work; `held`: tasks that are under way in any stage,
    whose files nobody else may touch meanwhile."""
    free = slots - len(busy)
    taken = [plan.task(id).files for id in held]
    chosen: list[str] = []
    for task in plan.tasks:
        if len(chosen) >= free:
            break
        if task.type.is_checkpoint or not ready(task, records) or task.id in held:
            continue
        if any(overlap(task.files, files) for files in taken):
            continue
        chosen.append(task.id)
        taken.append(task.files)
    return chosen


def ready(task: PlanTask, records: Mapping[str, TaskRecord]) -> bool:
    """Whether it waits for nothing but a free slot, or the person's word."""
    pending = records[task.id].state is TaskState.PENDING
    return pending and all(records[id].finished for id in task.depends_on)


def waiting_for(task: PlanTask, records: Mapping[str, TaskRecord]) -> tuple[str, ...]:
    """The tasks that it still waits for."""
    return tuple(id for id in task.depends_on if not records[id].finished)


MAX_ATTEMPTS: Final = 3
"""Per task, in all."""
MAX_MOVES: Final = 100
"""How often one attempt may be overtaken by other commits, and be checked again for that."""
HALT_FAILURES: Final = 3
"""Tasks of one wave that failed: the run halts."""
HALT_MISMATCHES: Final = 3
"""Different tasks in which the executor's claim contradicts what the engine saw: the run halts."""


class Policy(NamedTuple):
    retries: int
    delays: bool
    then: str
    """What the next attempt is told to do differently."""


POLICY: Final[Mapping[FailureType, Policy]] = {
    FailureType.EXECUTION_FAILURE: Policy(2, False, "put right what stopped the last attempt"),
    FailureType.VERIFY_FAILURE: Policy(2, False, "make the failing checks pass by mending the work, not the checks"),
    FailureType.ARCHITECT_REJECTION: Policy(1, False, "do what the reviewer asks for"),
    FailureType.TIMEOUT: Policy(1, True, "finish what was begun; the deadline is the longest there is"),
    FailureType.MALFORMED: Policy(2, False, "write a result of the documented form, or none and an exit code"),
    FailureType.BLOCKED: Policy(0, False, ""),
}


def may_retry(record: TaskRecord) -> bool:
    """Whether the gate itself tries again, after the last failure on record."""
    if record.state is not TaskState.FAILED or not record.failures:
        return False
    last = record.failures[-1].type
    of_its_kind = sum(failure.type is last for failure in record.failures)
    return record.attempt < MAX_ATTEMPTS + record.extra_attempts and of_its_kind <= (
        POLICY[last].retries + record.extra_attempts
    )


def starts_clean(attempt: int) -> bool:
    """The second attempt goes on from what the first left; every later one starts from the base."""
    return attempt != 2


def directive(failures: Sequence[Failure]) -> str:
    return POLICY[failures[-1].type].then if failures else ""


def delays(failures: Sequence[Failure]) -> bool:
    """Whether the next attempt waits a while; how long is a setting."""
    return bool(failures) and POLICY[failures[-1].type].delays


def escalation(record: TaskRecord) -> str:
    """Why a person is asked, in words; empty while the gate can go on by itself."""
    if record.state is TaskState.BLOCKED:
        return f"it says that it is blocked: {record.blocked_by}"
    if record.state is not TaskState.FAILED or may_retry(record):
        return ""
    kinds = [failure.type for failure in record.failures]
    if kinds.count(FailureType.TIMEOUT) > POLICY[FailureType.TIMEOUT].retries:
        return "it ran out of time twice"
    if kinds.count(FailureType.ARCHITECT_REJECTION) > POLICY[FailureType.ARCHITECT_REJECTION].retries:
        return "it was rejected twice"
    return f"it failed {len(kinds)} times"


S = TaskState

TABLE: Final[Mapping[tuple[TaskState, str], TaskState]] = {
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
    (S.REVIEWING, "moved"): S.VERIFYING,
    (S.REVIEWING, "overridden"): S.SKIPPED,
    (S.APPROVED, "moved"): S.VERIFYING,
    (S.APPROVED, "committed"): S.APPROVED,
    (S.FAILED, "retried"): S.PENDING,
    (S.FAILED, "overridden"): S.SKIPPED,
    (S.BLOCKED, "retried"): S.PENDING,
    (S.BLOCKED, "overridden"): S.SKIPPED,
    (S.SKIPPED, "confirmed"): S.SKIPPED,
    (S.FORCED, "confirmed"): S.FORCED,
}
"""`overridden` leads to FORCED instead where the person forced it."""


class GateError(Exception):
    """The event cannot happen to a task in that state."""


def apply(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The task after the event; GateError, and nothing changed, if it may not happen."""
    to = TABLE.get((record.state, event.kind))
    if to is None:
        raise GateError(f"{record.id}: `{event.kind}` cannot happen to a task that is {record.state}")
    if refusal := _refusal(record, event):
        raise GateError(f"{record.id}: {refusal}")
    return record.model_copy(update={"state": to, **_learned(record, event)})


def _refusal(record: TaskRecord, event: TaskEvent) -> str:
    """Why the event may not happen although its place in the table is right."""
    match event:
        case Started() if record.checkpoint:
            return "a checkpoint is confirmed by the person, not executed"
        case Started() if event.attempt != record.attempt + 1:
            return f"attempt {event.attempt} cannot follow attempt {record.attempt}"
        case Blocked() if record.state is S.PENDING and not record.checkpoint:
            return "nobody has tried it yet"
        case Confirmed() if not record.checkpoint and (record.override is None or event.commit is None):
            return "only a checkpoint can be confirmed; a task must pass"
        case Checked() if event.evidence.claim != record.claim:
            return "the evidence is about another attempt"
        case Approved():
            return _not_passed(record, event)
        case Moved() if record.commit is not None or record.checkpoint:
            return "there is nothing left to check"
        case Moved() if record.moves >= MAX_MOVES:
            return f"it was overtaken {record.moves} times"
        case Committed():
            return _not_verified(record, event)
        case AttemptFailed() if event.failure.attempt != record.attempt:
            return f"attempt {event.failure.attempt} is not under way"
        case Retried() if event.by == MODELS_POLICY and record.state is S.FAILED and not may_retry(record):
            return "it has no attempts left"
    return ""


def _not_passed(record: TaskRecord, event: Approved) -> str:
    if record.evidence is None:
        return "it has no evidence"
    return "; ".join(reason.detail for reason in unmet(record.evidence, event.verdicts))


def _not_verified(record: TaskRecord, event: Committed) -> str:
    if record.checkpoint or record.commit is not None or record.evidence is None:
        return "there is nothing to commit"
    if (event.tree, event.commit) != (record.evidence.tree, record.candidate):
        return "what is to be committed is not what was verified"
    return ""


def _learned(record: TaskRecord, event: TaskEvent) -> dict[str, object]:
    """What the event adds to what is known."""
    match event:
        case Started():
            fresh = {"claim": None, "evidence": None, "candidate": None, "verdicts": (), "moves": 0, "asked": None}
            return {"attempt": event.attempt, "base_commit": event.base_commit, "tree": event.tree, **fresh}
        case Executed():
            return {"claim": event.claim, "tree": event.tree}
        case Checked():
            others = tuple(verdict for verdict in record.verdicts if verdict.by != event.rules.by)
            return {"evidence": event.evidence, "candidate": event.commit, "verdicts": (event.rules, *others)}
        case Approved():
            return {"verdicts": event.verdicts}
        case Asked():
            return {"asked": event.verdict}
        case Moved():
            return {"evidence": None, "candidate": None, "moves": record.moves + 1}
        case AttemptFailed():
            left = {"tree": event.tree} if event.tree else {}
            return {"failures": (*record.failures, event.failure), "evidence": None, "candidate": None, **left}
        case Blocked():
            left = {"tree": event.tree} if event.tree else {}
            return {"blocked_by": event.error, **left}
        case Retried():
            beyond = event.by != MODELS_POLICY and not may_retry(record)
            return {"extra_attempts": record.extra_attempts + beyond, "note": event.note or record.note}
        case Overridden():
            state = S.FORCED if event.override.action is OverrideAction.FORCE else S.SKIPPED
            return {"override": event.override, "state": state}
        case Confirmed():
            return {"note": event.note, "settled_by": event.commit}
        case Committed():
            return {"commit": event.commit}


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    arrows: dict[tuple[TaskState, TaskState], list[str]] = {}
    for (state, kind), to in TABLE.items():
        targets = (S.SKIPPED, S.FORCED) if kind == "overridden" else (to,)
        for target in targets:
            word = {S.SKIPPED: "skip", S.FORCED: "force"}.get(target, kind) if kind == "overridden" else kind
            arrows.setdefault((state, target), []).append(word)
    lines = [f"    {start} --> {end}: {', '.join(words)}" for (start, end), words in arrows.items()]
    return "\n".join(("stateDiagram-v2", f"    [*] --> {S.PENDING}", *lines, f"    {S.APPROVED} --> [*]"))


def exhausted(record: TaskRecord) -> bool:
    """Whether it failed and the gate does not try again."""
    return record.state is TaskState.FAILED and not may_retry(record)


def halted(plan: Plan, records: Mapping[str, TaskRecord], recent: Collection[str]) -> str:
    """Why the run must stop at once, if it must. `recent`: tasks to which something happened since a person last
    resumed the run; what they had seen by then does not stop it again."""
    failed = Counter(plan.task(id).wave for id in recent if exhausted(records[id]))
    for wave, count in sorted(failed.items()):
        if count >= HALT_FAILURES:
            return f"{count} tasks of wave {wave} failed"
    liars = sorted(id for id in recent if _contradicted(records[id]))
    if len(liars) >= HALT_MISMATCHES:
        return f"what the executor claims is not what was seen, in {', '.join(liars)}"
    return ""


def outcome(
    plan: Plan,
    records: Mapping[str, TaskRecord],
    must_haves: Sequence[MustHaveResult],
    *,
    recent: Collection[str],
    budget: str = "",
) -> tuple[RunOutcome, str]:
    """The outcome, and why it is not `passed`."""
    if budget:
        return RunOutcome.BUDGET_EXHAUSTED, budget
    if why := halted(plan, records, recent):
        return RunOutcome.HALTED, why
    failed = [f"{plan.task(id).name} ({id})" for id, record in records.items() if exhausted(record)]
    if failed:
        return RunOutcome.FAILED, f"failed: {', '.join(failed)}"
    missing = [have for have in must_haves if have.holds is False]
    if missing:
        return RunOutcome.FAILED, f"{missing[0].what}: {missing[0].detail}"
    if all(record.finished for record in records.values()):
        return RunOutcome.PASSED, ""
    asked = [task.id for task in plan.tasks if _asks(task, records)]
    return RunOutcome.NEEDS_HUMAN, f"a person is asked about {', '.join(asked)}"


def _asks(task: PlanTask, records: Mapping[str, TaskRecord]) -> bool:
    """Whether it waits for a person, and not for another task."""
    record = records[task.id]
    if record.state is TaskState.PENDING:
        return ready(task, records)
    return not record.finished


def _contradicted(record: TaskRecord) -> bool:
    if record.evidence is not None and record.evidence.mismatches:
        return True
    last = record.failures[-1:]
    return any(reason.check == CLAIM_MISMATCH for failure in last for reason in failure.reasons)
