"""The conversation of one dispatch. Pure: a generator that yields its requests and is sent their results.

    think ──► tool calls? ──► use each tool, show the results ──► think …
          └─► an answer? ──► it matches the schema: done; it does not: show why, at most twice ──► think …
          └─► a fault? ──► pause and think again if that may help; else the conversation ends

If the agent is supervised, each turn boundary is passed to the supervisor, the first before anything was said. The
supervisor may interject. Until the interjection is settled, the agent's answers belong to it and do not end the
dispatch.

Every loop is bounded: repairs by REPAIRS and tool calls by the allowance. An agent that goes on calling tools without
any calls left, or makes the same call three times in a row, is stopped. The supervisor limits its own questions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import (
    Conversation,
    EngineMessage,
    Fault,
    FaultKind,
    RefusalRule,
    ToolCall,
    ToolResult,
    ToolResults,
    Turn,
)
from proofstone.agents.rules.answer import AnswerT, MalformedAnswer, MendedAnswer, read_answer
from proofstone.agents.rules.budget import compute_pause
from proofstone.agents.rules.edit_blocks import find_shown_files, read_edit_calls
from proofstone.agents.rules.schemas import describe_place
from proofstone.common.models import FrozenModel
from proofstone.common.serialization import AnyModel, serializable
from proofstone.common.text import escape_invisible, fence_text
from proofstone.plans.fields import shorten_text

MAX_REPAIRS: Final = 2
MAX_SAME_CALLS: Final = 3
"""An agent that makes the same call so often in a row is stopped. Earlier repetitions return the same result."""
MAX_TURNS_AFTER_LIMIT: Final = 3
"""How many turns an agent may go on calling tools after its allowance is spent."""
MAX_CALLS_PER_TURN: Final = 32
_NAME: Final = 200
_WHY: Final = 1000
"""How many characters of an agent's own words are shown to it and recorded."""
MAX_TRIED: Final = 6
"""How many different calls a summary of what was tried names."""
_MAX_TRIED_CHARS: Final = 60
_TOO_MANY: Final = f"at most {MAX_CALLS_PER_TURN} calls are carried out in one turn"


@serializable("conversation.request_turn")
@dataclass(frozen=True)
class RequestTurn:
    """Ask the backend for a turn. The reply is a Turn or a Fault."""

    conversation: Conversation


@serializable("conversation.use_tool")
@dataclass(frozen=True)
class UseTool:
    """Carry out a tool call. The reply is its ToolResult, or a Fault that ends the dispatch."""

    call: ToolCall


@serializable("conversation.wait_for_retry")
@dataclass(frozen=True)
class WaitForRetry:
    """Wait because of the fault. The reply is None, or a Fault if the pause was cut short."""

    seconds: float
    fault: Fault


@serializable("conversation.record_tool_result")
@dataclass(frozen=True)
class RecordToolResult:
    """Record the result of a call that is not carried out, because it was refused or its result is known. The reply is
    None, or a Fault that ends the dispatch."""

    result: ToolResult


@serializable("conversation.record_repair")
@dataclass(frozen=True)
class RecordRepair:
    """Record the message that tells the agent what is wrong with its answer."""

    message: EngineMessage


@serializable("conversation.turn_boundary")
@dataclass(frozen=True)
class TurnBoundary:
    """A turn boundary, where the supervisor may interject. The reply is an Aside, None if there is nothing to say, or a
    Fault that ends the dispatch. After an answer to an interjection it must be an Aside: the next question, or the
    message that the work continues."""

    turn: Turn | None = None
    """The turn that has ended; None before the first turn."""
    results: tuple[ToolResult, ...] = ()
    is_reply: bool = False
    """Whether the turn answers the question of an interjection."""
    output: AnyModel | None = None
    """The answer that ends the dispatch, unless the supervisor interjects."""


