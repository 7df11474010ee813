"""Run one dispatch: a role with a request, a backend and tools. This drives `agents.rules.conversation`.

Every entry of the conversation is published on the bus before anything depends on it. An answer is written in one
transaction with its turn and with the rows that its step adds. A dispatch that was cut short by a crash or a spent
budget resumes from its messages: recorded turns are not requested, and paid for, again. Changes that its tools made to
the work tree are replayed, because the work tree is new. At each turn boundary the supervisor's state is recorded with
its message, so that it can resume too.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from pydantic import JsonValue

from proofstone.agents.backends import Backend
from proofstone.agents.bus import MessageBus, OutgoingMessage
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import (
    Activity,
    ActivityKind,
    Conversation,
    DispatchKey,
    DispatchResult,
    EngineMessage,
    Fault,
    FaultKind,
    OutputHeader,
    ToolCall,
    ToolResult,
    Turn,
)
from proofstone.agents.roles.role import Role
from proofstone.agents.rules.budget import build_fault_completion, can_repeat_dispatch
from proofstone.agents.rules.conversation import (
    AnswerCheck,
    ConversationEffect,
    ConversationEffectResult,
    ConversationEnd,
    Interjection,
    RecordRepair,
    RecordToolResult,
    RequestTurn,
    TurnBoundary,
    UseTool,
    WaitForRetry,
    format_message_line,
    run_conversation,
)
from proofstone.agents.spending import DispatchRecord, SpendingMeter
from proofstone.agents.supervisor import Supervisor
from proofstone.agents.tools.models import CLAIMING_TOOLS, WRITING_TOOLS
from proofstone.agents.tools.toolbox import Tools
from proofstone.common.models import BudgetUsage, FrozenModel, Usage
from proofstone.faults import fault_point
from proofstone.ledger.schema import LedgerRow
from proofstone.runtime.journal import RowWriter
from proofstone.runtime.workflow import Handler, Handlers, Operation, drive

ENGINE_NAME: Final = "engine"
_MAX_SHOWN: Final = 120
_MAX_ROW: Final = 58
"""The width of a row in a live view."""
_MAX_LINE: Final = 240
_TURN: Final = "Turn"


AnswerCallback = Callable[[DispatchResult, RowWriter], object]
"""Called with an answer before it is recorded. It must call the writer exactly once; its rows share a transaction with
the answer."""


@dataclass(frozen=True)
class DispatchRequest:
    """Everything that a dispatch needs besides its role and its occasion."""

    text: str
    """The request as the agent reads it."""
    backend: Backend
    toolbox: Tools
    site: ExecutionContext
    seconds: float | None = None
    """The time limit of the whole dispatch; None if it may take as long as a person needs."""
    check: AnswerCheck = lambda _: ""
    """Checks an answer that matches the schema: returns why it cannot be right, or an empty text."""
    first_rows: tuple[LedgerRow, ...] = ()
    """Rows that are written with the first message of the dispatch."""
    on_answer: AnswerCallback | None = None
    """Called with the answer; writes it together with further rows."""
    create_supervisor: Callable[[DispatchKey], Supervisor | None] = lambda _: None
    """Creates the supervisor of a dispatch, which may send a message at each turn boundary."""

    def with_scope(self, scope: tuple[str, ...]) -> DispatchRequest:
        """Return a copy whose agent may change only the files in `scope`."""
        return replace(self, toolbox=self.toolbox.with_scope(scope), site=replace(self.site, scope=scope))


@dataclass(frozen=True)
class Dispatcher:
    bus: MessageBus
    meter: SpendingMeter
    recorded_dispatches: Mapping[str, DispatchRecord] = field(default_factory=dict)
    """What an earlier process recorded, by the id of the dispatch."""
    on_spending: Callable[[BudgetUsage], None] = lambda _: None
    """Called after each turn with what the run has spent."""
    pause_factor: float = 1.0
    """A factor for the pauses before a retry. Tests set it to 0."""

    def dispatch(self, role: Role, occasion: DispatchKey, errand: DispatchRequest) -> DispatchResult:
        """Dispatch, and dispatch once more after a fault that a repetition may cure."""
        again = occasion.model_copy(update={"dispatch": occasion.dispatch + 1})
        if again.id in self.recorded_dispatches:  # an earlier process had already begun the second dispatch
            return self.dispatch_once(role, again, errand)
        began = time.monotonic()
        first = self.dispatch_once(role, occasion, errand)
        if first.fault is None or not can_repeat_dispatch(first.fault):
            return first
        left = None if errand.seconds is None else errand.seconds - (time.monotonic() - began)
        second = self.dispatch_once(role, again, replace(errand, seconds=left, first_rows=()))
        return second.model_copy(update={"usage": first.usage + second.usage})

    def dispatch_once(self, role: Role, occasion: DispatchKey, errand: DispatchRequest) -> DispatchResult:
        conversation = Conversation.model_construct(  # the engine made all of it, so it needs no validation
            occasion=occasion,
            instructions=role.instructions,
            tools=errand.toolbox.specs,
            output_schema=role.output_schema,
            entries=(EngineMessage(text=errand.text),),
            edits=role.edits,
        )
        recorded = self.recorded_dispatches.get(occasion.id, DispatchRecord())
        return _RunningDispatch(self, role, occasion, errand, recorded).run(conversation)


class _RunningDispatch:
    """A dispatch that is running."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        role: Role,
        occasion: DispatchKey,
        errand: DispatchRequest,
        recorded: DispatchRecord,
    ) -> None:
        self._dispatcher = dispatcher
        self._role = role
        self._occasion = occasion
        self._original_request = errand
        self._recorded = recorded if recorded.can_resume else recorded.next_take()
        self._started = time.monotonic()
        self._started_at = format_now()
        self._pending_messages: list[OutgoingMessage] = []
        self._first_rows = errand.first_rows
        self._reset()

    def _reset(self) -> None:
        self._request = self._original_request
        self._supervisor = self._request.create_supervisor(self._occasion)
        self._turns = 0
        self._boundaries = 0
        self._open_question = ""
        self._results = 0
        self._refusals = 0
        self._faults = self._recorded.faults
        self._last_fault: Fault | None = None
        self._usage = Usage()
        self._model = ""

    def run(self, conversation: Conversation) -> DispatchResult:
        try:
            return self._run_once(conversation)
        except ReplayMismatchError:
            self._recorded = self._recorded.next_take()
            self._reset()
            return self._run_once(conversation)

    def _run_once(self, conversation: Conversation) -> DispatchResult:
        request = conversation.entries[0]
        self._queue(
            ENGINE_NAME, "Dispatch", "begun", {"occasion": dump_json(self._occasion), "request": dump_json(request)}
        )
        self._flush(*self._first_rows, durable=False)
        self._first_rows = ()
        try:
            errand, role = self._request, self._role
            is_attended = self._supervisor is not None
            talk = run_conversation(conversation, role.output, role.tool_calls, errand.check, attended=is_attended)
            ended = drive(talk, self._handlers)
            dispatched = self._build_result(ended)
            if dispatched.output is not None:
                self._record_answer(dispatched, dispatched.output)
            elif dispatched.fault is not None and dispatched.fault != self._last_fault:
                self._record_fault(dispatched.fault, 0.0)
        finally:
            self._flush()
        return dispatched

    def _record_answer(self, dispatched: DispatchResult, output: FrozenModel) -> None:
        header = self._build_header(dispatched, output)
        body: dict[str, JsonValue] = {"output": dump_json(header), "completion": dump_json(dispatched.completion)}
        if dispatched.mended:
            body["mended"] = list(dispatched.mended)
            self._request.site.on_progress(f"the form of the answer was mended: {'; '.join(dispatched.mended)}")
        self._queue(self._occasion.agent, "Output", "output", body)
        if self._request.on_answer:
            self._request.on_answer(dispatched, self._flush)

    @property
    def _handlers(self) -> Handlers:
        """The handler of each effect. `drive` gets no journal: each effect is recorded on the bus."""
        return {
            RequestTurn: self._handle(lambda effect: self._take_turn(effect.conversation)),
            UseTool: self._handle(lambda effect: self._use_tool(effect.call)),
            RecordToolResult: self._handle(
                lambda effect: self._check_limits(spending=False) or self._record_result(effect.result)
            ),
            RecordRepair: self._handle(self._record_repair),
            WaitForRetry: self._handle(self._pause),
            TurnBoundary: self._handle(self._pass_boundary),
        }

    def _handle(self, perform: Callable[[Any], ConversationEffectResult]) -> Handler:
        """Return a handler. Queued messages are written before the effect is performed."""

        def perform_after_flush(effect: ConversationEffect) -> ConversationEffectResult:
            self._flush()
            return perform(effect)

        return lambda effect: Operation(partial(perform_after_flush, effect))

    def _record_repair(self, request: RecordRepair) -> None:
        number = request.message.repair
        self._request.site.on_progress(f"the answer does not match the schema; asked again ({number})")
        self._publish(ENGINE_NAME, "Repair", f"repair-{number}", {"text": request.message.text, "repair": number})

    # The effects of the conversation.

    def _pass_boundary(self, at: TurnBoundary) -> Interjection | Fault | None:
        """Ask the supervisor for an interjection, and record it with the supervisor's state."""
        supervisor, number = self._supervisor, self._boundaries
        if supervisor is None:
            return None
        self._boundaries += 1
        decision: Interjection | Fault | None
        if number < len(self._recorded.boundaries):
            decision = supervisor.restore(at, self._recorded.boundaries[number])
        elif stop := self._check_limits(spending=False):
            decision = stop
        else:
            decision = supervisor.interject(at)
            if not isinstance(decision, Fault):
                message: JsonValue = dump_json(decision.message) if decision else None
                body: dict[str, JsonValue] = {"boundary": number, "told": message, "standing": dict(supervisor.state)}
                self._queue(ENGINE_NAME, "Attended", f"attended-{number}", body)
        if isinstance(decision, Interjection):
            self._open_question = decision.message.asked
            self._show_message(decision.message, is_replay=number < len(self._recorded.boundaries))
            if decision.scope is not None:
                self._request = self._request.with_scope(decision.scope)
        return decision

    def _show_message(self, message: EngineMessage, *, is_replay: bool) -> None:
        """Show the message in the live view, and a question also in a permanent line unless it is a replay."""
        self._request.site.on_progress(format_message_line(message, _MAX_ROW))
        if message.asked and not is_replay:
            self._request.site.say(format_message_line(message, _MAX_LINE))

    def _take_turn(self, conversation: Conversation) -> Turn | Fault:
        if self._turns < len(self._recorded.turns):
            turn = self._recorded.turns[self._turns]
            self._count_turn(turn)
            return turn
        if stop := self._check_limits():
            return stop
        began = time.monotonic()
        turn_or_fault = self._call_backend(conversation)
        seconds = time.monotonic() - began
        if isinstance(turn_or_fault, Fault):
            # The turn only knows the remaining time, so the limit of the whole dispatch explains the fault better.
            stop = self._check_limits(spending=False)
            update = {"usage": turn_or_fault.usage, "acted": turn_or_fault.acted}
            fault = stop.model_copy(update=update) if stop else turn_or_fault
            self._record_fault(fault, seconds)
            return fault
        fault_point("agent.before-turn")
        body: dict[str, JsonValue] = {"turn": dump_json(turn_or_fault), "seconds": round(seconds, 3)}
        if self._open_question:
            body["asked"] = self._open_question  # separates the cost of questions from the cost of the work
        self._queue(self._occasion.agent, _TURN, f"turn-{self._turns}", body)
        self._dispatcher.meter.add(
            self._role.name, self._occasion.task, BudgetUsage.from_turn(turn_or_fault.usage, seconds)
        )
        self._dispatcher.on_spending(self._dispatcher.meter.get_spent())
        self._count_turn(turn_or_fault)
        return turn_or_fault

    def _call_backend(self, conversation: Conversation) -> Turn | Fault:
        site, supervisor = replace(self._request.site, on_activity=self._record_activity), self._supervisor
        if supervisor is None:
            return self._request.backend.turn(conversation, site, self._remaining_seconds())
        with supervisor.observe_turn(site, self._send_during_turn) as observed:
            turn = self._request.backend.turn(conversation, observed.site, self._remaining_seconds())
        if (stopped := observed.stop_fault) is None:
            return turn
        return stopped.model_copy(update={"usage": turn.usage, "acted": turn.acted})  # a stopped turn costs money too

    def _send_during_turn(self, text: str, asked: str) -> None:
        """Send a message to an agent during its turn, when there is no boundary to wait for."""
        name = f"aloud-{self._turns}-{secrets.token_hex(8)}"
        message: JsonValue = dump_json(EngineMessage(text=text, asked=asked))
        self._dispatcher.bus.write(
            [self._build_message(ENGINE_NAME, "Aloud", name, {"told": message})]
        )  # runs on another thread

    def _record_activity(self, activity: Activity) -> None:
        """Record an activity of a program. It is never replayed, so its id need not be the same after a crash."""
        name = f"activity-{self._turns}-{secrets.token_hex(8)}"
        message = self._build_message(self._occasion.agent, "Activity", name, {"activity": dump_json(activity)})
        self._dispatcher.bus.write([message])  # may run on any thread
        self._refusals += activity.kind is ActivityKind.REFUSED

    def _record_fault(self, fault: Fault, seconds: float) -> None:
        """Record a fault and count its cost."""
        body: dict[str, JsonValue] = {"fault": dump_json(fault), "seconds": round(seconds, 3)}
        self._publish(self._occasion.agent, "Fault", f"fault-{self._turns}-{self._faults}", body)
        self._dispatcher.meter.add(self._role.name, self._occasion.task, BudgetUsage.from_turn(fault.usage, seconds))
        self._dispatcher.on_spending(self._dispatcher.meter.get_spent())
        self._usage = self._usage + fault.usage
        self._faults += 1
        self._last_fault = fault

    def _count_turn(self, turn: Turn) -> None:
        self._turns += 1
        self._usage = self._usage + turn.usage
        self._model = turn.model or self._model

    def _use_tool(self, call: ToolCall) -> ToolResult | Fault:
        recorded_results = self._recorded.results[self._results : self._results + 1]
        if stop := self._check_limits(spending=not recorded_results):
            return stop
        if recorded_results:
            (recorded,) = recorded_results
            return self._replay_tool(call, recorded) or self._record_result(recorded)
        self._request.site.on_progress(f"▸ {summarize_call(call)}")
        fault_point("agent.before-tool")
        began = time.monotonic()
        result = self._request.toolbox.call(call, self._remaining_seconds())
        fault_point("agent.after-tool")
        if self._request.site.cancel.is_set():
            return _CANCELLED  # the tool was stopped: it is called again when the run resumes
        return self._record_result(result, time.monotonic() - began)

    def _replay_tool(self, call: ToolCall, recorded: ToolResult) -> Fault | None:
        """Repeat what the tool did to the old work tree. A tool that only reads need not be repeated."""
        if recorded.refused is not None or recorded.repeated or recorded.name not in WRITING_TOOLS | CLAIMING_TOOLS:
            return None
        result = self._request.toolbox.call(call, self._remaining_seconds())
        if stop := self._check_limits(spending=False):
            return stop
        if result.ok != recorded.ok:
            raise ReplayMismatchError
        return None

    def _record_result(self, result: ToolResult, seconds: float = 0.0) -> ToolResult:
        if self._results >= len(self._recorded.results):
            body: dict[str, JsonValue] = {"result": dump_json(result), "seconds": round(seconds, 3)}
            self._publish(ENGINE_NAME, "ToolResult", f"result-{self._results}", body)
            self._dispatcher.meter.add(self._role.name, self._occasion.task, BudgetUsage(tool_calls=1, seconds=seconds))
        self._results += 1
        self._refusals += result.refused is not None
        if result.refused is not None:
            self._request.site.on_progress(f"✗ {result.name}: {result.text[:_MAX_SHOWN]}")
        return result

    def _pause(self, request: WaitForRetry) -> Fault | None:
        """Wait before a retry. The pause counts towards the deadline."""
        left, seconds = self._remaining_seconds(), request.seconds * self._dispatcher.pause_factor
        if left is not None and seconds >= left:
            return request.fault
        self._request.site.say(f"{self._occasion.agent}: {request.fault.why} (next attempt in {seconds:g} s)")
        if self._request.site.cancel.wait(seconds):
            return _CANCELLED
        return None

    # The limits of the dispatch.

    def _check_limits(self, *, spending: bool = True) -> Fault | None:
        if self._request.site.cancel.is_set():
            return _CANCELLED
        left = self._remaining_seconds()
        if left is not None and left <= 0:
            return Fault(kind=FaultKind.TIMEOUT, why=f"not finished after {self._request.seconds:g} s")
        if spending and (why := self._dispatcher.meter.explain_spent_budget(self._role.name, self._occasion.task)):
            return Fault(kind=FaultKind.BUDGET, why=why)
        return None

    def _remaining_seconds(self) -> float | None:
        seconds = self._request.seconds
        return None if seconds is None else seconds - (time.monotonic() - self._started)

    def _build_result(self, ended: ConversationEnd) -> DispatchResult:
        fault = ended.output if isinstance(ended.output, Fault) else None
        return DispatchResult(
            occasion=self._occasion,
            output=None if fault else ended.output,
            fault=fault,
            completion=build_fault_completion(fault) if fault else self._role.completion(ended.output),
            usage=self._usage,
            model=self._model,
            turns=ended.turns,
            tool_calls=ended.tool_calls,
            refusals=self._refusals,
            repairs=ended.repairs,
            mended=ended.notes,
            started_at=self._started_at,
            completed_at=format_now(),
        )

    def _build_header(self, dispatched: DispatchResult, output: FrozenModel) -> OutputHeader:
        return OutputHeader.model_construct(
            agent=self._occasion.agent,
            instance=self._occasion.id,
            step=self._occasion.step,
            started_at=dispatched.started_at,
            completed_at=dispatched.completed_at,
            schema_version=self._role.schema_version,
            payload=dump_json(output),
        )

    def _publish(self, sender: str, type: str, name: str, payload: Mapping[str, JsonValue]) -> None:
        self._queue(sender, type, name, payload)
        self._flush()

    def _queue(self, sender: str, type: str, name: str, payload: Mapping[str, JsonValue]) -> None:
        """Queue a message. It is written by the next `_flush`, at the latest before the next effect."""
        self._pending_messages.append(self._build_message(sender, type, name, payload))

    def _build_message(self, sender: str, type: str, name: str, payload: Mapping[str, JsonValue]) -> OutgoingMessage:
        """Build a message whose id is the same after a crash, so that a recorded message is not written again."""
        agent, id = self._occasion.agent, self._occasion.id
        recipient = agent if sender == ENGINE_NAME else ENGINE_NAME
        body = {"dispatch": id, "task": self._occasion.task, **payload}
        take = f"~{self._recorded.take}" if self._recorded.take > 1 else ""
        return OutgoingMessage(sender, recipient, type, body, f"{id}{take}#{name}")

    def _flush(self, *also: LedgerRow, durable: bool = True) -> None:
        """Write the queued messages and these rows in one transaction."""
        messages, self._pending_messages = self._pending_messages, []
        self._dispatcher.bus.write(messages, also, durable=durable)
        if any(message.type == _TURN for message in messages):
            fault_point("agent.after-turn")


class ReplayMismatchError(Exception):
    """Raised when a replayed tool gave another result in the new work tree. The recorded conversation does not fit the
    work tree, so the dispatch starts over."""


_CANCELLED: Final = Fault(kind=FaultKind.CANCELLED, why="interrupted")


def summarize_call(call: ToolCall) -> str:
    """Return a tool call as one line for the live view."""
    arguments = " ".join(str(value).split("\n")[0] for value in call.arguments.values())
    return f"{call.name} {arguments}"[:_MAX_SHOWN]


def dump_json(value: FrozenModel) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = value.model_dump(mode="json")
    return body


def format_now(*, after: float = 0.0) -> str:
    """Return the current time, or the time so many seconds after it."""
    return (datetime.now(UTC) + timedelta(seconds=after)).isoformat(timespec="milliseconds")
