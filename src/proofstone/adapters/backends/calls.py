"""From what somebody says they want to call to calls of the conversation. What cannot be read is said in the call."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice

from pydantic import JsonValue, ValidationError

from proofstone.adapters.script_file import Call
from proofstone.contracts.agent import Conversation, ToolCall, Turn

_SHOWN = 60
_MOST = 64
"""Calls of a turn that are looked at; the engine carries out fewer."""


def calls_in(conversation: Conversation, wanted: Iterable[Call]) -> tuple[ToolCall, ...]:
    """The calls of the next turn, each with an id that no other of the conversation has."""
    turn = sum(isinstance(entry, Turn) for entry in conversation.entries) + 1
    return tuple(_call(call, f"{turn}.{number}") for number, call in enumerate(islice(wanted, _MOST), 1))


def calls_wanted(text: str) -> list[Call]:
    """The calls, if that is what a text says: `{"tool_calls": [{"name": …, "arguments": {…}}]}` and nothing else."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(said, dict) or set(said) != {"tool_calls"} or not isinstance(said["tool_calls"], list):
        return []
    return [_read(call) for call in said["tool_calls"]]


def _read(call: JsonValue) -> Call:
    """What is no call at all names no tool, and is refused like any other that does not exist."""
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return Call("", call if not isinstance(call, dict) else "a call without a name")
    return Call(str(call["name"]), call.get("arguments", {}))


def _call(call: Call, id: str) -> ToolCall:
    name = call.name.encode("utf-8", "replace").decode()
    if not isinstance(call.arguments, dict):
        return ToolCall(id=id, name=name, malformed=f"an object is wanted, not {_shown(call.arguments)}")
    try:
        json.dumps(call.arguments, ensure_ascii=False, allow_nan=False).encode()
        return ToolCall(id=id, name=name, arguments=call.arguments)
    except UnicodeEncodeError:
        return ToolCall(id=id, name=name, malformed="there is half of a character in them")
    except (ValidationError, ValueError, RecursionError):
        return ToolCall(id=id, name=name, malformed="they are not JSON, or nested too deeply")


def _shown(value: JsonValue) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
