"""OpenAI's responses: an answer is a list of items; a stream reports how each begins, grows and ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from proofstone.testing.model_server import openai_chat
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

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_SYSTEM_ROLES = ("system", "developer")


def read_request(path: str, body: Json) -> ParsedRequest:
    raw_input = body.get("input", [])
    items: list[Json] = [{"role": "user", "content": raw_input}] if isinstance(raw_input, str) else raw_input
    system = [body.get("instructions") or ""]
    system += [extract_text(item["content"]) for item in items if item.get("role") in _SYSTEM_ROLES]
    return ParsedRequest(
        model=body.get("model", ""),
        stream=bool(body.get("stream")),
        system="\n".join(text for text in system if text),
        parts=join_turns(_read_item(item) for item in items if item.get("role") not in _SYSTEM_ROLES),
        tools=tuple(tool["name"] for tool in body.get("tools", []) if tool["type"] == "function"),
    )


def _read_item(item: Json) -> MessagePart:
    kind = item.get("type", "message")
    if kind == "function_call":
        return MessagePart("assistant", calls=(item["call_id"],))
    if kind == "function_call_output":
        return MessagePart("tool", extract_text(item["output"]), answered_call=item["call_id"])
    if kind == "reasoning":
        return MessagePart("assistant")
    return MessagePart(item["role"], extract_text(item["content"]))


def build_response(exchange: Exchange) -> Json:
    reason = _INCOMPLETE.get(exchange.reply.finish)
    return _build_response_body(exchange, "incomplete" if reason else "completed") | {
        "output": list(_build_items(exchange)),
        "incomplete_details": {"reason": reason} if reason else None,
        "usage": _build_usage(exchange),
    }


def stream(exchange: Exchange) -> Iterator[Frame]:
    numbers = count()

    def frame(kind: str, piece: bool = False, **fields: object) -> Frame:
        data = {"type": kind, "sequence_number": next(numbers), **fields}
        return Frame(encode_event(data, kind), piece)

    started = _build_response_body(exchange, "in_progress")
    yield frame("response.created", response=started)
    yield frame("response.in_progress", response=started)
    for index, item in enumerate(_build_items(exchange)):
        yield frame("response.output_item.added", output_index=index, item=item | _EMPTY[item["type"]])
        for kind, piece, fields in _build_growth_events(exchange, item):
            yield frame(kind, piece, output_index=index, item_id=item["id"], **fields)
        yield frame("response.output_item.done", output_index=index, item=item)
    response = build_response(exchange)
    yield frame(f"response.{response['status']}", response=response)


def error(error: HttpError) -> Json:
    return openai_chat.error(error)


def stream_error(message: str, sent: int) -> bytes:
    data = {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": sent}
    return encode_event(data, "error")


def _build_items(exchange: Exchange) -> Iterator[Json]:
    reply, number = exchange.reply, exchange.number
    status = {"status": "completed"}
    if reply.thoughts:
        summary = [{"type": "summary_text", "text": reply.thoughts}]
        yield {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": f"sealed-{number}"}
    if reply.text:
        part = _build_text_part(reply.text)
        yield {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [part]} | status
    for id_, name, arguments in exchange.calls:
        call = {"id": f"fc_{id_}", "type": "function_call", "call_id": id_, "name": name, "arguments": arguments}
        yield call | status


_EMPTY: dict[str, Json] = {
    "reasoning": {"summary": [], "encrypted_content": None},
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
}
"""Fields that are empty when an item begins."""


def _build_growth_events(exchange: Exchange, item: Json) -> Iterator[tuple[str, bool, Json]]:
    """Yield the events between the beginning and the end of an item: `(kind, whether it is a piece, fields)`."""
    if item["type"] == "function_call":
        for part in exchange.pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", True, {"delta": part}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield "response.function_call_arguments.done", False, done
    elif item["type"] == "message":
        yield from _build_text_events(exchange, item["content"][0])
    else:
        yield from _build_summary_events(exchange, item["summary"][0])


def _build_text_events(exchange: Exchange, part: Json) -> Iterator[tuple[str, bool, Json]]:
    position = {"content_index": 0}
    yield "response.content_part.added", False, position | {"part": _build_text_part("")}
    for text in exchange.pieces(part["text"]):
        yield "response.output_text.delta", True, position | {"delta": text, "logprobs": []}
    yield "response.output_text.done", False, position | {"text": part["text"], "logprobs": []}
    yield "response.content_part.done", False, position | {"part": part}


def _build_summary_events(exchange: Exchange, part: Json) -> Iterator[tuple[str, bool, Json]]:
    position = {"summary_index": 0}
    yield "response.reasoning_summary_part.added", False, position | {"part": part | {"text": ""}}
    for text in exchange.pieces(part["text"]):
        yield "response.reasoning_summary_text.delta", True, position | {"delta": text}
    yield "response.reasoning_summary_text.done", False, position | {"text": part["text"]}
    yield "response.reasoning_summary_part.done", False, position | {"part": part}


def _build_text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _build_response_body(exchange: Exchange, status: str) -> Json:
    return {
        "id": f"resp_{exchange.number}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "model": exchange.model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": exchange.body.get("instructions"),
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": exchange.body.get("tool_choice", "auto"),
        "tools": exchange.body.get("tools", []),
        "usage": None,
    }


def _build_usage(exchange: Exchange) -> Json:
    reply = exchange.reply
    return {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
