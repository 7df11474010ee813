"""One session with an agent of the Agent Client Protocol: begin, log in if it must be, set mode and model, ask.

The session is a generator that asks and is given answers; who carries them is no concern of its.

What an agent of the Agent Client Protocol may ask of us: for permission, and for files to be read and written.

Both are answered by the task's scope, so that an undeclared write is refused while it happens. Nothing else is served:
commands run in the sandbox, where the agent is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends.programs.acp.choices import (
    Choice,
    has_model,
    has_modes,
    login_for,
    mode_for,
    model_for,
    tells_model,
)
from proofstone.agents.backends.programs.acp.session_updates import Heard
from proofstone.agents.backends.programs.acp.wire import Message
from proofstone.agents.backends.programs.activity import Mask, whole
from proofstone.agents.backends.programs.lines import count_at, objects_at, text_at, value_at
from proofstone.agents.backends.programs.locating import Program
from proofstone.agents.backends.programs.preset import Errand, Preset
from proofstone.agents.backends.programs.preset import Final as Said
from proofstone.agents.executors.context import Site
from proofstone.agents.models import Fault, FaultKind, ToolCall
from proofstone.agents.rules.permission import Allowed, Bounds, decide, from_root
from proofstone.agents.rules.tool_rules import FailedError, RefusedError, shown
from proofstone.agents.tools.models import Tool
from proofstone.agents.tools.tool_context import Ground
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.agents.tools.tree import Tree

PROTOCOL: Final = 1
AUTH_REQUIRED: Final = -32000
_MOST_WHY: Final = 2000
# What an agent says of a provider that fails it → what that is; the first that fits.
_TROUBLES: Final = (
    (
        re.compile(
            r"\b(401|403)\b|unauthori[sz]ed|authenticat|api.?key|forbidden|\blog(ged)? ?in\b"
            r"|configuration value not found|no provider|not configured",
            re.IGNORECASE,
        ),
        FaultKind.DENIED,
    ),
    (
        re.compile(r"\b(429|50\d|529)\b|rate.?limit|overload|unavailable|quota|timed? ?out|network", re.IGNORECASE),
        FaultKind.UNAVAILABLE,
    ),
)
_STOPS: Final[Mapping[str, tuple[FaultKind, str]]] = {
    "refusal": (FaultKind.FILTERED, "the agent's model refuses to go on"),
    # By itself: who cancels from here is not waiting for an answer. It would pass for the person's word otherwise.
    "cancelled": (FaultKind.FAILED, "the agent ended its turn before it was done"),
    "max_turn_requests": (FaultKind.FAILED, "the agent stopped at its limit of requests to its model"),
}
_TROUBLE_IN_WORDS: Final = re.compile(
    r"Ran into this error: |Error: (Authentication failed with provider|Failed to get response from the AI model)"
)
"""How goose and copilot tell that their provider fails them: as if their model had said it."""


@dataclass(frozen=True)
class Ask:
    method: str
    parameters: Message


class AgentError(Exception):
    """The agent's answer is an error."""

    def __init__(self, method: str, error: JsonValue, mask: Mask) -> None:
        self.method = method
        self.code = value_at(error, "code")
        detail = text_at(error, "data", "details") or text_at(error, "data", "message") or text_at(error, "data")
        said = ": ".join(part for part in (text_at(error, "message"), detail) if part)
        self.text = mask(said) or "an error without a word"
        super().__init__(self.text)


Dialogue = Generator[Ask, Message, Said]


