"""What the tests of the `api:` backend stand on: the model server as a provider of each wire, and a conversation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proofstone.agents.backends.api import api_backend
from proofstone.agents.backends.api.backend import ApiBackend
from proofstone.agents.executors.context import ShellJob, Site
from proofstone.agents.models import (
    ENTRIES,
    Conversation,
    Entry,
    Fault,
    Occasion,
    Returned,
    Told,
    ToolResult,
    ToolSpec,
    Turn,
)
from proofstone.config.providers import ModelSettings, Provider, Wire
from proofstone.sandbox.job import Execution
from proofstone.testing.model_server.answers import Answer, Asked, WireProtocol
from proofstone.testing.model_server.server import ModelServer

KEY = "sk-very-secret-key"
WIRES = (Wire.OPENAI_CHAT, Wire.OPENAI_RESPONSES, Wire.ANTHROPIC, Wire.GOOGLE)
MODELS = {
    Wire.OPENAI_CHAT: "gpt-5",
    Wire.OPENAI_RESPONSES: "gpt-5",
    Wire.ANTHROPIC: "claude-sonnet-5",
    Wire.GOOGLE: "gemini-2.5-pro",
}
NAMES = {
    Wire.OPENAI_CHAT: "openai-chat",
    Wire.OPENAI_RESPONSES: "openai",
    Wire.ANTHROPIC: "anthropic",
    Wire.GOOGLE: "google",
}
SCHEMA = {
    "type": "object",
    "$defs": {"Pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2}},
    "properties": {
        "finding": {"type": "string", "maxLength": 9_000_000},
        "pairs": {"type": "array", "items": {"$ref": "#/$defs/Pair"}, "default": []},
        "level": {"anyOf": [{"enum": ["low", "high"], "type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["finding"],
}


def no_shell(_: ShellJob) -> Execution:
    raise AssertionError("a model runs nothing")


def site_in(folder: Path, heard: list[str] | None = None) -> Site:
    return Site(folder, folder, no_shell, hear=(heard if heard is not None else []).append, cancel=threading.Event())


def conversation(*tools: str, ask: str = "What is there?") -> Conversation:
    return Conversation(
        occasion=Occasion(run_id="run-1", role="researcher", step="s"),
        instructions="Be brief.",
        tools=tuple(
            ToolSpec(
                name=name,
                description=f"Does {name}.",
                parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            )
            for name in tools
        ),
        output_schema=SCHEMA,
        entries=(Told(text=ask),),
    )


def provider(server: ModelServer, wire: Wire) -> dict[str, Provider]:
    return {
        NAMES[wire]: Provider(
            wire=wire,
            url=server.base_url(WireProtocol(wire)),
            key_variable="MODEL_KEY",
            vendor="openai" if wire.startswith("openai") else None,
        )
    }


def backend(server: ModelServer, wire: Wire, settings: ModelSettings | None = None) -> ApiBackend:
    name = f"{NAMES[wire]}:{MODELS[wire]}"
    return api_backend(f"api:{name}", provider(server, wire), {name: settings or ModelSettings()}, {"MODEL_KEY": KEY})


@contextmanager
def served(
    wire: Wire, answers: Sequence[Answer] | Callable[[Asked], Answer], settings: ModelSettings | None = None
) -> Iterator[tuple[ApiBackend, ModelServer]]:
    with ModelServer(answers) as server:
        served_by = backend(server, wire, settings)
        try:
            yield served_by, server
        finally:
            served_by.close()


def the_turn(outcome: Turn | Fault) -> Turn:
    assert isinstance(outcome, Turn), outcome
    return outcome


def the_fault(outcome: Turn | Fault) -> Fault:
    assert isinstance(outcome, Fault), outcome
    return outcome


def results(turn: Turn, *texts: str) -> Returned:
    return Returned(
        results=tuple(
            ToolResult(call_id=call.id, name=call.name, text=text) for call, text in zip(turn.calls, texts, strict=True)
        )
    )


def kept(entry: Entry) -> Entry:
    """As it is after it has been in the ledger."""
    return ENTRIES.validate_json(ENTRIES.dump_json(entry))
