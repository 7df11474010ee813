"""What the model server is asked and what it can answer, independent of the protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias


class WireProtocol(StrEnum):
    """The protocols that the server speaks."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"


@dataclass(frozen=True)
class ReceivedRequest:
    """A request that the server received."""

    protocol: WireProtocol
    model: str
    stream: bool
    system: str
    """Instructions, wherever the protocol puts them."""
    messages: tuple[tuple[str, str], ...]
    """`("user" | "assistant" | "tool", text)` in order. A turn that only called tools has an empty text; thoughts are
    left out."""
    tools: tuple[str, ...]
    """The names of the offered tools."""
    headers: Mapping[str, str]
    """The names are in lower case."""
    body: Mapping[str, object]


@dataclass(frozen=True)
class Reply:
    """A normal answer."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """`(tool, arguments)`."""
    raw_arguments: str | None = None
    """Sent unchanged instead of the arguments of every call, even if it is not JSON."""
    thoughts: str = ""
    input_tokens: int = 11
    """All input tokens, including those from the cache."""
    output_tokens: int = 7
    cached_tokens: int = 0
    pieces: int = 4
    """The number of pieces in which text, thoughts and arguments are streamed; fewer if there are fewer characters."""
    pause: float = 0.0
    """Seconds after each piece."""
    finish: Literal["stop", "length", "content_filter"] = "stop"


@dataclass(frozen=True)
class HttpError:
    """An answer with an HTTP error status."""

    status: int
    message: str = "the model server was told to fail"
    retry_after: float | None = None
    """Seconds."""
    code: str = ""
    """The provider's own error code, if it is not the default for the status: `insufficient_quota`."""


@dataclass(frozen=True)
class Disconnect:
    """Close the connection: before the answer, or in the middle of it."""

    after_pieces: int | None = None
    """Pieces of a stream. An answer that is not streamed ends in the middle of its body."""


@dataclass(frozen=True)
class Hang:
    """Send nothing for this long, or until the server closes; then close the connection."""

    seconds: float = 3600


@dataclass(frozen=True)
class Garbage:
    """What a proxy or a login page sends in the provider's place."""

    body: bytes = b"<html>nope"
    status: int = 200


@dataclass(frozen=True)
class StreamError:
    """A stream that begins well and ends with an error. Without streaming, a plain error with status 503."""

    after_pieces: int = 1
    message: str = "overloaded"


Answer: TypeAlias = Reply | HttpError | Disconnect | Hang | Garbage | StreamError

SCRIPT_EXHAUSTED = HttpError(500, "the script of the model server has no more answers")


def script_answers(turns: Sequence[Answer]) -> Callable[[ReceivedRequest], Answer]:
    """Give the answers one after the other, whoever asks, and then an error."""
    remaining = iter(turns)
    lock = threading.Lock()

    def answer(_: ReceivedRequest) -> Answer:
        with lock:
            return next(remaining, SCRIPT_EXHAUSTED)

    return answer
