"""Conversations to be continued, and what is heard meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import (
    Conversation,
    ConversationEntry,
    DispatchKey,
    EngineMessage,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
)
from tests.agents.executors.bench import Bench

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "finding": {"type": "string", "description": "What was found."},
        "where": {"type": "array", "items": {"$ref": "#/$defs/Place"}, "default": []},
        "level": {"anyOf": [{"enum": ["low", "high"], "type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["finding"],
    "$defs": {"Place": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
}
READ = ToolSpec(
    name="read",
    description="Reads a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "first": {"type": "integer"}},
        "required": ["path"],
    },
)


def talk(
    *entries: ConversationEntry, role: str = "researcher", instructions: str = "Be brief.", **occasion: str | int
) -> Conversation:
    """What has been said to a role so far, the request before anything else."""
    return Conversation(
        occasion=DispatchKey.model_validate({"run_id": "run-1", "role": role, "step": "s", **occasion}),
        instructions=instructions,
        tools=(READ,),
        output_schema=SCHEMA,
        entries=(EngineMessage(text="What is in a.txt?"), *entries),
    )


def after(conversation: Conversation, turn: object, *results: str) -> Conversation:
    """The conversation with this turn, and what its tools gave."""
    assert isinstance(turn, Turn), turn
    returned = [
        ToolResult(call_id=call.id, name=call.name, text=text) for call, text in zip(turn.calls, results, strict=True)
    ]
    return conversation.with_entries(turn, *((ToolResults(results=tuple(returned)),) if returned else ()))


def repaired(conversation: Conversation, turn: object, repair: int = 1) -> Conversation:
    """The conversation with an answer that was not of the schema."""
    assert isinstance(turn, Turn), turn
    return conversation.with_entries(turn, EngineMessage(text="finding: this field is missing", repair=repair))


def site_of(bench: Bench, heard: list[str] | None = None) -> ExecutionContext:
    return replace(bench.site(), on_text=(heard if heard is not None else []).append)
