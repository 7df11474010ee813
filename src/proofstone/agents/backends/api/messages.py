"""Convert a conversation into pydantic-ai's messages and a response into a turn.

Everything here is pure: the same conversation always gives the same messages.
- Instructions and tools never change within a dispatch. They are sent first, and every request begins with the messages
  of the one before, so that the providers' caches hit.
- How the answer is requested is data (`config.providers.ANSWER_MODES`); text is always accepted too:
  - `tool`: as a call of the tool `answer`. An answer next to calls of other tools was given before their results were
    seen, and is not accepted.
  - `schema`: as text that the server holds to a schema, but only in a turn that must end the work: where there are no
    tools, after an answer that could not be used, and when all tool calls are spent. A server that holds an answer to
    a schema cannot call a tool, so in every other turn the answer is requested as in `tool`.
  - `text`: as text; the schema is part of the instructions. So is every turn in which a small model may write its
    edits into its text.
- Every call gets a result, because providers refuse a conversation in which one is missing.
- What a provider sends is limited in size and must be JSON, because the ledger stores nothing else.
- A provider gets its own turns back as it wrote them (`Turn.provider_state`). Turns of other backends are retold.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Final

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

from proofstone.agents.backends.api.providers import (
    MAX_ANSWER_SIZE,
    MAX_CALLS,
    MAX_NAME_CHARS,
    MAX_TOKENS,
    AnswerTooLargeError,
)
from proofstone.agents.models import Conversation, EngineMessage, RefusalRule, ToolCall, ToolResults, Turn
from proofstone.agents.rules.schemas import omit_descriptions, simplify_schema
from proofstone.common.models import Usage
from proofstone.config.providers import AnswerMode

ANSWER_TOOL: Final = "answer"
_ANSWER_HELP: Final = "Give your answer. Call this tool once, at the end, and no other tool with it."
_SCHEMA_INTRODUCTION: Final = "Your answer is one JSON object of this schema, with nothing around it:"
EDITING: Final = ("write", "edit")
"""The tools that blocks of edits become calls of. After them, a small model only has to say that it is done."""
_TOO_EARLY: Final = "Not taken: you had not seen the results of the other calls. Look at them, then answer."
_NOT_TAKEN: Final = "Not taken."
_NO_TEXT: Final = "(nothing)"
_CUT: Final = "the limit of output tokens was reached and the rest is missing"
_LONG_NAME: Final = f"the name of the tool is longer than {MAX_NAME_CHARS} characters"
_NUMBER_TOO_LARGE: Final = "not JSON: a number in the arguments is too large"


def build_parameters(
    conversation: Conversation, answer: AnswerMode, *, can_drop_tools: bool = True, hidden: Container[str] | None = ()
) -> ModelRequestParameters:
    """Return the tools, the instructions and the form of the answer for a request. `can_drop_tools`: whether the
    provider accepts a conversation with calls of tools that it is not offered any more. `hidden`: tools that
    the model is not offered; None: all of them."""
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
        for tool in conversation.tools
        if hidden is not None and tool.name not in hidden
    ]
    instructions = [InstructionPart(content=conversation.instructions)] if conversation.instructions else []
    # The prompt of a role describes the fields of its answer; the question of an interjection does not.
    is_described = not conversation.open_question
    schema = omit_descriptions(conversation.output_schema) if is_described else dict(conversation.output_schema)
    if answer == "text" or (conversation.edits == "blocks" and not must_end(conversation)):
        described = InstructionPart(content=describe_schema(schema))
        return ModelRequestParameters(function_tools=tools, instruction_parts=[*instructions, described])
    if answer == "schema" and (not tools or (can_drop_tools and must_end(conversation))):
        return ModelRequestParameters(
            instruction_parts=[*instructions, InstructionPart(content=describe_schema(schema))],
            output_mode="native",
            output_object=OutputObjectDefinition(json_schema=simplify_schema(schema), name=ANSWER_TOOL),
        )
    return ModelRequestParameters(
        function_tools=tools,
        instruction_parts=instructions,
        output_mode="tool",
        output_tools=[
            ToolDefinition(name=ANSWER_TOOL, description=_ANSWER_HELP, parameters_json_schema=schema, kind="output")
        ],
    )


def describe_schema(schema: Mapping[str, JsonValue]) -> str:
    """Return the schema of the answer as a part of the instructions."""
    return f"{_SCHEMA_INTRODUCTION}\n{json.dumps(schema, ensure_ascii=False, default=dict)}"


def must_end(conversation: Conversation) -> bool:
    """Return whether the next turn must be the answer: the last one could not be used, or no tool calls are left."""
    last = conversation.entries[-1]
    if isinstance(last, EngineMessage):
        return last.repair > 0 and (conversation.edits == "tool" or has_edited(conversation))
    if not isinstance(last, ToolResults):
        return False
    if all(result.refused is RefusalRule.BUDGET for result in last.results):
        return True
    return conversation.edits == "blocks" and all(result.ok and result.name in EDITING for result in last.results)


def has_edited(conversation: Conversation) -> bool:
    """Return whether the agent has changed a file. Before that, a small model must be able to write its change."""
    results = (result for entry in conversation.entries if isinstance(entry, ToolResults) for result in entry.results)
    return any(result.ok and result.name in EDITING for result in results)


def build_messages(conversation: Conversation, author: str) -> list[ModelMessage]:
    """Return the messages of the conversation as they are sent to `author`."""
    sent: list[ModelMessage] = []
    builder = _RequestBuilder()
    retold_calls = 0
    for entry in conversation.entries:
        match entry:
            case Turn():
                if build := builder.build():
                    sent.append(build)
                restored = _restore_response(entry, author)
                response = restored or _retell(entry, retold_calls)
                calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
                retold_calls += 0 if restored else len(calls)
                names = [part.tool_call_id for part in calls] if restored else [call.id for call in entry.calls]
                builder = _RequestBuilder(dict(zip(names, calls, strict=False)), calls[len(names) :])
                sent.append(response)
            case ToolResults():
                for result in entry.results:
                    builder.add_result(result.call_id, result.name, result.text)
            case EngineMessage():
                builder.prompts.append(UserPromptPart(entry.text))
    if build := builder.build():
        sent.append(build)
    return sent


class _RequestBuilder:
    """Collect what the model receives between two of its turns."""

    def __init__(self, open_calls: Mapping[str, ToolCallPart] | None = None, rest: Sequence[ToolCallPart] = ()) -> None:
        self._open = dict(open_calls or {})
        """Calls without a result yet, by their id in the conversation."""
        self._rest = rest
        """Calls without an id in the conversation: those of `answer`, in a turn that is retold."""
        self._results: list[ToolReturnPart] = []
        self.prompts: list[UserPromptPart] = []

    def add_result(self, call_id: str, name: str, text: str) -> None:
        if call := self._open.pop(call_id, None):
            self._results.append(ToolReturnPart(call.tool_name, text, call.tool_call_id))
        else:
            self.prompts.append(UserPromptPart(f"Result of `{name}`:\n{text}"))

    def build(self) -> ModelRequest | None:
        if not self._results and not self.prompts:
            return None
        has_results = bool(self._results)
        missing = [
            ToolReturnPart(
                call.tool_name,
                _TOO_EARLY if has_results and call.tool_name == ANSWER_TOOL else _NOT_TAKEN,
                call.tool_call_id,
            )
            for call in (*self._open.values(), *self._rest)
        ]
        return ModelRequest([*self._results, *missing, *self.prompts])


def _restore_response(turn: Turn, author: str) -> ModelResponse | None:
    """Return the turn as its author wrote it, if the same author is asked now and it can still be read."""
    state = turn.provider_state
    if not isinstance(state, dict) or state.get("author") != author:
        return None
    try:
        (response,) = ModelMessagesTypeAdapter.validate_python([state.get("response")])
    except ValidationError:  # written by an older version
        return None
    return response if isinstance(response, ModelResponse) else None


def _retell(turn: Turn, calls_before: int) -> ModelResponse:
    """Retell the turn in a neutral form. The ids are ours, because some providers accept only short ones."""
    calls = [(call.name, dict(call.arguments)) for call in turn.calls]
    if turn.answer is not None:
        calls.append((ANSWER_TOOL, dict(turn.answer)))
    parts: list[ModelResponsePart] = [] if calls and not turn.text else [TextPart(turn.text or _NO_TEXT)]
    for number, (name, arguments) in enumerate(calls, start=calls_before):
        parts.append(ToolCallPart(name, arguments, f"call{number:05d}"))
    return ModelResponse(parts)


def sanitize_response(response: ModelResponse) -> ModelResponse:
    """Return the response with valid types, text that can be encoded as UTF-8, unique call ids and a limited size.

    The SDKs check none of this. Raise a ValueError or TooLargeError if the response cannot be repaired.
    """
    cleaned = replace(response, parts=_clean_parts(_limit_calls(response.parts)))
    dumped = ModelMessagesTypeAdapter.dump_python([cleaned], warnings=False)
    (checked,) = ModelMessagesTypeAdapter.validate_python(dumped)
    if not isinstance(checked, ModelResponse):
        raise ValueError(f"a {checked.kind} instead of a response")
    name = checked.model_name[:MAX_NAME_CHARS] if checked.model_name else None
    return replace(checked, usage=_validate_usage(checked.usage), model_name=name)


def _validate_usage(usage: RequestUsage) -> RequestUsage:
    """Return plausible counts. If some were not plausible, the cost is unknown."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    reported = {name: getattr(usage, name) for name in names}
    counts = {name: min(max(0, number), MAX_TOKENS) for name, number in reported.items()}
    # A request always has input: pydantic-ai reports zeros if it could not read the counts.
    adds_up = 0 < counts["input_tokens"] >= counts["cache_read_tokens"] + counts["cache_write_tokens"]
    return usage if adds_up and counts == reported else RequestUsage(**counts, unmeasured_requests=1)


