"""The conversation of one dispatch. Pure: a generator that yields what it needs and is sent what came of it.

    think ──► calls of tools? ──► use each, show the results ──► think …
          └─► an answer? ──► of the schema: done; not: show why, at most twice ──► think …
          └─► a fault? ──► pause and think again where that may help; else it ends

Where somebody attends to it, each turn boundary is shown to them, the first before anything was said. What they say is
an aside: until it is settled, what the agent answers is the answer to that, and not the answer that ends the dispatch.

Every loop is bounded: repairs by REPAIRS, tool calls by the allowance, and an agent that goes on calling tools when it
has none left, or makes the same call a third time in a row, is stopped. Whoever attends bounds their own questions.

What an agent is told or asked, in one line for whoever watches it. Pure.
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
"""So often in a row, and the agent is going round in circles; the time before, it is answered from memory."""
DEAF: Final = 3
"""Turns of nothing but refused calls after the allowance is spent."""
MOST_CALLS_IN_A_TURN: Final = 32
_NAME: Final = 200
_WHY: Final = 1000
"""Characters: an agent's own words come back to it, and go on record, in no greater length."""
_TOO_MANY: Final = f"at most {MOST_CALLS_IN_A_TURN} calls are carried out in one turn"


@dataclass(frozen=True)
class Think:
    """Have the backend add a turn. Sent back: a Turn or a Fault."""

    conversation: Conversation


@dataclass(frozen=True)
class Use:
    """Carry out a call. Sent back: its ToolResult, or a Fault that ends the dispatch."""

    call: ToolCall


@dataclass(frozen=True)
class Pause:
    """Wait, because of the fault. Sent back: None, or a Fault if it was cut short."""

    seconds: float
    fault: Fault


@dataclass(frozen=True)
class Answered:
    """A call that needs no carrying out: it is refused, or known already. It is recorded all the same. Sent back: None,
    or a Fault that ends the dispatch."""

    result: ToolResult


@dataclass(frozen=True)
class Repair:
    """The agent is shown what is wrong with its answer. It is recorded."""

    told: Told


@dataclass(frozen=True)
class Boundary:
    """The agent can be spoken to. Sent back: an Aside, None if there is nothing to say, or a Fault that ends the
    dispatch. A reply must be followed by an Aside: the next question, or that the work goes on."""

    turn: Turn | None = None
    """The turn that has ended; None: nothing was said yet."""
    results: tuple[ToolResult, ...] = ()
    reply: bool = False
    """The turn is the answer to what an aside asked for."""
    output: Contract | None = None
    """The answer that ends the dispatch, unless something is said to it."""


@dataclass(frozen=True)
class Aside:
    """Something that the engine says in the middle of the work."""

    told: Told
    schema: Mapping[str, JsonValue] | None = None
    """Of what is to be answered, if anything is."""
    scope: tuple[str, ...] | None = None
    """What the agent may change from now on; None: what it could."""


Request = Think | Use | Pause | Answered | Repair | Boundary
Sent = Turn | ToolResult | Fault | Aside | None


@dataclass(frozen=True)
class Ended:
    output: Contract | Fault
    turns: int
    tool_calls: int
    repairs: int


Check = Callable[[Contract], str]
"""Why an answer of the schema cannot be meant all the same: it names what there is not. Empty if it can."""


def converse(
    conversation: Conversation,
    contract: type[Contract],
    tool_calls: int,
    check: Check = lambda _: "",
    *,
    attended: bool = False,
) -> Generator[Request, Sent, Ended]:
    """The conversation, to its end."""
    talk = _Talk(tool_calls)
    answers, at = conversation.output_schema, Boundary()
    while True:
        said = (yield at) if attended else None
        if isinstance(said, Fault):
            return talk.ended(said)
        if isinstance(said, Aside):
            conversation = conversation.plus(said.told).model_copy(update={"output_schema": said.schema or answers})
        elif at.output is not None:
            return talk.ended(at.output)
        elif at.reply:
            raise TypeError("a reply wants a word, and there is none")
        turn = yield from talk.think(conversation)
        if isinstance(turn, Fault):
            return talk.ended(turn)
        if turn.calls:
            results = yield from talk.use(turn.calls)
            if isinstance(results, Fault):
                return talk.ended(results)
            conversation, at = conversation.plus(turn, Returned(results=results)), Boundary(turn, results)
            continue
        if conversation.asked:
            conversation, at = conversation.plus(turn), Boundary(turn, reply=True)
            continue
        answer = _meant(turn, contract, check)
        if not isinstance(answer, Malformed):
            conversation, at = conversation.plus(turn), Boundary(turn, output=answer)
            continue
        if talk.repairs == REPAIRS:
            why = f"its answer is not of the schema, after {REPAIRS} repairs: {answer.why}"
            return talk.ended(Fault(kind=FaultKind.MALFORMED, why=why))
        talk.repairs += 1
        told = Told(text=repair_text(answer.why), repair=talk.repairs)
        yield Repair(told)
        conversation, at = conversation.plus(turn, told), Boundary(turn)


def _meant(turn: Turn, contract: type[Contract], check: Check) -> Contract | Malformed:
    """The answer, if it is of the schema and can be meant."""
    answer = answer_in(turn, contract)
    if isinstance(answer, Malformed):
        return answer
    return Malformed(why) if (why := check(answer)) else answer


