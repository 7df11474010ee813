"""`human` as a backend: a person is shown what an agent would be, and types the answer, or a tool to use.

They have as long as they need unless the engine gives a deadline. What they type is an answer like anybody's: if it is
not of the schema, they are shown why and asked again. Where there is no terminal, there is nobody to ask.
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

from proofstone.agents.backends import Identity
from proofstone.agents.backends.wording import calls_in, fields, in_words
from proofstone.agents.executors.context import Site
from proofstone.agents.executors.people import TICK, Listen, drain
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.agents.rules.answer import Malformed
from proofstone.agents.script_file import Call
from proofstone.common.models import Usage
from proofstone.common.parsing import is_bounded, yaml_reader

_MOST_BYTES = 8 << 20
_SHORT = 12
"""Lines of the instructions that are shown."""
_NOTHING_SPENT = Usage(requests=1)


@dataclass(frozen=True)
class HumanBackend:
    listen: Listen | None = None
    """None: there is no terminal to ask at."""
    identity: Identity = field(default=Identity("human", answers=lambda _role, _asked: False), init=False)

    def turn(self, conversation: Conversation, site: Site, seconds: float | None) -> Turn | Fault:
        if self.listen is None:
            return Fault(kind=FaultKind.UNAVAILABLE, why="there is no terminal, so there is no person to ask")
        first = not any(isinstance(entry, Turn) for entry in conversation.entries)
        _show(site, everything(conversation) if first else news(conversation))
        drain(self.listen)
        return _Question(conversation, site, self.listen).put(seconds)

    def close(self) -> None:
        """It holds nothing."""


def everything(conversation: Conversation) -> list[str]:
    """What an agent would be told, and what can be typed."""
    occasion = conversation.occasion
    about = f", {occasion.task} ({occasion.task_name}), attempt {occasion.attempt}" if occasion.task else ""
    instructions = conversation.instructions.strip().splitlines()
    more = len(instructions) - _SHORT
    asked = [line for entry in conversation.entries for line in in_words(entry).splitlines()]
    return [
        f"You are asked as {occasion.agent}{about}.",
        *instructions[:_SHORT],
        *([f"… and {more} more lines of instructions"] if more > 0 else []),
        "",
        *asked,
        "",
        "Your answer has these fields:",
        *(f"  {line}" for line in fields(conversation.output_schema)),
        *_tools(conversation),
        *_WORDS,
    ]


_WORDS = (
    "Type the answer as YAML or JSON, over as many lines as you like, and then a line with a single `.`",
    "or `@FILE` to take it from a file, `failed WHY` if it cannot be done, `?` to see all this again.",
)


def _tools(conversation: Conversation) -> list[str]:
    names = ", ".join(tool.name for tool in conversation.tools)
    return [f"To use a tool: `!read path=src/a.py`. You have: {names}."] if names else []


def news(conversation: Conversation) -> list[str]:
    """What has come since they last spoke."""
    lines: list[str] = []
    for entry in reversed(conversation.entries):
        if isinstance(entry, Turn):
            break
        lines = [*in_words(entry).splitlines(), *lines]
    return [*lines, "Type the answer and then `.`, or `?` to see everything again."]


def _show(site: Site, lines: list[str]) -> None:
    for line in lines:
        site.say(line)


class _Question:
    """One turn that a person is asked for, until they have said something that is one."""

    def __init__(self, conversation: Conversation, site: Site, listen: Listen) -> None:
        self._conversation = conversation
        self._site = site
        self._listen = listen
        self._typed: list[str] = []

    def put(self, seconds: float | None) -> Turn | Fault:
        ends = None if seconds is None else time.monotonic() + seconds
        while not self._site.cancel.is_set():
            left = TICK if ends is None else min(TICK, ends - time.monotonic())
            if left <= 0:
                return Fault(kind=FaultKind.TIMEOUT, why=f"no answer after {seconds:g} s")
            if self._site.heard():
                return self._acted(self._finished())
            line = self._listen(left)
            said = None if line is None else self._take(line)
            if said:
                return self._acted(said)
        return Fault(kind=FaultKind.CANCELLED, why="interrupted")

    def _acted(self, said: Turn | Fault) -> Turn | Fault:
        """An executor may have worked in the work tree meanwhile."""
        if isinstance(said, Fault) or self._conversation.occasion.role != "executor":
            return said
        return said.model_copy(update={"acted": True})

    def _finished(self) -> Turn | Fault:
        """`proofstone done`: what was typed so far is the answer. To an executor, the work tree is answer enough."""
        if self._typed:
            return self._answer()
        if self._conversation.occasion.role == "executor":
            return _turn(answer={"status": "success"})
        return Fault(kind=FaultKind.FAILED, why="the person is finished and has given no answer")

    def _take(self, line: str) -> Turn | Fault | None:
        """The turn, if this line makes it one."""
        if self._typed:
            return self._go_on(line)
        first, rest = line[:1], line[1:].strip()
        word, _, why = line.strip().partition(" ")
        if first == "@" and rest:
            return self._from_file(rest)
        if first == "!" and rest:
            return self._call(rest)
        if word == "failed":
            return Fault(kind=FaultKind.FAILED, why=why.strip() or "the person gave it up")
        if line.strip() == "?":
            _show(self._site, everything(self._conversation))
        elif line.strip() in ("", "."):
            _show(self._site, list(_WORDS))
        else:
            self._typed.append(line)
        return None

    def _go_on(self, line: str) -> Turn | None:
        if line.strip() == "." or (not line.strip() and _json("\n".join(self._typed)) is not None):
            return self._answer()
        self._typed.append(line)
        return None

    def _answer(self) -> Turn:
        return _answered("\n".join(self._typed))

    def _from_file(self, name: str) -> Turn | None:
        text = _text_of(name)
        if isinstance(text, Malformed):
            self._site.say(f"{name}: {text.why}")
            return None
        return _answered(text)

    def _call(self, said: str) -> Turn | None:
        name, _, rest = said.partition(" ")
        arguments = _arguments(rest.strip(), self._parameters(name))
        if arguments is None:
            self._site.say(f"`{rest.strip()}`: write key=value, or a JSON object")
            return None
        return _turn(calls=calls_in(self._conversation, [Call(name, arguments)]))

    def _parameters(self, name: str) -> Mapping[str, JsonValue]:
        schemas = [tool.parameters.get("properties") for tool in self._conversation.tools if tool.name == name]
        return schemas[0] if schemas and isinstance(schemas[0], Mapping) else {}


def _turn(**said: object) -> Turn:
    return Turn.model_validate({"model": "human", "usage": _NOTHING_SPENT, **said})


def _answered(text: str) -> Turn:
    answer = _json(text) or _yaml(text)
    try:
        return _turn(text="" if answer else text, answer=answer)
    except ValidationError:  # nested too deeply
        return _turn(text=text)


def _text_of(name: str) -> str | Malformed:
    """What is in a file of the person's own."""
    try:
        with Path(name).expanduser().open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            return Malformed(f"it has more than {_MOST_BYTES} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        return Malformed(f"it cannot be read: {error.strerror}")
    except (ValueError, RuntimeError) as error:  # it is not text; there is no such home
        return Malformed(f"it cannot be read: {error}")


def _json(text: str) -> dict[str, JsonValue] | None:
    """The object that the text is, if it is one."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and _can_be_kept(said) else None


def _can_be_kept(said: dict[str, JsonValue]) -> bool:
    """JSON can spell half a character, and Python reads numbers from it that are none."""
    try:
        json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _yaml(text: str) -> dict[str, JsonValue] | None:
    try:
        said = yaml_reader().load(text)
        if not isinstance(said, dict) or not is_bounded(said):
            return None
        plain = json.dumps(said, default=str, allow_nan=False)
    except (YAMLError, ValueError, TypeError, RecursionError):
        return None
    return _json(plain)


def _arguments(text: str, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """`path=src/a.py lines=3`, or a JSON object."""
    if text.startswith("{"):
        return _json(text)
    try:
        pairs = [pair.partition("=") for pair in shlex.split(text)]
    except ValueError:  # a quotation that does not end
        return None
    if not all(name and found for name, found, _ in pairs):
        return None
    return {name: _value(value, parameters.get(name)) for name, _, value in pairs}


def _value(text: str, schema: JsonValue) -> JsonValue:
    """A text where the tool takes one; else what it says in JSON, if it says anything."""
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return text
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
