"""A fake model: a server on 127.0.0.1 that speaks the providers' protocols and gives the answers that a test sets.

    with ModelServer([Reply(calls=(("read_file", {"path": "a.py"}),)), Reply(text="done")]) as server:
        client = openai.OpenAI(base_url=server.base_url(WireProtocol.OPENAI_CHAT), api_key="any")

Rules:
- The providers' own libraries must accept it, streaming or not; tests use nothing else to talk to it.
- A test says what to answer, not how: the same answers serve every protocol.
- A conversation that a provider would refuse (a tool call without its result) is refused in the same way.
- Every way in which a provider can fail is an answer like any other.
"""

from __future__ import annotations

from proofstone.testing.model_server.answers import (
    Answer,
    Disconnect,
    Garbage,
    Hang,
    HttpError,
    ReceivedRequest,
    Reply,
    StreamError,
    WireProtocol,
    script_answers,
)
from proofstone.testing.model_server.server import ModelServer

__all__ = [
    "Answer",
    "Disconnect",
    "Garbage",
    "Hang",
    "HttpError",
    "ModelServer",
    "ReceivedRequest",
    "Reply",
    "StreamError",
    "WireProtocol",
    "script_answers",
]
