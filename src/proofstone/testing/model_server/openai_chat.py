"""OpenAI's chat completions, with the `reasoning_content` that compatible servers add."""

from __future__ import annotations

from collections.abc import Iterator

from proofstone.testing.model_server.answers import HttpError
from proofstone.testing.model_server.wire import (
    CREATED,
    Exchange,
    Frame,
    Json,
    MessagePart,
    ParsedRequest,
    encode_event,
    extract_text,
    join_turns,
)

_ERRORS = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


def read_request(path: str, body: Json) -> ParsedRequest:
    messages = body.get("messages", [])
    system = [extract_text(message["content"]) for message in messages if message["role"] in ("system", "developer")]
    return ParsedRequest(
        model=body.get("model", ""),
        stream=bool(body.get("stream")),
        system="\n".join(system),
        parts=join_turns(
            _read_message(message) for message in messages if message["role"] not in ("system", "developer")
        ),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools", []) if "function" in tool),
    )


def _read_message(message: Json) -> MessagePart:
    calls = tuple(call["id"] for call in message.get("tool_calls") or ())
    return MessagePart(message["role"], extract_text(message.get("content")), calls, message.get("tool_call_id", ""))


def build_response(exchange: Exchange) -> Json:
    reply = exchange.reply
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.thoughts:
        message["reasoning_content"] = reply.thoughts
    if reply.calls:
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in exchange.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _get_finish_reason(exchange)}
    return _build_envelope(exchange, "chat.completion") | {"choices": [choice], "usage": _build_usage(exchange)}


def stream(exchange: Exchange) -> Iterator[Frame]:
    with_usage = bool((exchange.body.get("stream_options") or {}).get("include_usage"))
    envelope = _build_envelope(exchange, "chat.completion.chunk") | ({"usage": None} if with_usage else {})

    def chunk(delta: Json, finish: str | None = None, piece: bool = True) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Frame(encode_event(envelope | {"choices": [choice]}), piece)

    yield chunk({"role": "assistant", "content": ""}, piece=False)
    for part in exchange.pieces(exchange.reply.thoughts):
        yield chunk({"reasoning_content": part})
    for part in exchange.pieces(exchange.reply.text):
        yield chunk({"content": part})
    for index, (id_, name, arguments) in enumerate(exchange.calls):
        head = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
        yield chunk({"tool_calls": [head]}, piece=False)
        for part in exchange.pieces(arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, _get_finish_reason(exchange), piece=False)
    if with_usage:
        yield Frame(encode_event(envelope | {"choices": [], "usage": _build_usage(exchange)}))
    yield Frame(b"data: [DONE]\n\n")


def error(error: HttpError) -> Json:
    kind, code = _ERRORS.get(error.status, ("server_error", None))
    return {"error": {"message": error.message, "type": kind, "param": None, "code": error.code or code}}


def stream_error(message: str, sent: int) -> bytes:
    return encode_event(error(HttpError(503, message)))


def _build_envelope(exchange: Exchange, kind: str) -> Json:
    return {"id": f"chatcmpl-{exchange.number}", "object": kind, "created": CREATED, "model": exchange.model}


def _get_finish_reason(exchange: Exchange) -> str:
    return "tool_calls" if exchange.reply.calls and exchange.reply.finish == "stop" else exchange.reply.finish


def _build_usage(exchange: Exchange) -> Json:
    reply = exchange.reply
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