def build_turn(response: ModelResponse, author: str, usd: float | None) -> Turn:
    """Convert a sound response into a turn. Text that cannot be read as an answer is passed on unchanged."""
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    others = tuple(_build_call(part, response) for part in calls if part.tool_name != ANSWER_TOOL)
    answer = _parse_arguments(calls[0])[0] if calls and not others else None
    text = _join_text(response, calls[0] if calls and not others and answer is None else None)
    cut = response.finish_reason == "length" and answer is None and not others
    is_faithful = not cut and (bool(others) or answer is not None or (bool(text) and not calls))
    return Turn(
        text=f"{text}\n[{_CUT}]" if cut else text,
        answer=answer,
        calls=others,
        cut=cut,
        thoughts="\n".join(part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content),
        model=f"{author.partition(':')[0]}:{response.model_name}" if response.model_name else author,
        usage=_convert_usage(response, usd),
        # Otherwise, the turn is retold as the engine saw it.
        provider_state=_dump_state(response, author) if is_faithful else None,
    )


def _join_text(response: ModelResponse, broken_answer: ToolCallPart | None) -> str:
    if broken_answer:
        return _get_raw_arguments(broken_answer)
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _build_call(part: ToolCallPart, response: ModelResponse) -> ToolCall:
    arguments, why = _parse_arguments(part)
    if len(part.tool_name) > MAX_NAME_CHARS:
        return ToolCall(id=part.tool_call_id, name=part.tool_name[:MAX_NAME_CHARS], malformed=_LONG_NAME)
    if why and response.finish_reason == "length":
        why = f"not JSON: {_CUT}"
    return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments or {}, malformed=why)


