"""What the tests of the `api:` backend stand on: the model server as a provider of each wire, and a conversation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter

from proofstone.agents.backends.api import api_backend
from proofstone.agents.backends.api.backend import ApiBackend
from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.models import (
    Conversation,
    ConversationEntry,
    DispatchKey,
    EngineMessage,
    Fault,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
)
from proofstone.config.providers import ModelSettings, Provider, ProviderProtocol
from proofstone.sandbox.job import SandboxResult
from proofstone.testing.model_server.answers import Answer, ReceivedRequest, WireProtocol
from proofstone.testing.model_server.server import ModelServer

KEY = "sk-very-secret-key"
WIRES = (
    ProviderProtocol.OPENAI_CHAT,
    ProviderProtocol.OPENAI_RESPONSES,
    ProviderProtocol.ANTHROPIC,
    ProviderProtocol.GOOGLE,
)
MODELS = {
    ProviderProtocol.OPENAI_CHAT: "gpt-5",
    ProviderProtocol.OPENAI_RESPONSES: "gpt-5",
    ProviderProtocol.ANTHROPIC: "claude-sonnet-5",
    ProviderProtocol.GOOGLE: "gemini-2.5-pro",
}
NAMES = {
    ProviderProtocol.OPENAI_CHAT: "openai-chat",
    ProviderProtocol.OPENAI_RESPONSES: "openai",
    ProviderProtocol.ANTHROPIC: "anthropic",
    ProviderProtocol.GOOGLE: "google",
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


def no_shell(_: ShellCommand) -> SandboxResult:
    raise AssertionError("a model runs nothing")


def site_in(folder: Path, heard: list[str] | None = None) -> ExecutionContext:
    return ExecutionContext(
        folder, folder, no_shell, on_text=(heard if heard is not None else []).append, cancel=threading.Event()
    )


def conversation(*tools: str, ask: str = "What is there?") -> Conversation:
    return Conversation(
        occasion=DispatchKey(run_id="run-1", role="researcher", step="s"),
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
        entries=(EngineMessage(text=ask),),
    )


def provider(server: ModelServer, wire: ProviderProtocol) -> dict[str, Provider]:
    return {
        NAMES[wire]: Provider(
            wire=wire,
            url=server.base_url(WireProtocol(wire)),
            key_variable="MODEL_KEY",
            vendor="openai" if wire.startswith("openai") else None,
        )
    }


def backend(server: ModelServer, wire: ProviderProtocol, settings: ModelSettings | None = None) -> ApiBackend:
    name = f"{NAMES[wire]}:{MODELS[wire]}"
    return api_backend(f"api:{name}", provider(server, wire), {name: settings or ModelSettings()}, {"MODEL_KEY": KEY})


@contextmanager
def served(
    wire: ProviderProtocol,
    answers: Sequence[Answer] | Callable[[ReceivedRequest], Answer],
    settings: ModelSettings | None = None,
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


def results(turn: Turn, *texts: str) -> ToolResults:
    return ToolResults(
        results=tuple(
            ToolResult(call_id=call.id, name=call.name, text=text) for call, text in zip(turn.calls, texts, strict=True)
        )
    )


def kept(entry: ConversationEntry) -> ConversationEntry:
    """As it is after it has been in the ledger."""
    adapter: TypeAdapter[ConversationEntry] = TypeAdapter(ConversationEntry)
    return adapter.validate_json(adapter.dump_json(entry))
