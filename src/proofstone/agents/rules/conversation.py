"""The conversation of one dispatch. Pure: a generator that yields its requests and is sent their results.

    think ──► tool calls? ──► use each tool, show the results ──► think …
          └─► an answer? ──► it matches the schema: done; it does not: show why, at most twice ──► think …
          └─► a fault? ──► pause and think again if that may help; else the conversation ends

If the agent is supervised, each turn boundary is passed to the attendant, the first before anything was said. The
attendant may interject. Until the interjection is settled, the agent's answers belong to it and do not end the
dispatch.

Every loop is bounded: repairs by REPAIRS and tool calls by the allowance. An agent that goes on calling tools without
any calls left, or makes the same call three times in a row, is stopped. The attendant limits its own questions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import (
    Conversation,
    Fault,
    FaultKind,
    RefusalRule,
    Returned,
    Told,
    ToolCall,
    ToolResult,
    Turn,
)
from proofstone.agents.rules.answer import Malformed, parse, validated
from proofstone.agents.rules.budget import pause
from proofstone.common.models import Contract
from proofstone.plans.fields import shortened

REPAIRS: Final = 2
SAME_CALL: Final = 3
"""An agent that makes the same call so often in a row is stopped. Earlier repetitions return the same result."""
DEAF: Final = 3
"""How many turns an agent may go on calling tools after its allowance is spent."""
MOST_CALLS_IN_A_TURN: Final = 32
_NAME: Final = 200
_WHY: Final = 1000
"""How many characters of an agent's own words are shown to it and recorded."""
_TOO_MANY: Final = f"at most {MOST_CALLS_IN_A_TURN} calls are carried out in one turn"


@dataclass(frozen=True)
class Think:
    """Ask the backend for a turn. The reply is a Turn or a Fault."""

    conversation: Conversation


@dataclass(frozen=True)
class Use:
    """Carry out a tool call. The reply is its ToolResult, or a Fault that ends the dispatch."""

    call: ToolCall


@dataclass(frozen=True)
class Pause:
    """Wait because of the fault. The reply is None, or a Fault if the pause was cut short."""

    seconds: float
    fault: Fault


@dataclass(frozen=True)
class Answered:
    """Record the result of a call that is not carried out, because it was refused or its result is known. The reply is
    None, or a Fault that ends the dispatch."""

    result: ToolResult


@dataclass(frozen=True)
class Repair:
    """Record the message that tells the agent what is wrong with its answer."""

    told: Told


@dataclass(frozen=True)
class Boundary:
    """A turn boundary, where the attendant may interject. The reply is an Aside, None if there is nothing to say, or a
    Fault that ends the dispatch. After an answer to an interjection it must be an Aside: the next question, or the
    message that the work continues."""

    turn: Turn | None = None
    """The turn that has ended; None before the first turn."""
    results: tuple[ToolResult, ...] = ()
    reply: bool = False
    """Whether the turn answers the question of an interjection."""
    output: Contract | None = None
    """The answer that ends the dispatch, unless the attendant interjects."""


@dataclass(frozen=True)
class Aside:
    """An interjection: a message of the engine during the work."""

    told: Told
    schema: Mapping[str, JsonValue] | None = None
    """The schema of the expected answer, if there is one."""
    scope: tuple[str, ...] | None = None
    """The files that the agent may change from now on; None if that does not change."""


Request = Think | Use | Pause | Answered | Repair | Boundary
Sent = Turn | ToolResult | Fault | Aside | None


@dataclass(frozen=True)
class Ended:
    output: Contract | Fault
    turns: int
    tool_calls: int
    repairs: int


Check = Callable[[Contract], str]
"""Returns why an answer that matches the schema is wrong, such as an unknown id in it; empty if it is right."""


def converse(
    conversation: Conversation,
    contract: type[Contract],
    tool_calls: int,
    check: Check = lambda _: "",
    *,
    attended: bool = False,
) -> Generator[Request, Sent, Ended]:
    """Run the conversation to its end."""
    counters = _Counters(tool_calls)
    output_schema, boundary = conversation.output_schema, Boundary()
    while True:
        reply = (yield boundary) if attended else None
        if isinstance(reply, Fault):
            return counters.build_end(reply)
        if isinstance(reply, Aside):
            schema = reply.schema or output_schema
            conversation = conversation.plus(reply.told).model_copy(update={"output_schema": schema})
        elif boundary.output is not None:
            return counters.build_end(boundary.output)
        elif boundary.reply:
            raise TypeError("an answer to an interjection must be followed by a message")
        turn = yield from counters.think(conversation)
        if isinstance(turn, Fault):
            return counters.build_end(turn)
        if turn.calls:
            results = yield from counters.use(turn.calls)
            if isinstance(results, Fault):
                return counters.build_end(results)
            conversation, boundary = conversation.plus(turn, Returned(results=results)), Boundary(turn, results)
            continue
        if conversation.asked:
            conversation, boundary = conversation.plus(turn), Boundary(turn, reply=True)
            continue
        answer = _check_answer(turn, contract, check)
        if not isinstance(answer, Malformed):
            conversation, boundary = conversation.plus(turn), Boundary(turn, output=answer)
            continue
        if counters.repairs == REPAIRS:
            why = f"its answer is not of the schema, after {REPAIRS} repairs: {answer.why}"
            return counters.build_end(Fault(kind=FaultKind.MALFORMED, why=why))
        counters.repairs += 1
        message = Told(text=repair_text(answer.why), repair=counters.repairs)
        yield Repair(message)
        conversation, boundary = conversation.plus(turn, message), Boundary(turn)