@serializable("conversation.interjection")
@dataclass(frozen=True)
class Interjection:
    """An interjection: a message of the engine during the work."""

    message: EngineMessage
    schema: Mapping[str, JsonValue] | None = None
    """The schema of the expected answer, if there is one."""
    scope: tuple[str, ...] | None = None
    """The files that the agent may change from now on; None if that does not change."""


ConversationEffect = RequestTurn | UseTool | WaitForRetry | RecordToolResult | RecordRepair | TurnBoundary
ConversationEffectResult = Turn | ToolResult | Fault | Interjection | None


@dataclass(frozen=True)
class ConversationEnd:
    output: FrozenModel | Fault
    turns: int
    tool_calls: int
    repairs: int
    notes: tuple[str, ...] = ()
    """What the engine has mended in the answer."""


AnswerCheck = Callable[[FrozenModel], str]
"""Returns why an answer that matches the schema is wrong, such as an unknown id in it; empty if it is right."""


def run_conversation(
    conversation: Conversation,
    contract: type[FrozenModel],
    tool_calls: int,
    check: AnswerCheck = lambda _: "",
    *,
    attended: bool = False,
) -> Generator[ConversationEffect, ConversationEffectResult, ConversationEnd]:
    """Run the conversation to its end."""
    counters = _Counters(tool_calls)
    notes: tuple[str, ...] = ()
    output_schema, boundary = conversation.output_schema, TurnBoundary()
    while True:
        reply = (yield boundary) if attended else None
        if isinstance(reply, Fault):
            return counters.build_end(reply)
        if isinstance(reply, Interjection):
            schema = reply.schema or output_schema
            conversation = conversation.with_entries(reply.message).model_copy(update={"output_schema": schema})
        elif boundary.output is not None:
            return counters.build_end(boundary.output, notes)
        elif boundary.is_reply:
            raise TypeError("an answer to an interjection must be followed by a message")
        turn = yield from counters.think(conversation)
        if isinstance(turn, Fault):
            return counters.build_end(turn)
        calls = turn.calls or _read_edits(conversation, turn, counters.turns)
        if calls:
            results = yield from counters.use(calls)
            if isinstance(results, Fault):
                return counters.build_end(results)
            if not turn.calls and all(result.ok for result in results):
                answer = _check_answer(turn, contract, check)
                if not isinstance(answer, MalformedAnswer):  # the edits and the answer came in one turn
                    notes, entry = answer.notes, ToolResults(results=results)
                    conversation = conversation.with_entries(turn, entry)
                    boundary = TurnBoundary(turn, results, output=answer.answer)
                    continue
            conversation, boundary = (
                conversation.with_entries(turn, ToolResults(results=results)),
                TurnBoundary(turn, results),
            )
            continue
        if conversation.open_question:
            conversation, boundary = conversation.with_entries(turn), TurnBoundary(turn, is_reply=True)
            continue
        answer = _check_answer(turn, contract, check)
        if not isinstance(answer, MalformedAnswer):
            notes = answer.notes
            conversation, boundary = conversation.with_entries(turn), TurnBoundary(turn, output=answer.answer)
            continue
        if counters.repairs == MAX_REPAIRS:
            why = f"its answer is not of the schema, after {MAX_REPAIRS} repairs: {answer.why}"
            return counters.build_end(Fault(kind=FaultKind.MALFORMED, why=why))
        counters.repairs += 1
        text = format_repair(answer, turn, conversation.output_schema)
        message = EngineMessage(text=text, repair=counters.repairs)
        yield RecordRepair(message)
        conversation, boundary = conversation.with_entries(turn, message), TurnBoundary(turn)


def _read_edits(conversation: Conversation, turn: Turn, number: int) -> tuple[ToolCall, ...]:
    """Return the edits in the text of the turn, if the agent changes files that way and does its work."""
    if conversation.edits != "blocks" or conversation.open_question:
        return ()
    opening = conversation.entries[0]
    shown = find_shown_files(opening.text) if isinstance(opening, EngineMessage) else {}
    return read_edit_calls(turn, number, shown)


