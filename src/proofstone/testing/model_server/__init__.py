"""A model that is none: a server on 127.0.0.1 that speaks as the providers' servers do and says what it is told to.

    with ModelServer([Reply(calls=(("read_file", {"path": "a.py"}),)), Reply(text="done")]) as server:
        client = openai.OpenAI(base_url=server.base_url(WireProtocol.OPENAI_CHAT), api_key="any")

Rules:
- The providers' own libraries must be content with it, streaming or not; tests drive it with nothing else.
- It is told what to say, not how: the same answers serve every protocol.
- A conversation that a provider would not take (a tool call without its result) is refused as the provider would.
- Every way in which a provider can let one down is an answer like any other.
"""

from __future__ import annotations

from proofstone.testing.model_server.answers import (
    Answer,
    Asked,
    Disconnect,
    Garbage,
    Hang,
    HttpError,
    Reply,
    StreamError,
    WireProtocol,
    scripted,
)
from proofstone.testing.model_server.server import ModelServer

__all__ = [
    "Answer",
    "Asked",
    "Disconnect",
    "Garbage",
    "Hang",
    "HttpError",
    "ModelServer",
    "Reply",
    "StreamError",
    "WireProtocol",
    "scripted",
]
