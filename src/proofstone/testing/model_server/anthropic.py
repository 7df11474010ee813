"""Anthropic's messages: an answer is a list of blocks; a stream reports how each begins, grows and ends."""

from __future__ import annotations

import json
from collections.abc import Iterator

from proofstone.testing.model_server.answers import HttpError
from proofstone.testing.model_server.wire import (
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
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def read_request(path: str, body: Json) -> ParsedRequest:
    return ParsedRequest(
        model=body.get("model", ""),
        stream=bool(body.get("stream")),
        system=extract_text(body.get("system")),
        parts=join_turns(part for message in body.get("messages", []) for part in _read_message(message)),
        tools=tuple(tool["name"] for tool in body.get("tools", [])),
    )


def _read_message(message: Json) -> Iterator[MessagePart]:
    content = message["content"]
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if message["role"] == "assistant":
        yield MessagePart(
            "assistant", extract_text(blocks), tuple(block["id"] for block in blocks if block["type"] == "tool_use")
        )
        return
    for block in blocks:
        if block["type"] == "tool_result":
            yield MessagePart("tool", extract_text(block.get("content", "")), answered_call=block["tool_use_id"])
        elif block["type"] == "text":
            yield MessagePart(message["role"], block["text"])


def build_response(exchange: Exchange) -> Json:
    blocks = [block for block, _ in _build_blocks(exchange)]
    return _build_message(exchange) | {
        "content": blocks,
        "stop_reason": _get_stop_reason(exchange),
        "usage": _build_usage(exchange),
    }


def stream(exchange: Exchange) -> Iterator[Frame]:
    def frame(kind: str, piece: bool = False, **fields: object) -> Frame:
        return Frame(encode_event({"type": kind, **fields}, kind), piece)

    yield frame(
        "message_start", message=_build_message(exchange) | {"usage": _build_usage(exchange) | {"output_tokens": 1}}
    )
    yield frame("ping")
    for index, (block, deltas) in enumerate(_build_blocks(exchange)):
        yield frame("content_block_start", index=index, content_block=block | _EMPTY[block["type"]])
        for delta in deltas:
            yield frame("content_block_delta", True, index=index, delta=delta)
        yield frame("content_block_stop", index=index)
    delta = {"stop_reason": _get_stop_reason(exchange), "stop_sequence": None}
    yield frame("message_delta", delta=delta, usage={"output_tokens": exchange.reply.output_tokens})
    yield frame("message_stop")


def error(error: HttpError) -> Json:
    kind = error.code or _ERRORS.get(error.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": "req_0"}


def stream_error(message: str, sent: int) -> bytes:
    return encode_event(error(HttpError(529, message)), "error")


def _build_blocks(exchange: Exchange) -> Iterator[tuple[Json, list[Json]]]:
    """Yield each block, and the deltas with which it grows in a stream."""
    reply = exchange.reply
    if reply.thoughts:
        signature = f"signature-{exchange.number}"
        thinking = [{"type": "thinking_delta", "thinking": part} for part in exchange.pieces(reply.thoughts)]
        block = {"type": "thinking", "thinking": reply.thoughts, "signature": signature}
        yield block, [*thinking, {"type": "signature_delta", "signature": signature}]
    if reply.text:
        deltas = [{"type": "text_delta", "text": part} for part in exchange.pieces(reply.text)]
        yield {"type": "text", "text": reply.text}, deltas
    for id_, name, arguments in exchange.calls:
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in exchange.pieces(arguments)]
        yield {"type": "tool_use", "id": id_, "name": name, "input": _parse_arguments(arguments)}, deltas


_EMPTY: dict[str, Json] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}
"""Fields that are empty when a block begins."""


def _parse_arguments(arguments: str) -> object:
    """Parse the arguments, because a complete answer holds them as JSON. Invalid JSON can only be sent as text."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _build_message(exchange: Exchange) -> Json:
    return {
        "id": f"msg_{exchange.number}",
        "type": "message",
        "role": "assistant",
        "model": exchange.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _get_stop_reason(exchange: Exchange) -> str:
    reply = exchange.reply
    return "tool_use" if reply.calls and reply.finish == "stop" else _STOP_REASONS[reply.finish]


def _build_usage(exchange: Exchange) -> Json:
    reply = exchange.reply
    return {
        "input_tokens": reply.input_tokens - reply.cached_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": reply.output_tokens,
    }