def _check_answer(
    turn: Turn, contract: type[FrozenModel], check: AnswerCheck
) -> MendedAnswer[FrozenModel] | MalformedAnswer:
    """Return the answer if it matches the schema and passes the check."""
    answer = read_turn(turn, contract)
    if isinstance(answer, MalformedAnswer):
        return answer
    return MalformedAnswer(why) if (why := check(answer.answer)) else answer


def read_turn(turn: Turn, contract: type[AnswerT]) -> MendedAnswer[AnswerT] | MalformedAnswer:
    """Return the answer in the turn as the contract, or why it is malformed."""
    answer = read_answer(turn.text if turn.answer is None else turn.answer, contract)
    if isinstance(answer, MalformedAnswer) and turn.cut and turn.answer is None:
        return MalformedAnswer(
            "it was cut off at the limit of output tokens: be briefer (a person can raise that limit: "
            "`max_output_tokens` of the model)"
        )
    return answer


def format_repair(malformed: MalformedAnswer, turn: Turn, schema: Mapping[str, JsonValue]) -> str:
    """Return what is wrong with an answer and where, the expected form, and the beginning of what the agent wrote."""
    parts = [f"Your answer could not be used: {malformed.why}"]
    forms = {
        place: form
        for location in malformed.places
        if (place := ".".join(map(str, location))) and (form := describe_place(schema, location))
    }
    if forms:
        parts.append("\n".join(("Expected:", *(f"- `{place}`: {form}" for place, form in forms.items()))))
    elif turn.text.strip() and turn.answer is None:
        parts.append(f"You wrote:\n{fence_text(escape_invisible(_quote(turn.text.strip())))}")
    parts.append(_GIVE_AGAIN)
    return "\n\n".join(parts)


_GIVE_AGAIN: Final = (
    "Give the whole answer again, as one JSON object that matches the given schema, with nothing around it."
)
_QUOTED_CHARS: Final = 600
"""How much of an agent's own text is quoted back to it."""