def _check_answer(turn: Turn, contract: type[Contract], check: Check) -> Contract | Malformed:
    """Return the answer if it matches the schema and passes the check."""
    answer = answer_in(turn, contract)
    if isinstance(answer, Malformed):
        return answer
    return Malformed(why) if (why := check(answer)) else answer


def answer_in(turn: Turn, contract: type[Contract]) -> Contract | Malformed:
    """Return the answer in the turn as the contract, or why it is malformed."""
    if turn.answer is not None:
        return validated(turn.answer, contract)
    answer = parse(turn.text.encode("utf-8", "surrogatepass"), contract)
    if turn.cut and isinstance(answer, Malformed):
        return Malformed(
            "it was cut off at the limit of output tokens: be briefer (a person can raise that limit: "
            "`max_output_tokens` of the model)"
        )
    return answer


def repair_text(why: str) -> str:
    return (
        f"Your answer could not be used: {why}\n\n"
        "Give the whole answer again, as one JSON object that matches the given schema, with nothing around it."
    )


class _Counters:
    """The counters of a running conversation."""

    def __init__(self, allowance: int) -> None:
        self.allowance = allowance
        self.turns = 0
        self.tool_calls = 0
        self.repairs = 0
        self._turns_after_limit = 0
        self._last: tuple[str, object] | None = None
        self._last_result: ToolResult | None = None
        self._repetitions = 0

    def build_end(self, output: Contract | Fault) -> Ended:
        return Ended(output, self.turns, self.tool_calls, self.repairs)

    def think(self, conversation: Conversation) -> Generator[Request, Sent, Turn | Fault]:
        retries = 0
        while True:
            reply = yield Think(conversation)
            if isinstance(reply, Turn):
                self.turns += 1
                return reply
            if not isinstance(reply, Fault):
                raise TypeError(f"expected a turn, not {reply!r}")
            retries += 1
            seconds = pause(reply, retries)
            if seconds is None:
                return reply
            if isinstance(cut := (yield Pause(seconds, reply)), Fault):
                return cut

    def use(self, calls: tuple[ToolCall, ...]) -> Generator[Request, Sent, tuple[ToolResult, ...] | Fault]:
        """Carry out the calls and return the results in their order."""
        results: list[ToolResult] = []
        is_spent = self.tool_calls >= self.allowance
        for call in calls[:MOST_CALLS_IN_A_TURN]:
            result = yield from self._use_tool(call)
            if isinstance(result, Fault):
                return result
            results.append(result)
        too_many = [refused(call, RefusalRule.BUDGET, _TOO_MANY) for call in calls[MOST_CALLS_IN_A_TURN:]]
        if too_many and isinstance(cut := (yield Answered(too_many[0])), Fault):  # one record for all of them
            return cut
        results += too_many
        self._turns_after_limit = self._turns_after_limit + 1 if is_spent else 0
        if self._turns_after_limit > DEAF:
            why = f"it keeps calling tools although its {self.allowance} calls are spent"
            return Fault(kind=FaultKind.LOOPING, why=why)
        return tuple(results)

    def _use_tool(self, call: ToolCall) -> Generator[Request, Sent, ToolResult | Fault]:
        if refusal := self._check_refusal(call):
            cut = yield Answered(refusal)
            return cut if isinstance(cut, Fault) else refusal
        self.tool_calls += 1
        signature = (call.name, call.arguments)
        self._repetitions = self._repetitions + 1 if signature == self._last else 1
        if self._repetitions >= SAME_CALL:
            why = f"it called {call.name} with the same arguments {SAME_CALL} times in a row"
            return Fault(kind=FaultKind.LOOPING, why=why)
        if self._repetitions > 1 and self._last_result is not None:
            repeated_result = self._last_result.model_copy(update={"call_id": call.id, "repeated": True})
            cut = yield Answered(repeated_result)
            return cut if isinstance(cut, Fault) else repeated_result
        result = yield Use(call)
        if isinstance(result, Fault):
            return result
        if not isinstance(result, ToolResult):
            raise TypeError(f"expected a tool result, not {result!r}")
        self._last, self._last_result = signature, result
        return result

    def _check_refusal(self, call: ToolCall) -> ToolResult | None:
        if self.tool_calls >= self.allowance:
            why = f"your {self.allowance} tool calls are spent: give your answer now, with what you know"
            return refused(call, RefusalRule.BUDGET, why)
        if call.malformed:
            self.tool_calls += 1  # otherwise an agent that writes malformed calls would never stop
            return refused(call, RefusalRule.ARGUMENTS, f"the arguments could not be read: {call.malformed}")
        return None


def refused(call: ToolCall, rule: RefusalRule, why: str) -> ToolResult:
    """Return the result that the agent gets for a refused call."""
    return ToolResult(call_id=call.id, name=call.name[:_NAME], text=f"refused: {why[:_WHY]}", ok=False, refused=rule)


_OMITTED_FIELDS: Final = ("Phase ", "Target: ")
"""Fields of a line that the live view shows elsewhere."""


def spoken(told: Told, length: int) -> str:
    """Return a message to an agent as one line for the live view: `? RV-1: [REVERIFY] Level 1 | Reason: …`."""
    line = told.text.partition("\n")[0]
    head, bracket, rest = line.partition("[")
    tag, _, fields = rest.partition("] ")
    parts = [part for part in fields.split(" | ") if not part.startswith(_OMITTED_FIELDS)]
    summary = f"[{tag.removesuffix(']')}] {' | '.join(parts)}".strip() if bracket else head
    return shortened(f"? {told.asked}: {summary}" if told.asked else f"» {summary}", length)