class Talk:
    def __init__(self, program: Program, errand: Errand, heard: Heard, given: Collection[str]) -> None:
        """`given`: the variables that the program has."""
        self._program = program
        self._errand = errand
        self._heard = heard
        self._given = given
        self.session = ""
        """Its id; empty: there is none yet."""

    def dialogue(self) -> Dialogue:
        try:
            return (yield from self._through())
        except AgentError as error:
            return Said("", usage=self._heard.usage({}), fault=self._fault(error))

    def _through(self) -> Dialogue:
        begun = yield Ask("initialize", _greeting(self._program.preset))
        if (version := count_at(begun, "protocolVersion")) != PROTOCOL:
            return self._failed(f"it speaks version {version} of the protocol, and not {PROTOCOL}")
        methods = objects_at(begun, "authMethods")
        try:
            offer = yield self._new_session()
        except AgentError as error:
            method = login_for(methods, self._given) if error.code == AUTH_REQUIRED else ""
            if not method:
                raise
            yield Ask("authenticate", {"methodId": method})
            offer = yield self._new_session()
        self.session = text_at(offer, "sessionId")
        yield from self._set_mode(offer)
        yield from self._set_model(offer)
        words: list[JsonValue] = [{"type": "text", "text": whole(self._errand.prompt)}]
        answer = yield Ask("session/prompt", {"sessionId": self.session, "prompt": words})
        self._heard.end()
        return self._ended(answer)

    def _new_session(self) -> Ask:
        return Ask("session/new", {"cwd": str(self._errand.root), "mcpServers": []})

    def _set_mode(self, offer: Message) -> Generator[Ask, Message, None]:
        preset = self._program.preset
        choice = mode_for(offer, preset.acp_mode if preset else "")
        if choice is not None:
            yield from self._set("mode", choice)
        elif has_modes(offer):
            self._heard.note("it offers no mode in which it is known to ask: the sandbox and the diff alone bound it")

    def _set_model(self, offer: Message) -> Generator[Ask, Message, None]:
        model = self._program.model
        if not model or has_model(offer, model):
            return
        choice = model_for(offer, model)
        if choice is not None:
            yield from self._set("model", choice)
        elif self._program.preset is None or tells_model(offer):  # a preset has told it when it was started
            self._heard.note(f"the model {model} was not set: the agent does not offer it")

    def _set(self, what: str, choice: Choice) -> Generator[Ask, Message, None]:
        try:
            yield Ask(choice.method, {"sessionId": self.session, **choice.parameters})
        except AgentError as error:
            self._heard.note(f"the {what} {choice.value} was not set: {error.text}")

    def _ended(self, answer: Message) -> Said:
        usage, reason = self._heard.usage(answer), text_at(answer, "stopReason")
        words = self._heard.words
        if reason in _STOPS:
            kind, why = _STOPS[reason]
            refused = f"it was refused: {self._heard.last_refusal}" if self._heard.last_refusal else ""
            lines = filter(None, (why, refused, words.strip()[-_MOST_WHY:]))
            return Said("", usage, fault=Fault(kind=kind, why="\n".join(lines)))
        if not usage.tokens and _TROUBLE_IN_WORDS.search(words):  # no model has said that
            why = f"{self._program.name}: {words.strip()}"[:_MOST_WHY]
            return Said("", usage, fault=Fault(kind=_kind_of(words), why=why))
        return Said(words, usage, cut=reason == "max_tokens")

    def _failed(self, why: str) -> Said:
        return Said("", fault=Fault(kind=FaultKind.FAILED, why=f"{self._program.name}: {why}"))

    def _fault(self, error: AgentError) -> Fault:
        said = f"{self._program.name} answered {error.method} with an error: {error.text[:_MOST_WHY]}"
        if error.code == AUTH_REQUIRED:
            return Fault(kind=FaultKind.DENIED, why=f"{said}\n{self._how_to_log_in()}")
        kind = _kind_of(f"{error.code} {error.text}")
        return Fault(kind=kind, why=f"{said}\n{self._how_to_log_in()}" if kind is FaultKind.DENIED else said)

    def _how_to_log_in(self) -> str:
        preset = self._program.preset
        keys = preset.key_variables if preset else ()
        key = f", or set its key ({' or '.join(keys)})" if keys else ", or name its key under `pass` in your settings"
        return f"start {self._program.argv[0]} once by yourself and log in{key}"


def _kind_of(text: str) -> FaultKind:
    return next((kind for words, kind in _TROUBLES if words.search(text)), FaultKind.FAILED)


def _greeting(preset: Preset | None) -> Message:
    files: Message = {"readTextFile": preset is None or preset.acp_reads, "writeTextFile": True}
    return {
        "protocolVersion": PROTOCOL,
        "clientCapabilities": {"fs": dict(files), "terminal": False},
        "clientInfo": {"name": "proofstone", "title": "Proofstone", "version": "1"},
    }


