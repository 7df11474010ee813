"""Detections of the auditor in one run: silent roles, boundary violations and claim mismatches.

Rows are read as they are: a row in an unknown form is skipped and is not an error. Agents can choose names and texts of
any length, so a report holds only their beginning.

- A silent role received a dispatch, or a contract from another role of the control loop, and never answered. Some roles
  receive only contracts: the controller is code, and the engine dispatches no validator where it can check by itself.
- A boundary violation is a message off the routes, a tool call or a path that the role may not use, or a result from
  the wrong sender. A refused attempt is reported too, as caught.
- A claim mismatch is a claim of an agent about a task, a subtask or a plan that contradicts what the engine observed.
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
    AttemptGap,
    CriterionMode,
    ExecutionStatus,
    FailureClass,
    SubTask,
    SubTaskOutcome,
)
from proofstone.agents.rules.routes import REFUSED_EVENT, explain_refusal
from proofstone.agents.rules.tool_rules import shorten_text
from proofstone.auditor.models import AuditFinding, Detection
from proofstone.common.models import FrozenModel
from proofstone.ledger.models import EventRow
from proofstone.plan_gate.models import FalseClaim
from proofstone.plan_gate.rules.research import describe_claim

MAX_NAME: Final = 100
_MAX_DETAIL: Final = 1000

JsonFields: TypeAlias = Mapping[str, JsonValue]
ContractT = TypeVar("ContractT", bound=FrozenModel)


@dataclass(frozen=True)
class ObservedEvent:
    """An event, with its position in the ledger."""

    seq: int
    at: str
    row: EventRow


@dataclass(frozen=True)
class ObservedRun:
    run_id: str
    envelopes: tuple[Envelope, ...] = ()
    events: tuple[ObservedEvent, ...] = ()

    def messages_of(self, *types: str) -> Iterator[Envelope]:
        return (envelope for envelope in self.envelopes if envelope.type in types)

    def events_of(self, *types: str) -> Iterator[ObservedEvent]:
        return (event for event in self.events if event.row.type in types)

    def make_finding(
        self,
        kind: Detection,
        rule: str,
        shown: Sequence[Envelope | ObservedEvent],
        *,
        role: str,
        detail: str,
        task: str | None = None,
        caught: str = "",
    ) -> AuditFinding:
        """Return the finding that these messages and events show. Without `task`, it is the task of the last of
        them.
        """
        last = shown[-1]
        task = task or (task_of(last) if isinstance(last, Envelope) else last.row.task_id)
        return AuditFinding(
            kind=kind,
            rule=rule,
            run_id=self.run_id,
            task=None if task is None else shorten_text(task, MAX_NAME),
            role=shorten_text(role, MAX_NAME),
            detail=shorten_text(detail, _MAX_DETAIL),
            seqs=tuple(evidence.seq for evidence in shown),
            messages=tuple(evidence.id for evidence in shown if isinstance(evidence, Envelope)),
            caught=caught,
        )

    @property
    def tasks(self) -> frozenset[str]:
        names = {task_of(envelope) for envelope in self.envelopes} | {event.row.task_id for event in self.events}
        return frozenset(self.parent_task(task) for task in names if task is not None)

    def parent_task(self, task: str) -> str:
        """Return the task that a subtask belongs to; return any other task unchanged."""
        return self._parents.get(task, task)

    @cached_property
    def _parents(self) -> Mapping[str, str]:
        pairs = (
            (task_of(message), text_field(message.payload, "parent_task_id")) for message in self.messages_of("SubTask")
        )
        return {subtask: parent for subtask, parent in pairs if subtask and parent}


def task_of(envelope: Envelope) -> str | None:
    """Return the task that a message is about. Contracts of the control loop call it `task_id`, or name a subtask,
    whose id begins with the id of the run. A dispatch names the same subtask without that prefix.
    """
    for key in ("task", "subtask_id", "task_id"):
        if task := text_field(envelope.payload, key):
            return task.removeprefix(f"{envelope.run_id}-")
    return None


def parse_contract(form: type[ContractT], fields: JsonFields) -> ContractT | None:
    """Return the fields as a model; None if they do not have its form."""
    try:
        return form.model_validate(dict(fields))
    except ValidationError:
        return None


def nested_object(fields: JsonFields, *path: str) -> JsonFields:
    """Return the object at a path inside an object, or an empty object."""
    for key in path:
        value = fields.get(key)
        if not isinstance(value, Mapping):
            return {}
        fields = value
    return fields


def text_field(fields: JsonFields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def text_list_field(fields: JsonFields, key: str) -> tuple[str, ...]:
    value = fields.get(key)
    return tuple(element for element in value if isinstance(element, str)) if isinstance(value, list | tuple) else ()


def number_field(fields: JsonFields, key: str) -> float | None:
    value = fields.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


ANSWERED_BY: Final[Mapping[str, frozenset[str]]] = {
    "ExecutionResult": frozenset(("CorrectionSignal", "SubTaskOutcome")),
    "ReplanRequest": frozenset(("PlanDirective", "FinalResult")),
    "OutcomeSummary": frozenset(("PlanDirective", "FinalResult")),
    "MemoryQuery": frozenset(("MemoryEntries",)),
}
"""The contracts that one role sends to another, and the types that answer each of them."""

COMPLETED_OUTCOMES: Final = frozenset(("passed", "failed"))
"""The outcomes of a run that went through its whole loop. In a run that was only stopped, a role may still answer."""


def find_silent_roles(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _find_unanswered_dispatches(run)
    yield from _find_unanswered_contracts(run)


def _find_unanswered_dispatches(run: ObservedRun) -> Iterator[AuditFinding]:
    """Yield each dispatch without an answer, if the run has ended since or has dispatched the same role for the same
    task again. Otherwise the agent may still be working. A dispatch repeated after a crash is the same dispatch.
    """
    answered_keys = {_dispatch_key(message.sender, message) for message in run.messages_of("Output", "Fault")}
    dispatches = {_dispatch_key(message.recipient, message): message for message in run.messages_of("Dispatch")}
    end_seq = max((event.seq for event in run.events_of("run.finished")), default=0)
    for key, message in dispatches.items():
        if key in answered_keys:
            continue
        was_repeated = any(
            later.seq > message.seq and _is_same_request(message, later) for later in dispatches.values()
        )
        if was_repeated or end_seq > message.seq:
            yield _silent_role_finding(
                run, message, f"dispatch {key[1]} has neither an output nor a fault", again=was_repeated
            )


def _find_unanswered_contracts(run: ObservedRun) -> Iterator[AuditFinding]:
    """Yield each contract without an answer before the next contract of the same type, or before the end of the run."""
    waiting: dict[tuple[str, str | None], Envelope] = {}
    for message in run.envelopes:
        waiting = {key: request for key, request in waiting.items() if not _is_answer(message, request)}
        if message.type in ANSWERED_BY:
            key = message.type, task_of(message)
            if key in waiting:
                yield _silent_role_finding(run, waiting[key], _describe_unanswered(waiting[key]), again=True)
            waiting[key] = message
    end_seqs = (
        event.seq
        for event in run.events_of("run.finished")
        if text_field(event.row.payload, "outcome") in COMPLETED_OUTCOMES
    )
    end_seq = max(end_seqs, default=0)
    for request in waiting.values():
        if end_seq > request.seq:
            yield _silent_role_finding(run, request, _describe_unanswered(request), again=False)


def _silent_role_finding(run: ObservedRun, request: Envelope, problem: str, *, again: bool) -> AuditFinding:
    detail = f"{problem}, and {'the role was asked again' if again else 'the run has ended'}"
    return run.make_finding(Detection.SILENT_ROLE, "no-answer", [request], role=request.recipient, detail=detail)


def _describe_unanswered(request: Envelope) -> str:
    return f"the {request.type} of {request.sender} has no answer"


def _is_answer(message: Envelope, request: Envelope) -> bool:
    is_reply = message.sender == request.recipient and message.type in ANSWERED_BY[request.type]
    return is_reply and task_of(message) == task_of(request)


def _dispatch_key(agent: str, message: Envelope) -> tuple[str, str]:
    """Return the agent, and the id by which answers name their dispatch."""
    return agent, text_field(message.payload, "dispatch")


def _is_same_request(first: Envelope, second: Envelope) -> bool:
    return (first.recipient, task_of(first)) == (second.recipient, task_of(second))


BOUNDARY_REFUSALS: Final = frozenset((RefusalRule.UNLISTED, RefusalRule.OUTSIDE, RefusalRule.SCOPE, RefusalRule.SECRET))
"""The refusals that concern what a role may do; the others are mistakes and exhausted budgets."""

_VIOLATION: Final = Detection.BOUNDARY_VIOLATION


def find_boundary_violations(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _find_refused_messages(run)
    yield from _find_messages_off_route(run)
    yield from _find_refused_tools(run)
    yield from _find_refused_program_actions(run)


def _find_refused_messages(run: ObservedRun) -> Iterator[AuditFinding]:
    for event in run.events_of(REFUSED_EVENT):
        sender, recipient, type, reason = (text_field(event.row.payload, key) for key in ("from", "to", "type", "why"))
        detail = f"{type} to {recipient} was refused: {reason}"
        yield run.make_finding(
            _VIOLATION, _route_rule(type), [event], role=sender, detail=detail, caught="the message was refused"
        )


def _find_messages_off_route(run: ObservedRun) -> Iterator[AuditFinding]:
    """Yield messages that the bus would have refused: they were written without the bus."""
    for message in run.envelopes:
        if reason := explain_refusal(message.sender, message.recipient, message.type):
            detail = f"{message.type} to {message.recipient} is in the ledger: {reason}"
            yield run.make_finding(_VIOLATION, _route_rule(message.type), [message], role=message.sender, detail=detail)


def _find_refused_tools(run: ObservedRun) -> Iterator[AuditFinding]:
    for message in run.messages_of("ToolResult"):
        result = nested_object(message.payload, "result")
        rule, name, output = (text_field(result, key) for key in ("refused", "name", "text"))
        if rule in BOUNDARY_REFUSALS:
            detail = f"{shorten_text(name, MAX_NAME)} was refused: {output.strip().partition(chr(10))[0]}"
            caught = "the tool call was refused"
            yield run.make_finding(_VIOLATION, rule, [message], role=message.recipient, detail=detail, caught=caught)


def _find_refused_program_actions(run: ObservedRun) -> Iterator[AuditFinding]:
    """Yield actions that coding agents tried by themselves and that were refused."""
    for message in run.messages_of("Activity"):
        activity = nested_object(message.payload, "activity")
        kind, name, output = (text_field(activity, key) for key in ("kind", "name", "text"))
        if kind == ActivityKind.REFUSED:
            detail = f"{shorten_text(name, MAX_NAME)} was refused: {output.strip().partition(chr(10))[0]}"
            caught = "the action was refused"
            yield run.make_finding(_VIOLATION, "program", [message], role=message.sender, detail=detail, caught=caught)


def _route_rule(type: str) -> str:
    return "final-result" if type == "FinalResult" else "off-route"


def find_claim_mismatches(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _task_mismatches(run)
    yield from _subtask_mismatches(run)
    yield from _plan_mismatches(run)


# Tasks at the gate.


def _task_mismatches(run: ObservedRun) -> Iterator[AuditFinding]:
    """Yield mismatches of tasks. They are recorded with the evidence of an attempt, and again with its failure if it
    did not pass its checks.
    """
    for event in run.events_of("task.checked", "task.failed"):
        if details := dict.fromkeys((*_evidence_mismatches(event), *_failure_mismatches(event))):
            caught = "the attempt was refused" if event.row.type == "task.failed" else ""
            yield _mismatch_finding(run, [event], "executor", "; ".join(details), caught)


def _evidence_mismatches(event: ObservedEvent) -> tuple[str, ...]:
    return text_list_field(nested_object(event.row.payload, "event", "evidence"), "mismatches")


def _failure_mismatches(event: ObservedEvent) -> Iterator[str]:
    reasons = nested_object(event.row.payload, "event", "failure").get("reasons")
    for reason in _objects(reasons):
        if text_field(reason, "check") == CLAIM_MISMATCH:
            yield text_field(reason, "detail")


def _objects(value: JsonValue) -> Sequence[dict[str, JsonValue]]:
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


# Subtasks of the control loop.


def _subtask_mismatches(run: ObservedRun) -> Iterator[AuditFinding]:
    """Yield results that claim completion although the engine observed that a criterion is not met."""
    results: dict[str | None, list[Envelope]] = defaultdict(list)
    for message in run.messages_of("ExecutionResult"):
        results[task_of(message)].append(message)
    criteria_by_task = _verifiable_criteria(run)
    for message in run.messages_of("SubTaskOutcome"):
        task, outcome = task_of(message), parse_contract(SubTaskOutcome, message.payload)
        if outcome is not None and task in criteria_by_task:
            wrong = _find_contradictions(results[task], outcome.gap_trajectory, criteria_by_task[task])
            if wrong:
                criteria_text = ", ".join(
                    dict.fromkeys(criterion for criteria in wrong.values() for criterion in criteria)
                )
                detail = f"claimed{_format_times(len(wrong))}: completed; not met: {criteria_text}"
                shown = [*(results[task][number] for number in wrong), message]
                yield _mismatch_finding(run, shown, shown[0].sender, detail)


def _verifiable_criteria(run: ObservedRun) -> dict[str | None, frozenset[str]]:
    """Return the verifiable criteria of each subtask. A judged criterion is an opinion, which contradicts no claim."""
    by_task = {}
    for message in run.messages_of("SubTask"):
        if (subtask := parse_contract(SubTask, message.payload)) is not None:
            criteria = (
                criterion for criterion in subtask.success_criteria if criterion.mode is CriterionMode.VERIFIABLE
            )
            by_task[task_of(message)] = frozenset(criterion.criterion for criterion in criteria)
    return by_task


def _find_contradictions(
    results: Sequence[Envelope], gaps: Sequence[AttemptGap], verifiable: frozenset[str]
) -> Mapping[int, Sequence[str]]:
    """Return the wrong results, with the criteria that contradict each. Where something blocked the check, the engine
    could not observe the result either.
    """
    wrong = {}
    for number, (result, gap) in enumerate(zip(results, gaps, strict=False)):
        failed = [
            gap_criterion.criterion
            for gap_criterion in gap.failed_criteria
            if gap_criterion.failure_class is FailureClass.LOGICAL
        ]
        against = [criterion for criterion in failed if criterion in verifiable]
        if against and text_field(result.payload, "status") == ExecutionStatus.COMPLETED:
            wrong[number] = against
    return wrong


def _format_times(count: int) -> str:
    return "" if count == 1 else f" {count} times"


# Plans.


def _plan_mismatches(run: ObservedRun) -> Iterator[AuditFinding]:
    """Yield claims of the agents of the plan gate that the engine looked up and found to be wrong."""
    for event in run.events_of("plan.held-against"):
        if (mismatch := parse_contract(FalseClaim, event.row.payload)) is not None:
            detail = (
                f"claimed for {mismatch.about}: {describe_claim(mismatch.looked.claim)}; seen: {mismatch.looked.saw}"
            )
            yield _mismatch_finding(run, [event], mismatch.agent, detail)


def _mismatch_finding(
    run: ObservedRun, shown: Sequence[Envelope | ObservedEvent], role: str, detail: str, caught: str = ""
) -> AuditFinding:
    return run.make_finding(Detection.CLAIM_MISMATCH, CLAIM_MISMATCH, shown, role=role, detail=detail, caught=caught)