def _quote(text: str) -> str:
    if len(text) <= _QUOTED_CHARS:
        return text
    return f"{text[: _QUOTED_CHARS * 2 // 3]}\n[...]\n{text[-_QUOTED_CHARS // 3 :]}"


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
        self._tried: Counter[str] = Counter()

    def build_end(self, output: FrozenModel | Fault, notes: tuple[str, ...] = ()) -> ConversationEnd:
        return ConversationEnd(output, self.turns, self.tool_calls, self.repairs, notes)

    def think(
        self, conversation: Conversation
    ) -> Generator[ConversationEffect, ConversationEffectResult, Turn | Fault]:
        retries = 0
        while True:
            reply = yield RequestTurn(conversation)
            if isinstance(reply, Turn):
                self.turns += 1
                return reply
            if not isinstance(reply, Fault):
                raise TypeError(f"expected a turn, not {reply!r}")
            retries += 1
            seconds = compute_pause(reply, retries)
            if seconds is None:
                return reply
            if isinstance(cut := (yield WaitForRetry(seconds, reply)), Fault):
                return cut

    def use(
        self, calls: tuple[ToolCall, ...]
    ) -> Generator[ConversationEffect, ConversationEffectResult, tuple[ToolResult, ...] | Fault]:
        """Carry out the calls and return the results in their order."""
        results: list[ToolResult] = []
        is_spent = self.tool_calls >= self.allowance
        for call in calls[:MAX_CALLS_PER_TURN]:
            result = yield from self._use_tool(call)
            if isinstance(result, Fault):
                return result
            results.append(result)
        too_many = [build_refusal(call, RefusalRule.BUDGET, _TOO_MANY) for call in calls[MAX_CALLS_PER_TURN:]]
        if too_many and isinstance(cut := (yield RecordToolResult(too_many[0])), Fault):  # one record for all of them
            return cut
        results += too_many
        self._turns_after_limit = self._turns_after_limit + 1 if is_spent else 0
        if self._turns_after_limit > MAX_TURNS_AFTER_LIMIT:
            why = f"it keeps calling tools although its {self.allowance} calls are spent; {self._summarize_calls()}"
            return Fault(kind=FaultKind.LOOPING, why=why)
        return tuple(results)

    def _use_tool(self, call: ToolCall) -> Generator[ConversationEffect, ConversationEffectResult, ToolResult | Fault]:
        if refusal := self._check_refusal(call):
            cut = yield RecordToolResult(refusal)
            return cut if isinstance(cut, Fault) else refusal
        self.tool_calls += 1
        signature = (call.name, call.arguments)
        self._repetitions = self._repetitions + 1 if signature == self._last else 1
        if self._repetitions >= MAX_SAME_CALLS:
            why = (
                f"it called {call.name} with the same arguments {MAX_SAME_CALLS} times in a row; "
                f"{self._summarize_calls()}"
            )
            return Fault(kind=FaultKind.LOOPING, why=why)
        if self._repetitions > 1 and self._last_result is not None:
            repeated_result = self._last_result.model_copy(update={"call_id": call.id, "repeated": True})
            cut = yield RecordToolResult(repeated_result)
            return cut if isinstance(cut, Fault) else repeated_result
        result = yield UseTool(call)
        if isinstance(result, Fault):
            return result
        if not isinstance(result, ToolResult):
            raise TypeError(f"expected a tool result, not {result!r}")
        self._last, self._last_result = signature, result
        self._tried[format_tried(call, result)] += 1
        return result

    def _summarize_calls(self) -> str:
        """Return what was tried, the most frequent first, for whoever decides what follows."""
        tried = self._tried.most_common(MAX_TRIED)
        more = len(self._tried) - len(tried)
        parts = [f"{text} ({times} times)" if times > 1 else text for text, times in tried]
        return f"tried: {', '.join(parts)}{f' and {more} more' if more else ''}" if parts else "nothing else was tried"

    def _check_refusal(self, call: ToolCall) -> ToolResult | None:
        if self.tool_calls >= self.allowance:
            why = f"your {self.allowance} tool calls are spent: give your answer now, with what you know"
            return build_refusal(call, RefusalRule.BUDGET, why)
        if call.malformed:
            self.tool_calls += 1  # otherwise an agent that writes malformed calls would never stop
            return build_refusal(call, RefusalRule.ARGUMENTS, f"the arguments could not be read: {call.malformed}")
        return None


def format_tried(call: ToolCall, result: ToolResult) -> str:
    """Return a call in a few words: its tool, its target, and whether it failed."""
    target = next(
        (str(call.arguments[name]) for name in ("path", "command", "pattern") if call.arguments.get(name)), ""
    )
    words = shorten_text(f"{call.name} {target}".strip(), _MAX_TRIED_CHARS)
    return words if result.ok else f"{words}, which failed"


def build_refusal(call: ToolCall, rule: RefusalRule, why: str) -> ToolResult:
    """Return the result that the agent gets for a refused call."""
    return ToolResult(call_id=call.id, name=call.name[:_NAME], text=f"refused: {why[:_WHY]}", ok=False, refused=rule)


_TAGGED_LINE: Final = re.compile(r"\[([A-Z][A-Z_-]*)\](?: (.*))?$")
_OMITTED_FIELDS: Final = ("Phase ", "Target: ")
"""Fields of a line that the live view shows elsewhere."""


def format_message_line(told: EngineMessage, length: int) -> str:
    """Return a message to an agent as one line for the live view: `? RV-1: [REVERIFY] Level 1 | Reason: …`."""
    line = told.text.partition("\n")[0]
    tagged = _TAGGED_LINE.search(line)
    fields = (tagged[2] or "").split(" | ") if tagged else ()
    parts = [part for part in fields if not part.startswith(_OMITTED_FIELDS)]
    summary = f"[{tagged[1]}] {' | '.join(parts)}".strip() if tagged else line
    return shorten_text(f"? {told.asked}: {summary}" if told.asked else f"» {summary}", length)
