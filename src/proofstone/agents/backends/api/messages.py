"""Between our conversation and pydantic-ai's messages. Pure: the same conversation always gives the same messages.

- What never changes within a dispatch (instructions, tools) is sent first and always the same, and every request
  begins with the messages of the one before, so that the providers' caches hit.
- The answer is asked for as a call of the tool `answer`; text is taken too. An answer beside calls of other tools was
  given before it could see their results, and is not taken.
- Every call gets a result, because providers refuse a conversation in which one is missing.
- What a provider sends is bounded, and is JSON: the ledger takes nothing else.
- A provider gets its own turns back as it wrote them (`Turn.provider_state`); the turns of others it gets retold.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Final, Literal

import pydantic_core
from pydantic import JsonValue, ValidationError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from proofstone.agents.backends.api.providers import LARGEST, LONGEST_NAME, MOST_CALLS, MOST_TOKENS, TooLargeError
from proofstone.agents.models import Conversation, Returned, Told, ToolCall, Turn
from proofstone.common.models import Usage

ANSWER: Final = "answer"
_ANSWER_HELP: Final = "Give your answer. Call it once, at the end, and no other tool beside it."
_TOO_EARLY: Final = "Not taken: you had not seen the results of the other calls. Look at them, then answer."
_NOT_TAKEN: Final = "Not taken."
_NOTHING: Final = "(nothing)"
_CUT: Final = "the limit of output tokens was reached and the rest is missing"
_LONG_NAME: Final = f"the name of the tool is longer than {LONGEST_NAME} characters"
_NO_NUMBER: Final = "not JSON: a number in them is too large"


def parameters(conversation: Conversation, answer: Literal["tool", "schema"]) -> ModelRequestParameters:
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
        for tool in conversation.tools
    ]
    instructions = [InstructionPart(content=conversation.instructions)] if conversation.instructions else []
    schema = dict(conversation.output_schema)
    if answer == "schema":
        return ModelRequestParameters(
            function_tools=tools,
            instruction_parts=instructions,
            output_mode="native",
            output_object=OutputObjectDefinition(json_schema=schema, name=ANSWER),
        )
    return ModelRequestParameters(
        function_tools=tools,
        instruction_parts=instructions,
        output_mode="tool",
        output_tools=[
            ToolDefinition(name=ANSWER, description=_ANSWER_HELP, parameters_json_schema=schema, kind="output")
        ],
    )


def messages(conversation: Conversation, author: str) -> list[ModelMessage]:
    """As they are sent to `author`."""
    sent: list[ModelMessage] = []
    heard = _Heard()
    retold = 0
    for entry in conversation.entries:
        match entry:
            case Turn():
                if request := heard.request():
                    sent.append(request)
                own = _own(entry, author)
                response = own or _retold(entry, retold)
                calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
                retold += 0 if own else len(calls)
                names = [part.tool_call_id for part in calls] if own else [call.id for call in entry.calls]
                heard = _Heard(dict(zip(names, calls, strict=False)), calls[len(names) :])
                sent.append(response)
            case Returned():
                for result in entry.results:
                    heard.result(result.call_id, result.name, result.text)
            case Told():
                heard.words.append(UserPromptPart(entry.text))
    if request := heard.request():
        sent.append(request)
    return sent


class _Heard:
    """What the model gets to hear between two of its turns."""

    def __init__(self, open_calls: Mapping[str, ToolCallPart] | None = None, rest: Sequence[ToolCallPart] = ()) -> None:
        self._open = dict(open_calls or {})
        """Calls without a result yet, by the id that the conversation has for them."""
        self._rest = rest
        """Calls that the conversation has no id for: of `answer`, in a turn that is retold."""
        self._results: list[ToolReturnPart] = []
        self.words: list[UserPromptPart] = []

    def result(self, call_id: str, name: str, text: str) -> None:
        if call := self._open.pop(call_id, None):
            self._results.append(ToolReturnPart(call.tool_name, text, call.tool_call_id))
        else:
            self.words.append(UserPromptPart(f"Result of `{name}`:\n{text}"))

    def request(self) -> ModelRequest | None:
        if not self._results and not self.words:
            return None
        seen = bool(self._results)
        missing = [
            ToolReturnPart(
                call.tool_name, _TOO_EARLY if seen and call.tool_name == ANSWER else _NOT_TAKEN, call.tool_call_id
            )
            for call in (*self._open.values(), *self._rest)
        ]
        return ModelRequest([*self._results, *missing, *self.words])


def _own(turn: Turn, author: str) -> ModelResponse | None:
    """The turn as its author wrote it, if that is who asks and it can still be read."""
    state = turn.provider_state
    if not isinstance(state, dict) or state.get("author") != author:
        return None
    try:
        (response,) = ModelMessagesTypeAdapter.validate_python([state.get("response")])
    except ValidationError:  # written by an older version
        return None
    return response if isinstance(response, ModelResponse) else None


def _retold(turn: Turn, calls_before: int) -> ModelResponse:
    """The turn in words that everybody understands. Ids are ours, because some providers accept only short ones."""
    calls = [(call.name, dict(call.arguments)) for call in turn.calls]
    if turn.answer is not None:
        calls.append((ANSWER, dict(turn.answer)))
    parts: list[ModelResponsePart] = [] if calls and not turn.text else [TextPart(turn.text or _NOTHING)]
    for number, (name, arguments) in enumerate(calls, start=calls_before):
        parts.append(ToolCallPart(name, arguments, f"call{number:05d}"))
    return ModelResponse(parts)


def sound(response: ModelResponse) -> ModelResponse:
    """The response with every part of the type it should be, with text that can be written down as UTF-8, without
    two calls of the same id, and of a size that can be worked with. The SDKs check nothing of it. Raises a ValueError
    or TooLargeError if it cannot be had."""
    tidied = replace(response, parts=_tidied(_bounded(response.parts)))
    dumped = ModelMessagesTypeAdapter.dump_python([tidied], warnings=False)
    (checked,) = ModelMessagesTypeAdapter.validate_python(dumped)
    if not isinstance(checked, ModelResponse):
        raise ValueError(f"a {checked.kind} in place of a response")
    name = checked.model_name[:LONGEST_NAME] if checked.model_name else None
    return replace(checked, usage=_counted(checked.usage), model_name=name)


def _counted(usage: RequestUsage) -> RequestUsage:
    """With counts that can be. Where there were others, nothing can be said of the cost."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    given = {name: getattr(usage, name) for name in names}
    counts = {name: min(max(0, number), MOST_TOKENS) for name, number in given.items()}
    # Something was asked. pydantic-ai has nothing but zeros where it could not make sense of what it got.
    adds_up = 0 < counts["input_tokens"] >= counts["cache_read_tokens"] + counts["cache_write_tokens"]
    return usage if adds_up and counts == given else RequestUsage(**counts, unmeasured_requests=1)


