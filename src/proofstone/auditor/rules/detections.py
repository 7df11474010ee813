"""A run as the auditor sees it: what was said and what happened, in the order of the ledger.

Rows are taken as they are found: what somebody wrote into them in another form than ours is passed over, no error.
Names and words that an agent chose are of any length; a report holds the beginning of them.

Roles that were asked and never answered.

A role is asked by a dispatch, or by a contract that another role hands to it in the control loop. Some are asked in no
other way: the controller is code, and a validator is not dispatched where the engine can look itself.

Boundary violations: a message off the routes, a tool or a path beyond the role, a result from the wrong hand.

That an attempt was refused does not make it none: who tries the fence is reported.

What agents claimed, and the engine saw otherwise: of a task at the gate, of a subtask of the loop, of a plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias, TypeVar

from pydantic import JsonValue, ValidationError

from proofstone.agents.models import ActivityKind, Envelope, RefusalRule
from proofstone.agents.roles.models.gate import CLAIM_MISMATCH
from proofstone.agents.roles.models.solve_messages import (
    CriterionMode,
    ExecutionStatus,
    FailureClass,
    Gap,
    SubTask,
    SubTaskOutcome,
)
from proofstone.agents.rules.routes import REFUSED, why_not
from proofstone.agents.rules.tool_rules import shortened
from proofstone.auditor.models import AuditFinding, Detection
from proofstone.common.models import Contract
from proofstone.ledger.models import EventRow
from proofstone.plan_gate.models import HeldAgainst
from proofstone.plan_gate.rules.research import claimed

NAME: Final = 100
_DETAIL: Final = 1000

Fields: TypeAlias = Mapping[str, JsonValue]
Form = TypeVar("Form", bound=Contract)


@dataclass(frozen=True)
class Happened:
    """An event, with its place in the ledger."""

    seq: int
    at: str
    row: EventRow


@dataclass(frozen=True)
class ObservedRun:
    run_id: str
    envelopes: tuple[Envelope, ...] = ()
    events: tuple[Happened, ...] = ()

    def said(self, *types: str) -> Iterator[Envelope]:
        return (envelope for envelope in self.envelopes if envelope.type in types)

    def happened(self, *types: str) -> Iterator[Happened]:
        return (event for event in self.events if event.row.type in types)

    def finding(
        self,
        kind: Detection,
        rule: str,
        shown: Sequence[Envelope | Happened],
        *,
        role: str,
        detail: str,
        task: str | None = None,
    ) -> AuditFinding:
        """What these messages and events show; the task is that of the last of them, if no other is named."""
        last = shown[-1]
        task = task or (task_of(last) if isinstance(last, Envelope) else last.row.task_id)
        return AuditFinding(
            kind=kind,
            rule=rule,
            run_id=self.run_id,
            task=None if task is None else shortened(task, NAME),
            role=shortened(role, NAME),
            detail=shortened(detail, _DETAIL),
            seqs=tuple(item.seq for item in shown),
            messages=tuple(item.id for item in shown if isinstance(item, Envelope)),
        )

    @property
    def tasks(self) -> frozenset[str]:
        named = {task_of(envelope) for envelope in self.envelopes} | {event.row.task_id for event in self.events}
        return frozenset(self.whole(task) for task in named if task is not None)

    def whole(self, task: str) -> str:
        """The task that a subtask is part of; any other is whole by itself."""
        return self._parents.get(task, task)

    @cached_property
    def _parents(self) -> Mapping[str, str]:
        found = ((task_of(said), text(said.payload, "parent_task_id")) for said in self.said("SubTask"))
        return {subtask: parent for subtask, parent in found if subtask and parent}


def task_of(envelope: Envelope) -> str | None:
    """The task that a message is about. Contracts of the control loop call it `task_id`, or name a subtask, whose id
    begins with that of the run; a dispatch calls that one by the rest."""
    for key in ("task", "subtask_id", "task_id"):
        if task := text(envelope.payload, key):
            return task.removeprefix(f"{envelope.run_id}-")
    return None


def read(form: type[Form], fields: Fields) -> Form | None:
    """None: it is not written in that form."""
    try:
        return form.model_validate(dict(fields))
    except ValidationError:
        return None


def part(fields: Fields, *path: str) -> Fields:
    """An object inside of an object; an empty one if there is none."""
    for key in path:
        value = fields.get(key)
        if not isinstance(value, Mapping):
            return {}
        fields = value
    return fields


def text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def texts(fields: Fields, key: str) -> tuple[str, ...]:
    value = fields.get(key)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()


def number(fields: Fields, key: str) -> float | None:
    value = fields.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


ANSWERED_BY: Final[Mapping[str, frozenset[str]]] = {
    "ExecutionResult": frozenset(("CorrectionSignal", "SubTaskOutcome")),
    "ReplanRequest": frozenset(("PlanDirective", "FinalResult")),
    "OutcomeSummary": frozenset(("PlanDirective", "FinalResult")),
    "MemoryQuery": frozenset(("MemoryEntries",)),
}
"""Contracts that are handed over, and what whoever gets one must say to it."""

THROUGH: Final = frozenset(("passed", "failed"))
"""Ends of a run that has gone through its loop. Where it was only stopped, somebody may be about to answer."""


def silent_roles(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _unanswered_dispatches(run)
    yield from _unanswered_contracts(run)


def _unanswered_dispatches(run: ObservedRun) -> Iterator[AuditFinding]:
    """A dispatch without an answer, though the run has ended since, or has made another to the same role for the same
    task. While neither is so, it may still be thinking; begun anew after a crash it is the same dispatch."""
    answered = {_dispatch(said.sender, said) for said in run.said("Output", "Fault")}
    asked = {_dispatch(said.recipient, said): said for said in run.said("Dispatch")}
    ended = max((event.seq for event in run.happened("run.finished")), default=0)
    for key, said in asked.items():
        if key in answered:
            continue
        again = any(later.seq > said.seq and _same_errand(said, later) for later in asked.values())
        if again or ended > said.seq:
            yield _silent(run, said, f"dispatch {key[1]} has neither an output nor a fault", again=again)


def _unanswered_contracts(run: ObservedRun) -> Iterator[AuditFinding]:
    """A contract to which nothing was said before the next one like it, or before the run had gone through."""
    waiting: dict[tuple[str, str | None], Envelope] = {}
    for said in run.envelopes:
        waiting = {key: asked for key, asked in waiting.items() if not _answers(said, asked)}
        if said.type in ANSWERED_BY:
            key = said.type, task_of(said)
            if key in waiting:
                yield _silent(run, waiting[key], _without_answer(waiting[key]), again=True)
            waiting[key] = said
    ends = (event.seq for event in run.happened("run.finished") if text(event.row.payload, "outcome") in THROUGH)
    ended = max(ends, default=0)
    for asked in waiting.values():
        if ended > asked.seq:
            yield _silent(run, asked, _without_answer(asked), again=False)


def _silent(run: ObservedRun, asked: Envelope, what: str, *, again: bool) -> AuditFinding:
    detail = f"{what}, and {'it was asked again' if again else 'the run has ended'}"
    return run.finding(Detection.SILENT_ROLE, "no-answer", [asked], role=asked.recipient, detail=detail)


def _without_answer(asked: Envelope) -> str:
    return f"the {asked.type} of {asked.sender} has no answer"


def _answers(said: Envelope, asked: Envelope) -> bool:
    heard = said.sender == asked.recipient and said.type in ANSWERED_BY[asked.type]
    return heard and task_of(said) == task_of(asked)


def _dispatch(agent: str, said: Envelope) -> tuple[str, str]:
    """Who was asked, and the id by which the answers name their dispatch."""
    return agent, text(said.payload, "dispatch")


def _same_errand(one: Envelope, other: Envelope) -> bool:
    return (one.recipient, task_of(one)) == (other.recipient, task_of(other))


FENCES: Final = frozenset((RefusalRule.UNLISTED, RefusalRule.OUTSIDE, RefusalRule.SCOPE, RefusalRule.SECRET))
"""Refusals that are about what a role may do; the others are slips of the pen and spent budgets."""

_VIOLATION: Final = Detection.BOUNDARY_VIOLATION


def boundary_violations(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _refused_messages(run)
    yield from _messages_off_route(run)
    yield from _refused_tools(run)
    yield from _refused_to_programs(run)


def _refused_messages(run: ObservedRun) -> Iterator[AuditFinding]:
    for event in run.happened(REFUSED):
        sender, recipient, type, why = (text(event.row.payload, key) for key in ("from", "to", "type", "why"))
        detail = f"{type} to {recipient} was refused: {why}"
        yield run.finding(_VIOLATION, _rule(type), [event], role=sender, detail=detail)


def _messages_off_route(run: ObservedRun) -> Iterator[AuditFinding]:
    """Messages that the bus would not have let through: somebody wrote them past it."""
    for said in run.envelopes:
        if why := why_not(said.sender, said.recipient, said.type):
            detail = f"{said.type} to {said.recipient} stands in the ledger: {why}"
            yield run.finding(_VIOLATION, _rule(said.type), [said], role=said.sender, detail=detail)


def _refused_tools(run: ObservedRun) -> Iterator[AuditFinding]:
    for said in run.said("ToolResult"):
        result = part(said.payload, "result")
        rule, name, shown = (text(result, key) for key in ("refused", "name", "text"))
        if rule in FENCES:
            detail = f"{shortened(name, NAME)} was refused: {shown.strip().partition(chr(10))[0]}"
            yield run.finding(_VIOLATION, rule, [said], role=said.recipient, detail=detail)


def _refused_to_programs(run: ObservedRun) -> Iterator[AuditFinding]:
    """What coding agents tried by themselves and were kept from."""
    for said in run.said("Activity"):
        activity = part(said.payload, "activity")
        kind, name, shown = (text(activity, key) for key in ("kind", "name", "text"))
        if kind == ActivityKind.REFUSED:
            detail = f"{shortened(name, NAME)} was refused: {shown.strip().partition(chr(10))[0]}"
            yield run.finding(_VIOLATION, "program", [said], role=said.sender, detail=detail)


def _rule(type: str) -> str:
    return "final-result" if type == "FinalResult" else "off-route"


def claim_mismatches(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _of_tasks(run)
    yield from _of_subtasks(run)
    yield from _about_plans(run)


# Tasks at the gate.


def _of_tasks(run: ObservedRun) -> Iterator[AuditFinding]:
    """Recorded with the evidence where the attempt passed its checks, with the failure where it did not."""
    for event in run.happened("task.checked", "task.failed"):
        if details := (*_in_evidence(event), *_in_failure(event)):
            yield _mismatch(run, [event], "executor", "; ".join(details))


def _in_evidence(event: Happened) -> tuple[str, ...]:
    return texts(part(event.row.payload, "event", "evidence"), "mismatches")


def _in_failure(event: Happened) -> Iterator[str]:
    reasons = part(event.row.payload, "event", "failure").get("reasons")
    for reason in _objects(reasons):
        if text(reason, "check") == CLAIM_MISMATCH:
            yield text(reason, "detail")


def _objects(value: JsonValue) -> Sequence[dict[str, JsonValue]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# Subtasks of the control loop.


def _of_subtasks(run: ObservedRun) -> Iterator[AuditFinding]:
    """What was called completed, though the engine saw that a criterion is not so."""
    results: dict[str | None, list[Envelope]] = defaultdict(list)
    for said in run.said("ExecutionResult"):
        results[task_of(said)].append(said)
    visible = _seen_by_the_engine(run)
    for said in run.said("SubTaskOutcome"):
        task, outcome = task_of(said), read(SubTaskOutcome, said.payload)
        if outcome is not None and task in visible:
            wrong = _contradicted(results[task], outcome.gap_trajectory, visible[task])
            if wrong:
                saw = ", ".join(dict.fromkeys(item for criteria in wrong.values() for item in criteria))
                detail = f"claimed{_times(len(wrong))}: completed; seen: it is not so that {saw}"
                shown = [*(results[task][number] for number in wrong), said]
                yield _mismatch(run, shown, shown[0].sender, detail)


def _seen_by_the_engine(run: ObservedRun) -> dict[str | None, frozenset[str]]:
    """By subtask: its verifiable criteria. What is judged is an opinion, and contradicts nobody."""
    found = {}
    for said in run.said("SubTask"):
        if (subtask := read(SubTask, said.payload)) is not None:
            criteria = (item for item in subtask.success_criteria if item.mode is CriterionMode.VERIFIABLE)
            found[task_of(said)] = frozenset(item.criterion for item in criteria)
    return found


def _contradicted(
    results: Sequence[Envelope], gaps: Sequence[Gap], visible: frozenset[str]
) -> Mapping[int, Sequence[str]]:
    """Which of the results, and by which criteria. Where something was in the way the engine could not see either."""
    wrong = {}
    for number, (result, gap) in enumerate(zip(results, gaps, strict=False)):
        failed = [item.criterion for item in gap.failed_criteria if item.failure_class is FailureClass.LOGICAL]
        against = [criterion for criterion in failed if criterion in visible]
        if against and text(result.payload, "status") == ExecutionStatus.COMPLETED:
            wrong[number] = against
    return wrong


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"


# Plans.


def _about_plans(run: ObservedRun) -> Iterator[AuditFinding]:
    """What agents of the plan gate claimed, and the engine looked up and did not find to be so."""
    for event in run.happened("plan.held-against"):
        if (held := read(HeldAgainst, event.row.payload)) is not None:
            detail = f"claimed for {held.about}: {claimed(held.looked.claim)}; seen: {held.looked.saw}"
            yield _mismatch(run, [event], held.agent, detail)


def _mismatch(run: ObservedRun, shown: Sequence[Envelope | Happened], role: str, detail: str) -> AuditFinding:
    return run.finding(Detection.CLAIM_MISMATCH, CLAIM_MISMATCH, shown, role=role, detail=detail)