def answer_in(turn: Turn, contract: type[Contract]) -> Contract | Malformed:
    """What the turn says, as the contract that is asked for."""
    if turn.answer is not None:
        return validated(turn.answer, contract)
    found = parse(turn.text.encode("utf-8", "surrogatepass"), contract)
    if turn.cut and isinstance(found, Malformed):
        return Malformed(
            "it was cut off at the limit of output tokens: be briefer (a person can raise that limit: "
            "`max_output_tokens` of the model)"
        )
    return found


def repair_text(why: str) -> str:
    return (
        f"Your answer could not be used: {why}\n\n"
        "Give the whole answer again, as one JSON object of the schema you were given, with nothing around it."
    )


class _Talk:
    """What is counted while a conversation goes on."""

    def __init__(self, allowance: int) -> None:
        self.allowance = allowance
        self.turns = 0
        self.tool_calls = 0
        self.repairs = 0
        self._deaf = 0
        self._last: tuple[str, object] | None = None
        self._last_result: ToolResult | None = None
        self._in_a_row = 0

    def ended(self, output: Contract | Fault) -> Ended:
        return Ended(output, self.turns, self.tool_calls, self.repairs)

    def think(self, conversation: Conversation) -> Generator[Request, Sent, Turn | Fault]:
        retries = 0
        while True:
            said = yield Think(conversation)
            if isinstance(said, Turn):
                self.turns += 1
                return said
            if not isinstance(said, Fault):
                raise TypeError(f"a turn is wanted, not {said!r}")
            retries += 1
            seconds = pause(said, retries)
            if seconds is None:
                return said
            if isinstance(cut := (yield Pause(seconds, said)), Fault):
                return cut

    def use(self, calls: tuple[ToolCall, ...]) -> Generator[Request, Sent, tuple[ToolResult, ...] | Fault]:
        """The results, in the order of the calls."""
        results: list[ToolResult] = []
        spent = self.tool_calls >= self.allowance
        for call in calls[:MOST_CALLS_IN_A_TURN]:
            result = yield from self._one(call)
            if isinstance(result, Fault):
                return result
            results.append(result)
        too_many = [refused(call, RefusalRule.BUDGET, _TOO_MANY) for call in calls[MOST_CALLS_IN_A_TURN:]]
        if too_many and isinstance(cut := (yield Answered(too_many[0])), Fault):  # one word for all of them
            return cut
        results += too_many
        self._deaf = self._deaf + 1 if spent else 0
        if self._deaf > DEAF:
            why = f"it goes on calling tools although its {self.allowance} calls are spent"
            return Fault(kind=FaultKind.LOOPING, why=why)
        return tuple(results)

    def _one(self, call: ToolCall) -> Generator[Request, Sent, ToolResult | Fault]:
        if refusal := self._refusal(call):
            cut = yield Answered(refusal)
            return cut if isinstance(cut, Fault) else refusal
        self.tool_calls += 1
        same = (call.name, call.arguments)
        self._in_a_row = self._in_a_row + 1 if same == self._last else 1
        if self._in_a_row >= SAME_CALL:
            why = f"it called {call.name} with the same arguments {SAME_CALL} times in a row"
            return Fault(kind=FaultKind.LOOPING, why=why)
        if self._in_a_row > 1 and self._last_result is not None:
            known = self._last_result.model_copy(update={"call_id": call.id, "repeated": True})
            cut = yield Answered(known)
            return cut if isinstance(cut, Fault) else known
        result = yield Use(call)
        if isinstance(result, Fault):
            return result
        if not isinstance(result, ToolResult):
            raise TypeError(f"a result is wanted, not {result!r}")
        self._last, self._last_result = same, result
        return result

    def _refusal(self, call: ToolCall) -> ToolResult | None:
        if self.tool_calls >= self.allowance:
            why = f"your {self.allowance} tool calls are spent: give your answer now, with what you know"
            return refused(call, RefusalRule.BUDGET, why)
        if call.malformed:
            self.tool_calls += 1  # else an agent that cannot spell would go on for ever
            return refused(call, RefusalRule.ARGUMENTS, f"the arguments could not be read: {call.malformed}")
        return None


def refused(call: ToolCall, rule: RefusalRule, why: str) -> ToolResult:
    """A call that is not carried out, as the agent is shown it."""
    return ToolResult(call_id=call.id, name=call.name[:_NAME], text=f"refused: {why[:_WHY]}", ok=False, refused=rule)


_KNOWN: Final = ("Phase ", "Target: ")
"""Fields of a line that whoever watches an agent knows already."""


def spoken(told: Told, length: int) -> str:
    """What an agent is told or asked, in one line for whoever watches it: `? RV-1: [REVERIFY] Level 1 | Reason: …`."""
    line = told.text.partition("\n")[0]
    head, bracket, rest = line.partition("[")
    tag, _, fields = rest.partition("] ")
    kept = [part for part in fields.split(" | ") if not part.startswith(_KNOWN)]
    said = f"[{tag.removesuffix(']')}] {' | '.join(kept)}".strip() if bracket else head
    return shortened(f"? {told.asked}: {said}" if told.asked else f"» {said}", length)
