"""`human` as a backend: a person sees what an agent would see, and types the answer or a tool call.

The person has as long as they need unless the engine sets a deadline. What they type is treated like any other answer:
if it does not match the schema, they see why and are asked again. Without a terminal, there is nobody to ask.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue, ValidationError
from ruamel.yaml.error import YAMLError

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.backends.transcript import build_tool_calls, describe_fields, render_entry
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.executors.people import POLL_SECONDS, ReadLine, discard_input
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.agents.rules.answer import MalformedAnswer
from proofstone.agents.script_file import ScriptCall
from proofstone.common.models import Usage
from proofstone.common.parsing import is_bounded, make_yaml_reader

_MAX_BYTES = 8 << 20
_MAX_INSTRUCTION_LINES = 12
"""Lines of the instructions that are shown."""
_NO_COST = Usage(requests=1)


@dataclass(frozen=True)
class HumanBackend:
    """A backend that asks a person at the terminal."""

    listen: ReadLine | None = None
    """Reads a line from the terminal. None: there is no terminal."""
    identity: BackendIdentity = field(
        default=BackendIdentity("human", can_answer=lambda _role, _asked: False), init=False
    )

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        if self.listen is None:
            return Fault(kind=FaultKind.UNAVAILABLE, why="there is no terminal, so nobody can be asked")
        first = not any(isinstance(entry, Turn) for entry in conversation.entries)
        _show(site, render_full_prompt(conversation) if first else render_news(conversation))
        discard_input(self.listen)
        return _Prompt(conversation, site, self.listen).ask(seconds)

    def close(self) -> None:
        """Do nothing: this backend holds no resources."""


def render_full_prompt(conversation: Conversation) -> list[str]:
    """Return what an agent would be told, and what the person can type."""
    occasion = conversation.occasion
    task_note = f", {occasion.task} ({occasion.task_name}), attempt {occasion.attempt}" if occasion.task else ""
    instructions = conversation.instructions.strip().splitlines()
    hidden = len(instructions) - _MAX_INSTRUCTION_LINES
    entry_lines = [line for entry in conversation.entries for line in render_entry(entry).splitlines()]
    return [
        f"You answer as {occasion.agent}{task_note}.",
        *instructions[:_MAX_INSTRUCTION_LINES],
        *([f"… and {hidden} more lines of instructions"] if hidden > 0 else []),
        "",
        *entry_lines,
        "",
        "Your answer has these fields:",
        *(f"  {line}" for line in describe_fields(conversation.output_schema)),
        *_describe_tools(conversation),
        *_USAGE,
    ]


_USAGE = (
    "Type the answer as YAML or JSON, on as many lines as you like, and end it with a line that is a single `.`.",
    "Or type `@FILE` to read the answer from a file, `failed WHY` if you cannot answer, `?` to show all this again.",
)


def _describe_tools(conversation: Conversation) -> list[str]:
    names = ", ".join(tool.name for tool in conversation.tools)
    return [f"To use a tool, type for example `!read path=src/a.py`. Your tools: {names}."] if names else []


def render_news(conversation: Conversation) -> list[str]:
    """Return what was added since the person's last turn."""
    lines: list[str] = []
    for entry in reversed(conversation.entries):
        if isinstance(entry, Turn):
            break
        lines = [*render_entry(entry).splitlines(), *lines]
    return [*lines, "Type the answer and then `.`, or `?` to show everything again."]


def _show(site: ExecutionContext, lines: list[str]) -> None:
    for line in lines:
        site.say(line)


