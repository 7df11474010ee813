"""OpenAI's responses: an answer is a list of items, and a stream tells of each as it begins, grows and ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from proofstone.testing.model_server import openai_chat
from proofstone.testing.model_server.answers import HttpError
from proofstone.testing.model_server.wire import CREATED, Exchange, Frame, Json, Request, Said, event, joined, text_of

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_STEERING = ("system", "developer")


def read(path: str, body: Json) -> Request:
    given = body.get("input", [])
    items: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    system = [body.get("instructions") or ""]
    system += [text_of(item["content"]) for item in items if item.get("role") in _STEERING]
    return Request(
        model=body.get("model", ""),
        stream=bool(body.get("stream")),
        system="\n".join(text for text in system if text),
        said=joined(_said(item) for item in items if item.get("role") not in _STEERING),
        tools=tuple(tool["name"] for tool in body.get("tools", []) if tool["type"] == "function"),
    )


def _said(item: Json) -> Said:
    kind = item.get("type", "message")
    if kind == "function_call":
        return Said("assistant", calls=(item["call_id"],))
    if kind == "function_call_output":
        return Said("tool", text_of(item["output"]), answers=item["call_id"])
    if kind == "reasoning":
        return Said("assistant")
    return Said(item["role"], text_of(item["content"]))


def whole(exchange: Exchange) -> Json:
    reason = _INCOMPLETE.get(exchange.reply.finish)
    return _response(exchange, "incomplete" if reason else "completed") | {
        "output": list(_items(exchange)),
        "incomplete_details": {"reason": reason} if reason else None,
        "usage": _usage(exchange),
    }


def stream(exchange: Exchange) -> Iterator[Frame]:
    numbers = count()

    def frame(kind: str, piece: bool = False, **fields: object) -> Frame:
        data = {"type": kind, "sequence_number": next(numbers), **fields}
        return Frame(event(data, kind), piece)

    begun = _response(exchange, "in_progress")
    yield frame("response.created", response=begun)
    yield frame("response.in_progress", response=begun)
    for at, item in enumerate(_items(exchange)):
        yield frame("response.output_item.added", output_index=at, item=item | _EMPTY[item["type"]])
        for kind, piece, fields in _growth(exchange, item):
            yield frame(kind, piece, output_index=at, item_id=item["id"], **fields)
        yield frame("response.output_item.done", output_index=at, item=item)
    ended = whole(exchange)
    yield frame(f"response.{ended['status']}", response=ended)


def error(error: HttpError) -> Json:
    return openai_chat.error(error)


def stream_error(message: str, sent: int) -> bytes:
    data = {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": sent}
    return event(data, "error")


def _items(exchange: Exchange) -> Iterator[Json]:
    reply, number = exchange.reply, exchange.number
    status = {"status": "completed"}
    if reply.thoughts:
        summary = [{"type": "summary_text", "text": reply.thoughts}]
        yield {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": f"sealed-{number}"}
    if reply.text:
        part = _text_part(reply.text)
        yield {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [part]} | status
    for id_, name, arguments in exchange.calls:
        call = {"id": f"fc_{id_}", "type": "function_call", "call_id": id_, "name": name, "arguments": arguments}
        yield call | status


_EMPTY: dict[str, Json] = {
    "reasoning": {"summary": [], "encrypted_content": None},
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
}
"""What an item lacks as it begins."""


def _growth(exchange: Exchange, item: Json) -> Iterator[tuple[str, bool, Json]]:
    """The events between an item's beginning and its end: `(kind, whether it is a piece, fields)`."""
    if item["type"] == "function_call":
        for part in exchange.pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", True, {"delta": part}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield "response.function_call_arguments.done", False, done
    elif item["type"] == "message":
        yield from _text_growth(exchange, item["content"][0])
    else:
        yield from _summary_growth(exchange, item["summary"][0])


def _text_growth(exchange: Exchange, part: Json) -> Iterator[tuple[str, bool, Json]]:
    where = {"content_index": 0}
    yield "response.content_part.added", False, where | {"part": _text_part("")}
    for text in exchange.pieces(part["text"]):
        yield "response.output_text.delta", True, where | {"delta": text, "logprobs": []}
    yield "response.output_text.done", False, where | {"text": part["text"], "logprobs": []}
    yield "response.content_part.done", False, where | {"part": part}


def _summary_growth(exchange: Exchange, part: Json) -> Iterator[tuple[str, bool, Json]]:
    where = {"summary_index": 0}
    yield "response.reasoning_summary_part.added", False, where | {"part": part | {"text": ""}}
    for text in exchange.pieces(part["text"]):
        yield "response.reasoning_summary_text.delta", True, where | {"delta": text}
    yield "response.reasoning_summary_text.done", False, where | {"text": part["text"]}
    yield "response.reasoning_summary_part.done", False, where | {"part": part}


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _response(exchange: Exchange, status: str) -> Json:
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


def _usage(exchange: Exchange) -> Json:
    reply = exchange.reply
    return {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
