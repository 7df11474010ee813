"""One dispatch: a role, a request, a backend, tools. The shell around `agents.rules.conversation`.

Every entry of the conversation is a message on the bus before anything follows from it; an answer is there together
with the turn that gave it, and with whatever the answer's step has to record. A dispatch that a crash or a
spent budget has cut short begins again from its messages: turns that are on record are not asked for, and paid for, a
second time, but what its tools did to the work tree is done again, because the work tree is a new one. What was said
to an agent at a turn boundary is on record with what whoever attends knew by then, so they go on from there, too.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from proofstone.agents.attendant import Attendant
from proofstone.agents.backends import Backend
from proofstone.agents.bus import Bus, Letter
from proofstone.agents.executors.context import Site
from proofstone.agents.models import (
    Activity,
    ActivityKind,
    Conversation,
    Dispatched,
    Fault,
    FaultKind,
    Occasion,
    OutputHeader,
    Told,
    ToolCall,
    ToolResult,
    Turn,
)
from proofstone.agents.roles.role import Role
from proofstone.agents.rules.budget import completion_of, may_ask_again
from proofstone.agents.rules.conversation import (
    Answered,
    Aside,
    Boundary,
    Check,
    Ended,
    Pause,
    Repair,
    Request,
    Sent,
    Think,
    Use,
    converse,
    spoken,
)
from proofstone.agents.spending import Meter, Recorded
from proofstone.agents.tools.models import WRITING
from proofstone.agents.tools.toolbox import Tools
from proofstone.common.models import Contract, Spent, Usage
from proofstone.faults import fault_point
from proofstone.ledger.schema import Row
from proofstone.runtime.journal import Write

ENGINE: Final = "engine"
_SHOWN: Final = 120
_ROW: Final = 58
"""What a row of a live view bears."""
_LINE: Final = 240
_TURN: Final = "Turn"


Ending = Callable[[Dispatched, Write], object]
"""Told of an answer before it is on record. It must write once, and what it writes is one with the answer."""


@dataclass(frozen=True)
class Errand:
    """What a dispatch needs beside its role and its occasion."""

    text: str
    """What is asked."""
    backend: Backend
    toolbox: Tools
    site: Site
    seconds: float | None = None
    """The deadline of the whole dispatch; None: as long as a person needs."""
    check: Check = lambda _: ""
    """Whether an answer of the schema can be meant: whatever it refers to is there."""
    beginning: tuple[Row, ...] = ()
    """What is to be on record with its first word."""
    ending: Ending | None = None
    """Who has something to write with the answer."""
    attends: Callable[[Occasion], Attendant | None] = lambda _: None
    """Who is shown each turn boundary, and may speak there: somebody else for each dispatch."""

    def within(self, scope: tuple[str, ...]) -> Errand:
        """The same, of an agent that may change other files."""
        return replace(self, toolbox=self.toolbox.within(scope), site=replace(self.site, scope=scope))


@dataclass(frozen=True)
class Dispatcher:
    bus: Bus
    meter: Meter
    recorded: Mapping[str, Recorded] = field(default_factory=dict)
    """What an earlier process recorded, by dispatch."""
    spending: Callable[[Spent], None] = lambda _: None
    """Told after each turn what the run has spent."""
    patience: float = 1.0
    """How much of a pause before another try is kept. Tests have none."""

    def dispatch(self, role: Role, occasion: Occasion, errand: Errand) -> Dispatched:
        """Once, and once more where the fault may have been chance."""
        again = occasion.model_copy(update={"dispatch": occasion.dispatch + 1})
        if again.id in self.recorded:  # it had come to that before
            return self.once(role, again, errand)
        began = time.monotonic()
        first = self.once(role, occasion, errand)
        if first.fault is None or not may_ask_again(first.fault):
            return first
        left = None if errand.seconds is None else errand.seconds - (time.monotonic() - began)
        second = self.once(role, again, replace(errand, seconds=left, beginning=()))
        return second.model_copy(update={"usage": first.usage + second.usage})

    def once(self, role: Role, occasion: Occasion, errand: Errand) -> Dispatched:
        conversation = Conversation.model_construct(  # all of it is ours: the schema need not be looked through again
            occasion=occasion,
            instructions=role.instructions,
            tools=errand.toolbox.specs,
            output_schema=role.output_schema,
            entries=(Told(text=errand.text),),
        )
        recorded = self.recorded.get(occasion.id, Recorded())
        return _Going(self, role, occasion, errand, recorded).go(conversation)


class _Going:
    """A dispatch while it goes on."""

    def __init__(
        self, dispatcher: Dispatcher, role: Role, occasion: Occasion, errand: Errand, recorded: Recorded
    ) -> None:
        self._shell = dispatcher
        self._role = role
        self._occasion = occasion
        self._whole = errand
        self._recorded = recorded if recorded.can_go_on else recorded.again()
        self._started = time.monotonic()
        self._started_at = now()
        self._unsaid: list[Letter] = []
        self._beginning = errand.beginning
        self._begin()

    def _begin(self) -> None:
        self._errand = self._whole
        self._attendant = self._errand.attends(self._occasion)
        self._turns = 0
        self._boundaries = 0
        self._asked = ""
        self._results = 0
        self._refusals = 0
        self._faults = self._recorded.faults
        self._last_fault: Fault | None = None
        self._usage = Usage()
        self._model = ""

    def go(self, conversation: Conversation) -> Dispatched:
        try:
            return self._go(conversation)
        except DivergedError:
            self._recorded = self._recorded.again()
            self._begin()
            return self._go(conversation)

    def _go(self, conversation: Conversation) -> Dispatched:
        told = conversation.entries[0]
        self._hold(ENGINE, "Dispatch", "begun", {"occasion": dumped(self._occasion), "request": dumped(told)})
        self._say(*self._beginning, durable=False)
        self._beginning = ()
        try:
            errand, role = self._errand, self._role
            attended = self._attendant is not None
            ended = self._drive(converse(conversation, role.output, role.tool_calls, errand.check, attended=attended))
            dispatched = self._dispatched(ended)
            if dispatched.output is not None:
                self._answered(dispatched, dispatched.output)
            elif dispatched.fault is not None and dispatched.fault != self._last_fault:
                self._met(dispatched.fault, 0.0)
        finally:
            self._say()
        return dispatched

    def _answered(self, dispatched: Dispatched, output: Contract) -> None:
        header = self._header(dispatched, output)
        body = {"output": dumped(header), "completion": dumped(dispatched.completion)}
        self._hold(self._occasion.agent, "Output", "output", body)
        if self._errand.ending:
            self._errand.ending(dispatched, self._say)

    def _drive(self, talk: Generator[Request, Sent, Ended]) -> Ended:
        sent: Sent = None
        while True:
            try:
                request = talk.send(sent)
            except StopIteration as stop:
                ended: Ended = stop.value
                return ended
            sent = self._do(request)

    def _do(self, request: Request) -> Sent:
        self._say()
        match request:
            case Think():
                return self._think(request.conversation)
            case Use():
                return self._use(request.call)
            case Answered():
                return self._stop(spending=False) or self._result(request.result)
            case Repair():
                self._errand.site.doing(f"its answer is not of the schema; asked again ({request.told.repair})")
                number = request.told.repair
                self._publish(ENGINE, "Repair", f"repair-{number}", {"text": request.told.text, "repair": number})
                return None
            case Pause():
                return self._pause(request)
            case Boundary():
                return self._boundary(request)

    # What the loop asks for.

    def _boundary(self, at: Boundary) -> Aside | Fault | None:
        """What whoever attends says there, on record with what they knew."""
        attendant, number = self._attendant, self._boundaries
        if attendant is None:
            return None
        self._boundaries += 1
        said: Aside | Fault | None
        if number < len(self._recorded.attended):
            said = attendant.recall(at, self._recorded.attended[number])
        elif stop := self._stop(spending=False):
            said = stop
        else:
            said = attendant.speak(at)
            if not isinstance(said, Fault):
                told: JsonValue = dumped(said.told) if said else None
                body: dict[str, JsonValue] = {"boundary": number, "told": told, "standing": dict(attendant.standing)}
                self._hold(ENGINE, "Attended", f"attended-{number}", body)
        if isinstance(said, Aside):
            self._asked = said.told.asked
            self._tell(said.told, again=number < len(self._recorded.attended))
            if said.scope is not None:
                self._errand = self._errand.within(said.scope)
        return said

    def _tell(self, told: Told, *, again: bool) -> None:
        """Whoever watches; of a question also in a line that stays, but not of one that was asked before a crash."""
        self._errand.site.doing(spoken(told, _ROW))
        if told.asked and not again:
            self._errand.site.say(spoken(told, _LINE))

    def _think(self, conversation: Conversation) -> Turn | Fault:
        if self._turns < len(self._recorded.turns):
            turn = self._recorded.turns[self._turns]
            self._took(turn)
            return turn
        if stop := self._stop():
            return stop
        began = time.monotonic()
        turn_or_fault = self._turn(conversation)
        seconds = time.monotonic() - began
        if isinstance(turn_or_fault, Fault):
            # A turn knows only of what was left of the time.
            stop = self._stop(spending=False)
            kept = {"usage": turn_or_fault.usage, "acted": turn_or_fault.acted}
            fault = stop.model_copy(update=kept) if stop else turn_or_fault
            self._met(fault, seconds)
            return fault
        fault_point("agent.before-turn")
        said: dict[str, JsonValue] = {"turn": dumped(turn_or_fault), "seconds": round(seconds, 3)}
        if self._asked:
            said["asked"] = self._asked  # what it has cost to ask can be told from what the work has cost
        self._hold(self._occasion.agent, _TURN, f"turn-{self._turns}", said)
        self._shell.meter.add(self._role.name, self._occasion.task, Spent.of_turn(turn_or_fault.usage, seconds))
        self._shell.spending(self._shell.meter.spent())
        self._took(turn_or_fault)
        return turn_or_fault

    def _turn(self, conversation: Conversation) -> Turn | Fault:
        site, attendant = replace(self._errand.site, noted=self._noted), self._attendant
        if attendant is None:
            return self._errand.backend.turn(conversation, site, self._left())
        with attendant.listening(site, self._aloud) as listened:
            said = self._errand.backend.turn(conversation, listened.site, self._left())
        if (stopped := listened.stopped) is None:
            return said
        return stopped.model_copy(update={"usage": said.usage, "acted": said.acted})  # it is paid for all the same

    def _aloud(self, text: str, asked: str) -> None:
        """What is said to an agent that is silent: there is no boundary to wait for."""
        name = f"aloud-{self._turns}-{secrets.token_hex(8)}"
        told: JsonValue = dumped(Told(text=text, asked=asked))
        self._shell.bus.say([self._letter(ENGINE, "Aloud", name, {"told": told})])  # from another thread

    def _noted(self, activity: Activity) -> None:
        """What a program does by itself. It is never repeated from the record, so it needs no id that a crash keeps."""
        name = f"activity-{self._turns}-{secrets.token_hex(8)}"
        letter = self._letter(self._occasion.agent, "Activity", name, {"activity": dumped(activity)})
        self._shell.bus.say([letter])  # from whichever thread sees it
        self._refusals += activity.kind is ActivityKind.REFUSED

    def _met(self, fault: Fault, seconds: float) -> None:
        """A fault is on record like any other word, and what it has cost is paid."""
        said: dict[str, JsonValue] = {"fault": dumped(fault), "seconds": round(seconds, 3)}
        self._publish(self._occasion.agent, "Fault", f"fault-{self._turns}-{self._faults}", said)
        self._shell.meter.add(self._role.name, self._occasion.task, Spent.of_turn(fault.usage, seconds))
        self._shell.spending(self._shell.meter.spent())
        self._usage = self._usage + fault.usage
        self._faults += 1
        self._last_fault = fault

    def _took(self, turn: Turn) -> None:
        self._turns += 1
        self._usage = self._usage + turn.usage
        self._model = turn.model or self._model

    def _use(self, call: ToolCall) -> ToolResult | Fault:
        on_record = self._recorded.results[self._results : self._results + 1]
        if stop := self._stop(spending=not on_record):
            return stop
        for known in on_record:
            return self._do_again(call, known) or self._result(known)
        self._errand.site.doing(f"▸ {in_short(call)}")
        fault_point("agent.before-tool")
        began = time.monotonic()
        result = self._errand.toolbox.call(call, self._left())
        fault_point("agent.after-tool")
        if self._errand.site.cancel.is_set():
            return _CANCELLED  # what it says now is that it was stopped: it is used again when the run goes on
        return self._result(result, time.monotonic() - began)

    def _do_again(self, call: ToolCall, known: ToolResult) -> Fault | None:
        """What the tool did to the work tree of before; one that only looks has done nothing."""
        if known.refused is not None or known.repeated or known.name not in WRITING:
            return None
        again = self._errand.toolbox.call(call, self._left())
        if stop := self._stop(spending=False):
            return stop
        if again.ok != known.ok:
            raise DivergedError
        return None

    def _result(self, result: ToolResult, seconds: float = 0.0) -> ToolResult:
        if self._results >= len(self._recorded.results):
            said: dict[str, JsonValue] = {"result": dumped(result), "seconds": round(seconds, 3)}
            self._publish(ENGINE, "ToolResult", f"result-{self._results}", said)
            self._shell.meter.add(self._role.name, self._occasion.task, Spent(tool_calls=1, seconds=seconds))
        self._results += 1
        self._refusals += result.refused is not None
        if result.refused is not None:
            self._errand.site.doing(f"✗ {result.name}: {result.text[:_SHOWN]}")
        return result

    def _pause(self, request: Pause) -> Fault | None:
        """Before another try; the deadline does not wait for it."""
        left, seconds = self._left(), request.seconds * self._shell.patience
        if left is not None and seconds >= left:
            return request.fault
        self._errand.site.say(f"{self._occasion.agent}: {request.fault.why} (asked again in {seconds:g} s)")
        if self._errand.site.cancel.wait(seconds):
            return _CANCELLED
        return None

    # When it must end.

    def _stop(self, *, spending: bool = True) -> Fault | None:
        if self._errand.site.cancel.is_set():
            return _CANCELLED
        left = self._left()
        if left is not None and left <= 0:
            return Fault(kind=FaultKind.TIMEOUT, why=f"not finished after {self._errand.seconds:g} s")
        if spending and (why := self._shell.meter.exhausted(self._role.name, self._occasion.task)):
            return Fault(kind=FaultKind.BUDGET, why=why)
        return None

    def _left(self) -> float | None:
        seconds = self._errand.seconds
        return None if seconds is None else seconds - (time.monotonic() - self._started)

    def _dispatched(self, ended: Ended) -> Dispatched:
        fault = ended.output if isinstance(ended.output, Fault) else None
        return Dispatched(
            occasion=self._occasion,
            output=None if fault else ended.output,
            fault=fault,
            completion=completion_of(fault) if fault else self._role.completion(ended.output),
            usage=self._usage,
            model=self._model,
            turns=ended.turns,
            tool_calls=ended.tool_calls,
            refusals=self._refusals,
            repairs=ended.repairs,
            started_at=self._started_at,
            completed_at=now(),
        )

    def _header(self, dispatched: Dispatched, output: Contract) -> OutputHeader:
        return OutputHeader.model_construct(
            agent=self._occasion.agent,
            instance=self._occasion.id,
            step=self._occasion.step,
            started_at=dispatched.started_at,
            completed_at=dispatched.completed_at,
            schema_version=self._role.schema_version,
            payload=dumped(output),
        )

    def _publish(self, sender: str, type: str, name: str, payload: Mapping[str, JsonValue]) -> None:
        self._hold(sender, type, name, payload)
        self._say()

    def _hold(self, sender: str, type: str, name: str, payload: Mapping[str, JsonValue]) -> None:
        """It is said with what comes next, and before anything follows from it."""
        self._unsaid.append(self._letter(sender, type, name, payload))

    def _letter(self, sender: str, type: str, name: str, payload: Mapping[str, JsonValue]) -> Letter:
        """A message with an id of its own, the same after a crash: what is on record is not written again."""
        agent, id = self._occasion.agent, self._occasion.id
        recipient = agent if sender == ENGINE else ENGINE
        said = {"dispatch": id, "task": self._occasion.task, **payload}
        take = f"~{self._recorded.take}" if self._recorded.take > 1 else ""
        return Letter(sender, recipient, type, said, f"{id}{take}#{name}")

    def _say(self, *also: Row, durable: bool = True) -> None:
        """What is held, and these rows, in one transaction."""
        letters, self._unsaid = self._unsaid, []
        self._shell.bus.say(letters, also, durable=durable)
        if any(letter.type == _TURN for letter in letters):
            fault_point("agent.after-turn")


class DivergedError(Exception):
    """In the new work tree a tool did not do what it did before, so the conversation is not true of it: it begins
    anew."""


_CANCELLED: Final = Fault(kind=FaultKind.CANCELLED, why="interrupted")


def in_short(call: ToolCall) -> str:
    """A call in one line, for whoever watches."""
    told = " ".join(str(value).split("\n")[0] for value in call.arguments.values())
    return f"{call.name} {told}"[:_SHOWN]


def dumped(value: Contract) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = value.model_dump(mode="json")
    return body


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