def _limit_calls(parts: Sequence[ModelResponsePart]) -> list[ModelResponsePart]:
    """Drop the calls beyond the limit, and put a note in their place."""
    calls = [index for index, part in enumerate(parts) if isinstance(part, ToolCallPart)]
    if len(calls) <= MAX_CALLS:
        return list(parts)
    dropped = set(calls[MAX_CALLS:])
    kept = [part for index, part in enumerate(parts) if index not in dropped]
    note = TextPart(f"[{len(dropped)} more calls of this turn were dropped: {MAX_CALLS} are the most]")
    return [*kept[: calls[0]], note, *kept[calls[0] :]]


def _clean_parts(parts: Sequence[ModelResponsePart]) -> list[ModelResponsePart]:
    seen: set[str] = set()
    size = 0
    cleaned: list[ModelResponsePart] = []
    for part in parts:
        if isinstance(part, TextPart | ThinkingPart):
            part = replace(part, content=make_encodable(part.content))
            size += len(part.content)
        elif isinstance(part, ToolCallPart):
            part = _clean_call(part, seen)
            size += len(_get_raw_arguments(part))
            seen.add(part.tool_call_id)
        cleaned.append(part)
    if size > MAX_ANSWER_SIZE:
        raise AnswerTooLargeError(MAX_ANSWER_SIZE)
    return cleaned


def _clean_call(part: ToolCallPart, seen: Container[str]) -> ToolCallPart:
    id = part.tool_call_id[:MAX_NAME_CHARS]
    ids = chain([id], (f"{id}-{number}" for number in count(2)))
    return replace(
        part,
        # One extra character is kept as a sign that the name was cut.
        tool_name=part.tool_name[: MAX_NAME_CHARS + 1],
        args=make_encodable(_get_raw_arguments(part)),
        tool_call_id=next(candidate for candidate in ids if candidate not in seen),
    )


def make_encodable(text: str) -> str:
    """Replace unpaired surrogates, which JSON allows and UTF-8 does not."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _parse_arguments(part: ToolCallPart) -> tuple[dict[str, JsonValue] | None, str]:
    """Return the arguments, or why they cannot be read."""
    raw = _get_raw_arguments(part)
    try:
        value = pydantic_core.from_json(raw or "{}", allow_inf_nan=False)
    except ValueError as error:
        return None, f"not JSON: {error}"
    if not _is_json(value):
        return None, _NUMBER_TOO_LARGE
    return (value, "") if isinstance(value, dict) else (None, f"not an object but {raw[:80]}")


def _get_raw_arguments(part: ToolCallPart) -> str:
    return part.args if isinstance(part.args, str) else json.dumps(part.args or {}, ensure_ascii=False)


def _is_json(value: object) -> bool:
    """Return whether the value can be written as JSON. Python also reads values that cannot."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _dump_state(response: ModelResponse, author: str) -> JsonValue:
    """Return the state to keep, or None if it could be neither stored nor sent again."""
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)
    value: JsonValue = {key: dumped[key] for key in dumped if key not in ("usage", "timestamp")}
    arguments = [part.args_as_dict() for part in response.tool_calls]
    return {"author": author, "response": value} if _is_json([value, arguments]) else None


def _convert_usage(response: ModelResponse, usd: float | None) -> Usage:
    reported = response.usage
    return Usage(
        requests=1,
        input_tokens=reported.input_tokens,
        output_tokens=reported.output_tokens,
        cache_read_tokens=reported.cache_read_tokens,
        cache_write_tokens=reported.cache_write_tokens,
        usd=usd,
    )
