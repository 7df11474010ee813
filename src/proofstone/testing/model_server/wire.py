"""What the protocols have in common: how each is read and written, and what all of them ask of a conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from proofstone.testing.model_server.answers import HttpError, Reply

Json: TypeAlias = dict[str, Any]

CREATED = 1_700_000_000
"""Nothing that the server says depends on when it says it."""

_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
"""Plain characters to JSON, ends of a line to some who read streams line by line. Providers escape them."""


@dataclass(frozen=True)
class Said:
    """One part of a conversation."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    """Ids of the tool calls made."""
    answers: str = ""
    """Id of the tool call that this is the result of."""


@dataclass(frozen=True)
class Request:
    """What a protocol's request says, before it is known to make sense."""

    model: str
    stream: bool
    system: str
    said: tuple[Said, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True)
class Exchange:
    """A reply, and what of the request it depends on."""

    model: str
    body: Json
    reply: Reply
    number: int
    """Of the request: ids differ from one to the next."""

    @property
    def calls(self) -> Iterator[tuple[str, str, str]]:
        """`(id, name, text of the arguments)`."""
        for at, (name, arguments) in enumerate(self.reply.calls):
            raw = self.reply.raw_arguments
            yield f"call_{self.number}_{at}", name, json.dumps(arguments, ensure_ascii=False) if raw is None else raw

    def pieces(self, text: str) -> list[str]:
        length = max(1, -(-len(text) // max(1, self.reply.pieces)))
        return [text[at : at + length] for at in range(0, len(text), length)]


@dataclass(frozen=True)
class Frame:
    """Bytes of a stream that are sent at once."""

    data: bytes
    piece: bool = False
    """They carry a part of the text, the thoughts or the arguments."""


class Wire(Protocol):
    """A protocol. Each is a module with these functions."""

    def read(self, path: str, body: Json) -> Request: ...

    def whole(self, exchange: Exchange) -> Json: ...

    def stream(self, exchange: Exchange) -> Iterator[Frame]: ...

    def error(self, error: HttpError) -> Json: ...

    def stream_error(self, message: str, sent: int) -> bytes:
        """`sent`: frames before it."""
        ...


def encoded(data: Mapping[str, object]) -> bytes:
    text = json.dumps(data, ensure_ascii=False)
    # Half of a surrogate pair has no UTF-8, but its escape is JSON.
    return _LINE_ENDS.sub(lambda end: f"\\u{ord(end[0]):04x}", text).encode("utf-8", "backslashreplace")


def event(data: Mapping[str, object], name: str = "") -> bytes:
    """A server-sent event."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + encoded(data) + b"\n\n"


def text_of(content: object) -> str:
    """Content is a text or a list of parts, some of which are texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if "text" in part)


def joined(said: Iterable[Said]) -> tuple[Said, ...]:
    """A turn of the assistant is one, in however many parts it was sent."""
    turns: list[Said] = []
    for part in said:
        if turns and part.role == turns[-1].role == "assistant":
            text = "\n".join(text for text in (turns[-1].text, part.text) if text)
            turns[-1] = Said("assistant", text, turns[-1].calls + part.calls)
        else:
            turns.append(part)
    return tuple(turns)


def incoherent(said: Sequence[Said]) -> str | None:
    """Why no provider would take this conversation: each call has its result before anything else is said."""
    if not said:
        return "there are no messages"
    waiting: list[str] = []
    for part in said:
        if part.answers:
            if part.answers not in waiting:
                return f"a tool result answers {part.answers}, which was not called just before"
            waiting.remove(part.answers)
        elif waiting:
            break
        waiting.extend(part.calls)
    return f"tool calls without a result: {', '.join(waiting)}" if waiting else None