def turn(response: ModelResponse, author: str, usd: float | None) -> Turn:
    """What the model said, of a sound response. What cannot be read as an answer is handed on as it stands."""
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    others = tuple(_call(part, response) for part in calls if part.tool_name != ANSWER)
    answer = _arguments(calls[0])[0] if calls and not others else None
    text = _text(response, calls[0] if calls and not others and answer is None else None)
    cut = response.finish_reason == "length" and answer is None and not others
    as_written = not cut and (bool(others) or answer is not None or (bool(text) and not calls))
    return Turn(
        text=f"{text}\n[{_CUT}]" if cut else text,
        answer=answer,
        calls=others,
        cut=cut,
        thoughts="\n".join(part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content),
        model=f"{author.partition(':')[0]}:{response.model_name}" if response.model_name else author,
        usage=_usage(response, usd),
        # Else it is retold as the engine saw it.
        provider_state=_state(response, author) if as_written else None,
    )


def _text(response: ModelResponse, broken_answer: ToolCallPart | None) -> str:
    if broken_answer:
        return _raw(broken_answer)
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _call(part: ToolCallPart, response: ModelResponse) -> ToolCall:
    arguments, why = _arguments(part)
    if len(part.tool_name) > LONGEST_NAME:
        return ToolCall(id=part.tool_call_id, name=part.tool_name[:LONGEST_NAME], malformed=_LONG_NAME)
    if why and response.finish_reason == "length":
        why = f"not JSON: {_CUT}"
    return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments or {}, malformed=why)


def _bounded(parts: Sequence[ModelResponsePart]) -> list[ModelResponsePart]:
    """Without the calls that are too many. In their place it is said how many they were."""
    calls = [at for at, part in enumerate(parts) if isinstance(part, ToolCallPart)]
    if len(calls) <= MOST_CALLS:
        return list(parts)
    beyond = set(calls[MOST_CALLS:])
    kept = [part for at, part in enumerate(parts) if at not in beyond]
    note = TextPart(f"[{len(beyond)} more calls of this turn were dropped: {MOST_CALLS} are the most]")
    return [*kept[: calls[0]], note, *kept[calls[0] :]]


def _tidied(parts: Sequence[ModelResponsePart]) -> list[ModelResponsePart]:
    seen: set[str] = set()
    size = 0
    tidied: list[ModelResponsePart] = []
    for part in parts:
        if isinstance(part, TextPart | ThinkingPart):
            part = replace(part, content=writable(part.content))
            size += len(part.content)
        elif isinstance(part, ToolCallPart):
            part = _tidied_call(part, seen)
            size += len(_raw(part))
            seen.add(part.tool_call_id)
        tidied.append(part)
    if size > LARGEST:
        raise TooLargeError(LARGEST)
    return tidied


def _tidied_call(part: ToolCallPart, seen: Container[str]) -> ToolCallPart:
    id = part.tool_call_id[:LONGEST_NAME]
    ids = chain([id], (f"{id}-{number}" for number in count(2)))
    return replace(
        part,
        # One character too many is kept, as a sign that it is not the name that was meant.
        tool_name=part.tool_name[: LONGEST_NAME + 1],
        args=writable(_raw(part)),
        tool_call_id=next(item for item in ids if item not in seen),
    )


def writable(text: str) -> str:
    """Without the halves of characters that JSON allows and UTF-8 does not."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _arguments(part: ToolCallPart) -> tuple[dict[str, JsonValue] | None, str]:
    """The arguments, or why they cannot be read."""
    raw = _raw(part)
    try:
        value = pydantic_core.from_json(raw or "{}", allow_inf_nan=False)
    except ValueError as error:
        return None, f"not JSON: {error}"
    if not _is_json(value):
        return None, _NO_NUMBER
    return (value, "") if isinstance(value, dict) else (None, f"not an object but {raw[:80]}")


def _raw(part: ToolCallPart) -> str:
    return part.args if isinstance(part.args, str) else json.dumps(part.args or {}, ensure_ascii=False)


def _is_json(value: object) -> bool:
    """`1e999` is read as infinity and half a character as one, but neither can be written."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _state(response: ModelResponse, author: str) -> JsonValue:
    """None: it holds what could be neither kept nor sent again."""
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)
    value: JsonValue = {key: dumped[key] for key in dumped if key not in ("usage", "timestamp")}
    sent_again = [part.args_as_dict() for part in response.tool_calls]
    return {"author": author, "response": value} if _is_json([value, sent_again]) else None


def _usage(response: ModelResponse, usd: float | None) -> Usage:
    used = response.usage
    return Usage(
        requests=1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        usd=usd,
    )
