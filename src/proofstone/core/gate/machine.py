"""The task gate: states, and what may follow what. A transition that is not in the table is an error and changes
nothing.

Two transitions ask for more than their place in the table: a task is approved only when the PASS rule
(`passing.py`) holds for the evidence on record, and committed only with the very tree that the evidence is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proofstone.contracts.gate import TaskState
from proofstone.contracts.gate_record import (
    POLICY,
    Approved,
    Asked,
    AttemptFailed,
    Blocked,
    Checked,
    Committed,
    Confirmed,
    Executed,
    Moved,
    Overridden,
    OverrideAction,
    Retried,
    Started,
    TaskEvent,
    TaskRecord,
)
from proofstone.core.gate.passing import unmet
from proofstone.core.gate.retry import MAX_MOVES, may_retry

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
        case Retried() if event.by == POLICY and record.state is S.FAILED and not may_retry(record):
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
            beyond = event.by != POLICY and not may_retry(record)
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
