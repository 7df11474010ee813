"""The providers' own libraries, each asked the same and heard in the same words."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
import openai
from google import genai
from google.genai import types

from proofstone.testing.model_server.answers import WireProtocol
from proofstone.testing.model_server.server import ModelServer

SYSTEM = "be brief"
TOOL = {"type": "object", "properties": {"path": {"type": "string"}}}


@dataclass
class Heard:
    text: str = ""
    thoughts: str = ""
    calls: list[tuple[str, object]] = field(default_factory=list)
    """`(name, arguments)`; arguments that are no JSON as the text that they are."""
    usage: tuple[int, int, int] = (0, 0, 0)
    """`(input, output, cached)`, as the provider counts."""
    finish: str | None = None
    pieces: int = 0
    """In which the text came."""

    def add_text(self, text: str | None) -> None:
        self.text += text or ""
        self.pieces += bool(text)


@dataclass(frozen=True)
class Told:
    """What is asked: a first question, or the question, a call of `read` and, unless it is withheld, its result."""

    called: bool = False
    result: str | None = None


ASKED = Told()


class StreamBrokeOffError(Exception):
    """An error that the library hands on as an event."""


def _plain_http(seconds: float) -> httpx2.Client:
    """Certificates, which nobody here asks for, take longer to load than all the rest."""
    return httpx2.Client(verify=False, timeout=seconds)


def arguments(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def openai_chat(server: ModelServer, stream: bool, told: Told = ASKED, seconds: float = 10) -> Heard:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "hi"}]
    if told.called:
        made = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "I look", "tool_calls": [made]})
    if told.result is not None:
        messages.append({"role": "tool", "tool_call_id": "c1", "content": told.result})
    tools: list[Any] = [{"type": "function", "function": {"name": "read", "parameters": TOOL}}]
    url = server.base_url(WireProtocol.OPENAI_CHAT)
    with openai.OpenAI(base_url=url, api_key="key", max_retries=0, http_client=_plain_http(seconds)) as client:
        if stream:
            chunks = client.chat.completions.create(
                model="m", messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
            )
            return _chat_stream(chunks)
        whole = client.chat.completions.create(model="m", messages=messages, tools=tools)
    heard = Heard(finish=whole.choices[0].finish_reason)
    message = whole.choices[0].message
    heard.add_text(message.content)
    heard.thoughts = getattr(message, "reasoning_content", "")
    for call in message.tool_calls or []:
        assert call.type == "function"
        heard.calls.append((call.function.name, arguments(call.function.arguments)))
    heard.usage = _chat_usage(whole.usage)
    return heard


def _chat_stream(chunks: openai.Stream[Any]) -> Heard:
    heard = Heard()
    names: list[str] = []
    texts: list[str] = []
    for chunk in chunks:
        if chunk.usage:
            heard.usage = _chat_usage(chunk.usage)
        for choice in chunk.choices:
            heard.add_text(choice.delta.content)
            heard.thoughts += getattr(choice.delta, "reasoning_content", None) or ""
            heard.finish = choice.finish_reason
            for call in choice.delta.tool_calls or []:
                if call.function.name:
                    names.append(call.function.name)
                    texts.append("")
                texts[call.index] += call.function.arguments
    heard.calls = [(name, arguments(text)) for name, text in zip(names, texts, strict=True)]
    return heard


def _chat_usage(usage: Any) -> tuple[int, int, int]:  # noqa: ANN401  of the library, optional at every step
    return usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens


def openai_responses(server: ModelServer, stream: bool, told: Told = ASKED, seconds: float = 10) -> Heard:
    items: list[Any] = [{"role": "user", "content": "hi"}]
    if told.called:
        items.append({"role": "assistant", "content": "I look"})
        items.append({"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"})
    if told.result is not None:
        items.append({"type": "function_call_output", "call_id": "c1", "output": told.result})
    tools: list[Any] = [{"type": "function", "name": "read", "parameters": TOOL, "strict": False}]
    heard = Heard()
    url = server.base_url(WireProtocol.OPENAI_RESPONSES)
    with openai.OpenAI(base_url=url, api_key="key", max_retries=0, http_client=_plain_http(seconds)) as client:
        if stream:
            for event in client.responses.create(model="m", input=items, instructions=SYSTEM, tools=tools, stream=True):
                if event.type == "response.output_text.delta":
                    heard.add_text(event.delta)
                elif event.type == "response.reasoning_summary_text.delta":
                    heard.thoughts += event.delta
                elif event.type == "response.output_item.done" and event.item.type == "function_call":
                    heard.calls.append((event.item.name, arguments(event.item.arguments)))
                elif event.type == "error":
                    raise StreamBrokeOffError(event.message)
                elif event.type in ("response.completed", "response.incomplete"):
                    return _ended(heard, event.response)
            return heard
        whole = client.responses.create(model="m", input=items, instructions=SYSTEM, tools=tools)
    heard.add_text(whole.output_text)
    for item in whole.output:
        if item.type == "reasoning":
            heard.thoughts = item.summary[0].text
        elif item.type == "function_call":
            heard.calls.append((item.name, arguments(item.arguments)))
    return _ended(heard, whole)


def _ended(heard: Heard, response: Any) -> Heard:  # noqa: ANN401  of the library, optional at every step
    usage = response.usage
    heard.usage = usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens
    heard.finish = response.incomplete_details.reason if response.incomplete_details else response.status
    return heard


def anthropic_messages(server: ModelServer, stream: bool, told: Told = ASKED, seconds: float = 10) -> Heard:
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    if told.called:
        call = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "I look"}, call]})
    if told.result is not None:
        result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": told.result}]}
        messages.append({"role": "user", "content": [result]})
    asking: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": messages, "system": SYSTEM}
    asking["tools"] = [{"name": "read", "input_schema": TOOL}]
    heard = Heard()
    url = server.base_url(WireProtocol.ANTHROPIC)
    with anthropic.Anthropic(base_url=url, api_key="key", max_retries=0, http_client=_plain_http(seconds)) as client:
        if stream:
            written: list[str] = []
            with client.messages.stream(**asking) as events:
                for event in events:
                    if event.type == "content_block_start" and event.content_block.type == "tool_use":
                        written.append("")
                    elif event.type == "input_json":
                        written[-1] += event.partial_json
                    elif event.type == "text":
                        heard.pieces += 1
                whole: anthropic.types.Message = events.get_final_message()
        else:
            whole = client.messages.create(**asking)
            heard.pieces = 1
            written = [json.dumps(block.input) for block in whole.content if block.type == "tool_use"]
    for block in whole.content:
        if block.type == "text":
            heard.text += block.text
        elif block.type == "thinking":
            heard.thoughts += block.thinking
        elif block.type == "tool_use":
            heard.calls.append((block.name, arguments(written.pop(0))))
    heard.usage = whole.usage.input_tokens, whole.usage.output_tokens, whole.usage.cache_read_input_tokens or 0
    heard.finish = whole.stop_reason
    return heard


def google(server: ModelServer, stream: bool, told: Told = ASKED, seconds: float = 10) -> Heard:
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="hi")])]
    if told.called:
        call = types.FunctionCall(id="c1", name="read", args={})
        contents.append(types.Content(role="model", parts=[types.Part(text="I look"), types.Part(function_call=call)]))
    if told.result is not None:
        result = types.FunctionResponse(id="c1", name="read", response={"output": told.result})
        contents.append(types.Content(role="user", parts=[types.Part(function_response=result)]))
    declared = types.FunctionDeclaration(name="read", parameters_json_schema=TOOL)
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM, tools=[types.Tool(function_declarations=[declared])]
    )
    plain = {"verify": False}
    options = types.HttpOptions(
        base_url=server.base_url(WireProtocol.GOOGLE),
        timeout=int(seconds * 1000),
        client_args=plain,
        async_client_args=plain,
    )
    heard = Heard()
    with genai.Client(api_key="key", http_options=options) as client:
        if stream:
            answers = list(client.models.generate_content_stream(model="m", contents=contents, config=config))
        else:
            answers = [client.models.generate_content(model="m", contents=contents, config=config)]
    for answer in answers:
        _hear_google(heard, answer)
    return heard


def _hear_google(heard: Heard, answer: Any) -> None:  # noqa: ANN401  of the library, optional at every step
    usage = answer.usage_metadata
    heard.usage = usage.prompt_token_count, usage.candidates_token_count, usage.cached_content_token_count
    for candidate in answer.candidates:
        heard.finish = candidate.finish_reason and candidate.finish_reason.value
        for part in candidate.content.parts:
            if part.function_call:
                heard.calls.append((part.function_call.name, part.function_call.args))
            elif part.thought:
                heard.thoughts += part.text
            else:
                heard.add_text(part.text)


CLIENTS: dict[WireProtocol, Callable[..., Heard]] = {
    WireProtocol.OPENAI_CHAT: openai_chat,
    WireProtocol.OPENAI_RESPONSES: openai_responses,
    WireProtocol.ANTHROPIC: anthropic_messages,
    WireProtocol.GOOGLE: google,
}