class _Prompt:
    """Ask a person for one turn, until what they typed makes one."""

    def __init__(self, conversation: Conversation, site: ExecutionContext, listen: ReadLine) -> None:
        self._conversation = conversation
        self._site = site
        self._listen = listen
        self._typed: list[str] = []

    def ask(self, seconds: float | None) -> Turn | Fault:
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._site.cancel.is_set():
            remaining = POLL_SECONDS if deadline is None else min(POLL_SECONDS, deadline - time.monotonic())
            if remaining <= 0:
                return Fault(kind=FaultKind.TIMEOUT, why=f"no answer after {seconds:g} s")
            if self._site.is_done():
                return self._mark_acted(self._finish())
            line = self._listen(remaining)
            result = None if line is None else self._read_line(line)
            if result:
                return self._mark_acted(result)
        return Fault(kind=FaultKind.CANCELLED, why="interrupted")

    def _mark_acted(self, result: Turn | Fault) -> Turn | Fault:
        """Mark an executor's turn as `acted`: the person may have changed the work tree meanwhile."""
        if isinstance(result, Fault) or self._conversation.occasion.role != "executor":
            return result
        return result.model_copy(update={"acted": True})

    def _finish(self) -> Turn | Fault:
        """End the turn after `proofstone done`: what was typed so far is the answer. An executor need not type one."""
        if self._typed:
            return self._build_answer()
        if self._conversation.occasion.role == "executor":
            return _build_turn(answer={"status": "success"})
        return Fault(kind=FaultKind.FAILED, why="the person finished without an answer")

    def _read_line(self, line: str) -> Turn | Fault | None:
        """Read a line. Return the turn if the line completes it."""
        if self._typed:
            return self._continue_answer(line)
        first, rest = line[:1], line[1:].strip()
        word, _, why = line.strip().partition(" ")
        if first == "@" and rest:
            return self._read_answer_file(rest)
        if first == "!" and rest:
            return self._build_call(rest)
        if word == "failed":
            return Fault(kind=FaultKind.FAILED, why=why.strip() or "the person gave up")
        if line.strip() == "?":
            _show(self._site, render_full_prompt(self._conversation))
        elif line.strip() in ("", "."):
            _show(self._site, list(_USAGE))
        else:
            self._typed.append(line)
        return None

    def _continue_answer(self, line: str) -> Turn | None:
        if line.strip() == "." or (not line.strip() and _parse_json("\n".join(self._typed)) is not None):
            return self._build_answer()
        self._typed.append(line)
        return None

    def _build_answer(self) -> Turn:
        return _parse_answer("\n".join(self._typed))

    def _read_answer_file(self, name: str) -> Turn | None:
        text = _read_file(name)
        if isinstance(text, MalformedAnswer):
            self._site.say(f"{name}: {text.why}")
            return None
        return _parse_answer(text)

    def _build_call(self, text: str) -> Turn | None:
        name, _, rest = text.partition(" ")
        arguments = _parse_arguments(rest.strip(), self._find_parameters(name))
        if arguments is None:
            self._site.say(f"`{rest.strip()}`: write key=value, or a JSON object")
            return None
        return _build_turn(calls=build_tool_calls(self._conversation, [ScriptCall(name, arguments)]))

    def _find_parameters(self, name: str) -> Mapping[str, JsonValue]:
        schemas = [tool.parameters.get("properties") for tool in self._conversation.tools if tool.name == name]
        return schemas[0] if schemas and isinstance(schemas[0], Mapping) else {}


def _build_turn(**values: object) -> Turn:
    return Turn.model_validate({"model": "human", "usage": _NO_COST, **values})


def _parse_answer(text: str) -> Turn:
    answer = _parse_json(text) or _parse_yaml(text)
    try:
        return _build_turn(text="" if answer else text, answer=answer)
    except ValidationError:  # nested too deeply
        return _build_turn(text=text)


def _read_file(name: str) -> str | MalformedAnswer:
    """Read a file that the person named."""
    try:
        with Path(name).expanduser().open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            return MalformedAnswer(f"it has more than {_MAX_BYTES} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        return MalformedAnswer(f"it cannot be read: {error.strerror}")
    except (ValueError, RuntimeError) as error:  # not UTF-8; no such home folder
        return MalformedAnswer(f"it cannot be read: {error}")


def _parse_json(text: str) -> dict[str, JsonValue] | None:
    """Return the JSON object in the text, or None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_storable(value) else None


def _is_storable(value: dict[str, JsonValue]) -> bool:
    """Return whether the value can be written as JSON in UTF-8: Python reads lone surrogates and NaN, too."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _parse_yaml(text: str) -> dict[str, JsonValue] | None:
    try:
        value = make_yaml_reader().load(text)
        if not isinstance(value, dict) or not is_bounded(value):
            return None
        as_json = json.dumps(value, default=str, allow_nan=False)
    except (YAMLError, ValueError, TypeError, RecursionError):
        return None
    return _parse_json(as_json)


def _parse_arguments(text: str, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Parse `path=src/a.py lines=3` or a JSON object."""
    if text.startswith("{"):
        return _parse_json(text)
    try:
        pairs = [pair.partition("=") for pair in shlex.split(text)]
    except ValueError:  # an unclosed quotation mark
        return None
    if not all(name and separator for name, separator, _ in pairs):
        return None
    return {name: _parse_value(value, parameters.get(name)) for name, _, value in pairs}


def _parse_value(text: str, schema: JsonValue) -> JsonValue:
    """Return the text itself if the tool takes a string, else the JSON value that it spells, if it does."""
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return text
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