METHOD_NOT_FOUND: Final = -32601
INVALID: Final = -32602
NOT_FOUND: Final = -32002
"""Agents that write through us ask for a file first, and take this for a new one: some by the code, some by its
usual words."""
_FILE_BYTES: Final = 16 << 20
_CHOICES: Final = {True: "allow_once", False: "reject_once"}


class NotServedError(Exception):
    """The agent gets an error for an answer."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Client:
    def __init__(self, site: Site, heard: Heard, bounds: Bounds) -> None:
        self._heard = heard
        self._bounds = bounds
        ground = Ground(
            files=site.work_tree, scope=bounds.scope, secret=site.secret, cancel=site.cancel, mask=site.mask
        )
        self._tree = Tree(ground)
        self._toolbox = Toolbox(ground, {Tool.WRITE})
        self._served: Mapping[str, Callable[[Message], Message]] = {
            "session/request_permission": self._permission,
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
        }

    def answer(self, method: str, parameters: JsonValue) -> Message:
        """Result or error, as a message carries it."""
        asked = parameters if isinstance(parameters, Mapping) else {}
        try:
            serve = self._served.get(method)
            if serve is None:
                raise NotServedError(METHOD_NOT_FOUND, f"{shown(method[:100])} is not served here.")
            return {"result": dict(serve(asked))}
        except NotServedError as error:
            return {"error": {"code": error.code, "message": error.text}}

    def told(self, method: str, parameters: JsonValue) -> None:
        """What it only tells."""
        update = value_at(parameters, "update")
        if method == "session/update" and isinstance(update, Mapping):
            self._heard.update(update)

    def _permission(self, asked: Message) -> Message:
        told = value_at(asked, "toolCall")
        if not isinstance(told, Mapping):
            raise NotServedError(INVALID, "There is no tool call to be permitted.")
        call = self._heard.asked(told)
        wish = call.wish
        decision = decide(wish, self._bounds)
        if not isinstance(decision, Allowed):
            self._heard.refused(call.name, decision.why, wish.paths)
        return {"outcome": _outcome(asked, allowed=isinstance(decision, Allowed))}

    def _read(self, asked: Message) -> Message:
        given = text_at(asked, "path")
        try:
            at = self._tree.readable(from_root(given, self._bounds.root))
            content = self._tree.read(at, _FILE_BYTES).decode()
        except RefusedError as refused:
            self._heard.refused("read", refused.text, (given,))
            raise NotServedError(INVALID, refused.text) from refused
        except FailedError as failed:
            raise NotServedError(INVALID, failed.text) from failed
        except FileNotFoundError as error:
            raise NotServedError(NOT_FOUND, f"Resource not found: {shown(given)} does not exist.") from error
        except UnicodeDecodeError as error:
            raise NotServedError(INVALID, f"{shown(given)} is not UTF-8.") from error
        except OSError as error:
            raise NotServedError(INVALID, f"{shown(given)}: {error.strerror}.") from error
        return {"content": _part(content, count_at(asked, "line"), count_at(asked, "limit"))}

    def _write(self, asked: Message) -> Message:
        given, content = text_at(asked, "path"), value_at(asked, "content")
        if not isinstance(content, str):
            raise NotServedError(INVALID, "There is no content to be written.")
        try:
            path = from_root(given, self._bounds.root)
        except RefusedError as refused:
            self._heard.refused("write", refused.text, (given,))
            raise NotServedError(INVALID, refused.text) from refused
        arguments = {"path": path, "content": content}
        result = self._toolbox.call(ToolCall(id="write", name=Tool.WRITE, arguments=arguments))
        if result.refused is not None:
            self._heard.refused("write", result.text, (given,))
        if not result.ok:
            raise NotServedError(INVALID, result.text)
        return {}


def _outcome(asked: Message, *, allowed: bool) -> dict[str, JsonValue]:
    """Once, and never for always: the next one may be another file."""
    for option in objects_at(asked, "options"):
        if text_at(option, "kind") == _CHOICES[allowed]:
            return {"outcome": "selected", "optionId": text_at(option, "optionId")}
    return {"outcome": "cancelled"}


def _part(content: str, line: int, limit: int) -> str:
    """The lines that are wanted, counted from 1; all, if none are named."""
    if line <= 1 and not limit:
        return content
    first = max(line, 1) - 1
    lines = content.splitlines(keepends=True)
    return "".join(lines[first : first + limit] if limit else lines[first:])
