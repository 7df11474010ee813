"""Google's Gemini: the model and whether to stream are in the path; a stream is a series of answers with some parts
each.

A tool call arrives complete, and its arguments are JSON: malformed arguments are reported, not passed on.
"""

from __future__ import annotations

import base64
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
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_FINISHES = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


def read_request(path: str, body: Json) -> ParsedRequest:
    model, _, method = path.rpartition("/")[2].partition(":")
    groups: list[Json] = body.get("tools") or []
    return ParsedRequest(
        model=model,
        stream=method == "streamGenerateContent",
        system=extract_text((body.get("systemInstruction") or {}).get("parts")),
        parts=join_turns(part for content in body.get("contents", []) for part in _read_content(content)),
        tools=tuple(tool["name"] for group in groups for tool in group.get("functionDeclarations", [])),
    )


def _read_content(content: Json) -> Iterator[MessagePart]:
    parts: list[Json] = content.get("parts") or []
    if content.get("role") == "model":
        calls = tuple(_get_call_id(part["functionCall"]) for part in parts if "functionCall" in part)
        yield MessagePart("assistant", extract_text([part for part in parts if not part.get("thought")]), calls)
        return
    for part in parts:
        if "functionResponse" in part:
            yield MessagePart(
                "tool",
                _read_result(part["functionResponse"]["response"]),
                answered_call=_get_call_id(part["functionResponse"]),
            )
        elif "text" in part:
            yield MessagePart("user", part["text"])


def _get_call_id(call: Json) -> str:
    """Return the id of the call, or its name: ids are optional in this protocol."""
    return str(call.get("id") or call["name"])


def _read_result(response: Json) -> str:
    """Return the text of a result. Here it is an object; if its only value is a text, under any name, that is the
    result."""
    values = list(response.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(response)


def build_response(exchange: Exchange) -> Json:
    finish, calls = _build_calls(exchange)
    reply = exchange.reply
    parts = _build_parts(
        exchange, [reply.thoughts] if reply.thoughts else [], [reply.text] if reply.text else [], calls
    )
    return _build_answer(exchange, parts, finish)


def stream(exchange: Exchange) -> Iterator[Frame]:
    finish, calls = _build_calls(exchange)
    thoughts, texts = exchange.pieces(exchange.reply.thoughts), exchange.pieces(exchange.reply.text)
    for part in _build_parts(exchange, thoughts, texts, calls):
        yield Frame(encode_event(_build_answer(exchange, [part])), piece=True)
    yield Frame(encode_event(_build_answer(exchange, [{"text": ""}], finish)))


def error(error: HttpError) -> Json:
    status = error.code or _ERRORS.get(error.status, "INTERNAL")
    body = {"code": error.status, "message": error.message, "status": status}
    if error.retry_after is None:
        return {"error": body}
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{error.retry_after:g}s"}
    return {"error": body | {"details": [delay]}}


def stream_error(message: str, sent: int) -> bytes:
    return encode_event(error(HttpError(503, message)))


def _build_calls(exchange: Exchange) -> tuple[str, list[Json]]:
    """Return the finish reason and the parts with the calls."""
    parts = []
    for id_, name, arguments in exchange.calls:
        parsed = _parse_arguments(arguments)
        if parsed is None:
            return "MALFORMED_FUNCTION_CALL", []
        parts.append({"functionCall": {"id": id_, "name": name, "args": parsed}})
    return _FINISHES[exchange.reply.finish], parts


def _parse_arguments(arguments: str) -> Json | None:
    try:
        parsed = json.loads(arguments)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _build_parts(exchange: Exchange, thoughts: list[str], texts: list[str], calls: list[Json]) -> list[Json]:
    """Return all parts. Thoughts leave a signature, which the client must send back: on the first call, or else on the
    last text part."""
    text_parts: list[Json] = [{"text": text} for text in texts]
    if thoughts and (text_parts or calls):
        signature = base64.b64encode(b"signature-%d" % exchange.number).decode()
        (calls[0] if calls else text_parts[-1])["thoughtSignature"] = signature
    return [*({"text": text, "thought": True} for text in thoughts), *text_parts, *calls]


def _build_answer(exchange: Exchange, parts: list[Json], finish: str | None = None) -> Json:
    reply = exchange.reply
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": reply.input_tokens,
            "cachedContentTokenCount": reply.cached_tokens,
            "candidatesTokenCount": reply.output_tokens,
            "totalTokenCount": reply.input_tokens + reply.output_tokens,
        },
        "modelVersion": exchange.model,
        "responseId": f"response-{exchange.number}",
    }
