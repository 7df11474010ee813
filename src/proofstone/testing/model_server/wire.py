"""What the protocols have in common: reading, writing, and the rules that every conversation must follow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from proofstone.testing.model_server.answers import HttpError, Reply

Json: TypeAlias = dict[str, Any]

CREATED = 1_700_000_000
"""A fixed time: no answer depends on the clock."""

_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
"""Plain characters in JSON, but line ends to some readers of streams. Providers escape them."""


@dataclass(frozen=True)
class MessagePart:
    """One part of a conversation."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    """The ids of the tool calls."""
    answered_call: str = ""
    """The id of the tool call that this is the result of."""


@dataclass(frozen=True)
class ParsedRequest:
    """The content of a protocol's request, before it is validated."""

    model: str
    stream: bool
    system: str
    parts: tuple[MessagePart, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True)
class Exchange:
    """A reply, and the parts of the request that it depends on."""

    model: str
    body: Json
    reply: Reply
    number: int
    """The number of the request, which makes ids unique."""

    @property
    def calls(self) -> Iterator[tuple[str, str, str]]:
        """`(id, name, arguments as text)`."""
        for index, (name, arguments) in enumerate(self.reply.calls):
            raw = self.reply.raw_arguments
            yield f"call_{self.number}_{index}", name, json.dumps(arguments, ensure_ascii=False) if raw is None else raw

    def pieces(self, text: str) -> list[str]:
        length = max(1, -(-len(text) // max(1, self.reply.pieces)))
        return [text[start : start + length] for start in range(0, len(text), length)]


@dataclass(frozen=True)
class Frame:
    """Bytes of a stream that are sent at once."""

    data: bytes
    piece: bool = False
    """Whether the bytes carry a part of the text, the thoughts or the arguments."""


class ProtocolModule(Protocol):
    """A protocol. Each implementation is a module with these functions."""

    def read_request(self, path: str, body: Json) -> ParsedRequest: ...

    def build_response(self, exchange: Exchange) -> Json: ...

    def stream(self, exchange: Exchange) -> Iterator[Frame]: ...

    def error(self, error: HttpError) -> Json: ...

    def stream_error(self, message: str, sent: int) -> bytes:
        """Return the error event. `sent` is the number of frames before it."""
        ...


def encode_json(data: Mapping[str, object]) -> bytes:
    text = json.dumps(data, ensure_ascii=False)
    # An unpaired surrogate cannot be encoded in UTF-8, but its escape is valid JSON.
    return _LINE_ENDS.sub(lambda end: f"\\u{ord(end[0]):04x}", text).encode("utf-8", "backslashreplace")


def encode_event(data: Mapping[str, object], name: str = "") -> bytes:
    """Encode a server-sent event."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + encode_json(data) + b"\n\n"


def extract_text(content: object) -> str:
    """Return the text of content, which is a text or a list of parts, some of which are texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if "text" in part)


def join_turns(said: Iterable[MessagePart]) -> tuple[MessagePart, ...]:
    """Join consecutive parts of the assistant into one turn."""
    turns: list[MessagePart] = []
    for part in said:
        if turns and part.role == turns[-1].role == "assistant":
            text = "\n".join(text for text in (turns[-1].text, part.text) if text)
            turns[-1] = MessagePart("assistant", text, turns[-1].calls + part.calls)
        else:
            turns.append(part)
    return tuple(turns)


def find_incoherence(said: Sequence[MessagePart]) -> str | None:
    """Return why a provider would refuse the conversation: each call needs its result before anything else is said."""
    if not said:
        return "there are no messages"
    open_calls: list[str] = []
    for part in said:
        if part.answered_call:
            if part.answered_call not in open_calls:
                return f"a tool result answers {part.answered_call}, which was not called just before"
            open_calls.remove(part.answered_call)
        elif open_calls:
            break
        open_calls.extend(part.calls)
    return f"tool calls without a result: {', '.join(open_calls)}" if open_calls else None
