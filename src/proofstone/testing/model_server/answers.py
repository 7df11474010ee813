"""What the model server is asked and what it can be told to answer, in words that no protocol owns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias


class WireProtocol(StrEnum):
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"


@dataclass(frozen=True)
class Asked:
    """A request, as it came in."""

    protocol: WireProtocol
    model: str
    stream: bool
    system: str
    """Instructions, wherever the protocol puts them."""
    messages: tuple[tuple[str, str], ...]
    """`("user" | "assistant" | "tool", text)` in order. A turn that only called tools has an empty text; thoughts are
    left out."""
    tools: tuple[str, ...]
    """The names of those offered."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, object]


@dataclass(frozen=True)
class Reply:
    text: str = ""
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """`(tool, arguments)`."""
    raw_arguments: str | None = None
    """In place of the arguments of every call: this text as it stands, though it be no JSON."""
    thoughts: str = ""
    input_tokens: int = 11
    """All of them, those from the cache too."""
    output_tokens: int = 7
    cached_tokens: int = 0
    pieces: int = 4
    """How many a streamed text comes in, and streamed thoughts and arguments; fewer if there are not as many
    characters."""
    pause: float = 0.0
    """Seconds after each piece."""
    finish: Literal["stop", "length", "content_filter"] = "stop"


@dataclass(frozen=True)
class HttpError:
    status: int
    message: str = "the model server was told to fail"
    retry_after: float | None = None
    """Seconds."""
    code: str = ""
    """The provider's own word for it, if not the one that goes with the status: `insufficient_quota`."""


@dataclass(frozen=True)
class Disconnect:
    """The connection ends: before anything was said, or in the middle of an answer."""

    after_pieces: int | None = None
    """Of a stream. An answer that is not streamed ends half-way through its body."""


@dataclass(frozen=True)
class Hang:
    """Nothing is said for so long, or until the server closes; then the connection ends."""

    seconds: float = 3600


@dataclass(frozen=True)
class Garbage:
    """What a proxy or a login page says in the provider's place."""

    body: bytes = b"<html>nope"
    status: int = 200


@dataclass(frozen=True)
class StreamError:
    """A stream that begins well and ends in an error. Where nothing is streamed: a plain error of status 503."""

    after_pieces: int = 1
    message: str = "overloaded"


Answer: TypeAlias = Reply | HttpError | Disconnect | Hang | Garbage | StreamError

AT_ITS_END = HttpError(500, "the script of the model server is at its end")


def scripted(turns: Sequence[Answer]) -> Callable[[Asked], Answer]:
    """One after the other, whoever asks; an error once they are used up."""
    left = iter(turns)
    taking = threading.Lock()

    def answer(_: Asked) -> Answer:
        with taking:
            return next(left, AT_ITS_END)

    return answer
