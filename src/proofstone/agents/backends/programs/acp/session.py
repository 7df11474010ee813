"""One session with an agent of the Agent Client Protocol.

`AgentSession` begins the session, logs in if necessary, sets mode and model, and sends the prompt. It is a generator
that
yields requests and receives answers; the caller transports them.

`AcpClient` answers the agent's own requests: for permission, and for files to be read and written. The task's scope
decides, so an undeclared write is refused at once. Nothing else is served: commands run in the sandbox, where the agent
is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends.programs.acp.session_settings import (
    SessionSetting,
    choose_login,
    choose_mode,
    find_model,
    has_model,
    has_modes,
    reports_model,
)
from proofstone.agents.backends.programs.acp.session_updates import SessionLog
from proofstone.agents.backends.programs.acp.wire import AcpMessage
from proofstone.agents.backends.programs.activity import KeyMask, replace_surrogates
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.lines import get_count, get_objects, get_text, get_value
from proofstone.agents.backends.programs.preset import LaunchRequest, Preset, ProgramResult
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Fault, FaultKind, ToolCall
from proofstone.agents.rules.permission import PermissionGranted, PermissionLimits, decide_permission, resolve_from_root
from proofstone.agents.rules.tool_rules import ToolFailedError, ToolRefusedError, format_path
from proofstone.agents.tools.models import Tool
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.agents.tools.tree import FileTree

PROTOCOL_VERSION: Final = 1
AUTH_REQUIRED: Final = -32000
_MAX_MESSAGE_CHARS: Final = 2000
# What an agent says about a failing provider → the kind of fault; the first match applies.
_FAULT_PATTERNS: Final = (
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
_STOP_REASONS: Final[Mapping[str, tuple[FaultKind, str]]] = {
    "refusal": (FaultKind.FILTERED, "the agent's model refuses to continue"),
    # The agent itself did this: after a cancellation by us, nobody waits for an answer.
    "cancelled": (FaultKind.FAILED, "the agent ended its turn before it was finished"),
    "max_turn_requests": (FaultKind.FAILED, "the agent stopped at its limit of requests to its model"),
}
_ERROR_TEXT: Final = re.compile(
    r"Ran into this error: |Error: (Authentication failed with provider|Failed to get response from the AI model)"
)
"""How goose and copilot report a failing provider: as if their model had said it."""


@dataclass(frozen=True)
class AgentRequest:
    """A request to the agent."""

    method: str
    parameters: AcpMessage


class AgentError(Exception):
    """The agent answered a request with an error."""

    def __init__(self, method: str, error: JsonValue, mask: KeyMask) -> None:
        self.method = method
        self.code = get_value(error, "code")
        detail = get_text(error, "data", "details") or get_text(error, "data", "message") or get_text(error, "data")
        message = ": ".join(part for part in (get_text(error, "message"), detail) if part)
        self.text = mask(message) or "an error without a message"
        super().__init__(self.text)


SessionDialogue = Generator[AgentRequest, AcpMessage, ProgramResult]


class AgentSession:
    """The requests of one session, from `initialize` to the prompt."""

    def __init__(
        self, program: InstalledProgram, errand: LaunchRequest, updates: SessionLog, variables: Collection[str]
    ) -> None:
        """`variables`: those that the program has."""
        self._program = program
        self._errand = errand
        self._updates = updates
        self._variables = variables
        self.session = ""
        """The id of the session; empty: there is none yet."""

    def run(self) -> SessionDialogue:
        try:
            return (yield from self._run())
        except AgentError as error:
            return ProgramResult("", usage=self._updates.compute_usage({}), fault=self._build_fault(error))

    def _run(self) -> SessionDialogue:
        greeting = yield AgentRequest("initialize", _build_initialize_parameters(self._program.preset))
        if (version := get_count(greeting, "protocolVersion")) != PROTOCOL_VERSION:
            return self._build_failure(f"it uses version {version} of the protocol instead of {PROTOCOL_VERSION}")
        methods = get_objects(greeting, "authMethods")
        try:
            offer = yield self._request_session()
        except AgentError as error:
            method = choose_login(methods, self._variables) if error.code == AUTH_REQUIRED else ""
            if not method:
                raise
            yield AgentRequest("authenticate", {"methodId": method})
            offer = yield self._request_session()
        self.session = get_text(offer, "sessionId")
        yield from self._set_mode(offer)
        yield from self._set_model(offer)
        prompt: list[JsonValue] = [{"type": "text", "text": replace_surrogates(self._errand.prompt)}]
        answer = yield AgentRequest("session/prompt", {"sessionId": self.session, "prompt": prompt})
        self._updates.end()
        return self._build_result(answer)

    def _request_session(self) -> AgentRequest:
        return AgentRequest("session/new", {"cwd": str(self._errand.root), "mcpServers": []})

    def _set_mode(self, offer: AcpMessage) -> Generator[AgentRequest, AcpMessage, None]:
        preset = self._program.preset
        choice = choose_mode(offer, preset.acp_mode if preset else "")
        if choice is not None:
            yield from self._set("mode", choice)
        elif has_modes(offer):
            self._updates.note("it offers no mode in which it is known to ask: only the sandbox and the diff limit it")

    def _set_model(self, offer: AcpMessage) -> Generator[AgentRequest, AcpMessage, None]:
        model = self._program.model
        if not model or has_model(offer, model):
            return
        choice = find_model(offer, model)
        if choice is not None:
            yield from self._set("model", choice)
        elif self._program.preset is None or reports_model(offer):  # a preset passes the model on the command line
            self._updates.note(f"the model {model} was not set: the agent does not offer it")

    def _set(self, setting: str, choice: SessionSetting) -> Generator[AgentRequest, AcpMessage, None]:
        try:
            yield AgentRequest(choice.method, {"sessionId": self.session, **choice.parameters})
        except AgentError as error:
            self._updates.note(f"the {setting} {choice.value} was not set: {error.text}")

    def _build_result(self, answer: AcpMessage) -> ProgramResult:
        usage, reason = self._updates.compute_usage(answer), get_text(answer, "stopReason")
        text = self._updates.text
        if reason in _STOP_REASONS:
            kind, why = _STOP_REASONS[reason]
            refusal = f"it was refused: {self._updates.last_refusal}" if self._updates.last_refusal else ""
            lines = filter(None, (why, refusal, text.strip()[-_MAX_MESSAGE_CHARS:]))
            return ProgramResult("", usage, fault=Fault(kind=kind, why="\n".join(lines)))
        if not usage.tokens and _ERROR_TEXT.search(text):  # no model has written this
            why = f"{self._program.name}: {text.strip()}"[:_MAX_MESSAGE_CHARS]
            return ProgramResult("", usage, fault=Fault(kind=_classify(text), why=why))
        return ProgramResult(text, usage, is_cut_off=reason == "max_tokens")

    def _build_failure(self, why: str) -> ProgramResult:
        return ProgramResult("", fault=Fault(kind=FaultKind.FAILED, why=f"{self._program.name}: {why}"))

    def _build_fault(self, error: AgentError) -> Fault:
        message = f"{self._program.name} answered {error.method} with an error: {error.text[:_MAX_MESSAGE_CHARS]}"
        if error.code == AUTH_REQUIRED:
            return Fault(kind=FaultKind.DENIED, why=f"{message}\n{self._describe_login()}")
        kind = _classify(f"{error.code} {error.text}")
        return Fault(kind=kind, why=f"{message}\n{self._describe_login()}" if kind is FaultKind.DENIED else message)

    def _describe_login(self) -> str:
        preset = self._program.preset
        keys = preset.key_variables if preset else ()
        key = f", or set its key ({' or '.join(keys)})" if keys else ", or name its key under `pass` in your settings"
        return f"start {self._program.argv[0]} once by yourself and log in{key}"


def _classify(text: str) -> FaultKind:
    return next((kind for pattern, kind in _FAULT_PATTERNS if pattern.search(text)), FaultKind.FAILED)


def _build_initialize_parameters(preset: Preset | None) -> AcpMessage:
    files: AcpMessage = {"readTextFile": preset is None or preset.can_read_over_acp, "writeTextFile": True}
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {"fs": dict(files), "terminal": False},
        "clientInfo": {"name": "proofstone", "title": "Proofstone", "version": "1"},
    }


METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
RESOURCE_NOT_FOUND: Final = -32002
"""Agents that write through us request the file first, and take this for "a new file": some by the code, some by the
usual message."""
_FILE_BYTES: Final = 16 << 20
_OPTION_KINDS: Final = {True: "allow_once", False: "reject_once"}


class NotServedError(Exception):
    """A request is answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class AcpClient:
    """Answers the agent's requests by the task's scope."""

    def __init__(self, site: ExecutionContext, updates: SessionLog, bounds: PermissionLimits) -> None:
        self._updates = updates
        self._bounds = bounds
        ground = ToolContext(
            files=site.work_tree, scope=bounds.scope, secret=site.secret, cancel=site.cancel, mask=site.mask
        )
        self._tree = FileTree(ground)
        self._toolbox = Toolbox(ground, {Tool.WRITE})
        self._handlers: Mapping[str, Callable[[AcpMessage], AcpMessage]] = {
            "session/request_permission": self._answer_permission,
            "fs/read_text_file": self._read_file,
            "fs/write_text_file": self._write_file,
        }

    def answer_request(self, method: str, parameters: JsonValue) -> AcpMessage:
        """Return the result or the error, as a message carries it."""
        request = parameters if isinstance(parameters, Mapping) else {}
        try:
            handler = self._handlers.get(method)
            if handler is None:
                raise NotServedError(METHOD_NOT_FOUND, f"{format_path(method[:100])} is not served here.")
            return {"result": dict(handler(request))}
        except NotServedError as error:
            return {"error": {"code": error.code, "message": error.text}}

    def handle_notification(self, method: str, parameters: JsonValue) -> None:
        """Handle a notification, which needs no answer."""
        update = get_value(parameters, "update")
        if method == "session/update" and isinstance(update, Mapping):
            self._updates.read_update(update)

    def _answer_permission(self, request: AcpMessage) -> AcpMessage:
        tool_call = get_value(request, "toolCall")
        if not isinstance(tool_call, Mapping):
            raise NotServedError(INVALID_PARAMS, "The request has no tool call.")
        call = self._updates.record_request(tool_call)
        request_made = call.wish
        decision = decide_permission(request_made, self._bounds)
        if not isinstance(decision, PermissionGranted):
            self._updates.record_refusal(call.name, decision.why, request_made.paths)
        return {"outcome": _choose_outcome(request, allowed=isinstance(decision, PermissionGranted))}

    def _read_file(self, request: AcpMessage) -> AcpMessage:
        path = get_text(request, "path")
        try:
            location = self._tree.require_readable(resolve_from_root(path, self._bounds.root))
            content = self._tree.read(location, _FILE_BYTES).decode()
        except ToolRefusedError as refused:
            self._updates.record_refusal("read", refused.text, (path,))
            raise NotServedError(INVALID_PARAMS, refused.text) from refused
        except ToolFailedError as failed:
            raise NotServedError(INVALID_PARAMS, failed.text) from failed
        except FileNotFoundError as error:
            raise NotServedError(
                RESOURCE_NOT_FOUND, f"Resource not found: {format_path(path)} does not exist."
            ) from error
        except UnicodeDecodeError as error:
            raise NotServedError(INVALID_PARAMS, f"{format_path(path)} is not UTF-8.") from error
        except OSError as error:
            raise NotServedError(INVALID_PARAMS, f"{format_path(path)}: {error.strerror}.") from error
        return {"content": _select_lines(content, get_count(request, "line"), get_count(request, "limit"))}

    def _write_file(self, request: AcpMessage) -> AcpMessage:
        raw_path, content = get_text(request, "path"), get_value(request, "content")
        if not isinstance(content, str):
            raise NotServedError(INVALID_PARAMS, "The request has no content to write.")
        try:
            path = resolve_from_root(raw_path, self._bounds.root)
        except ToolRefusedError as refused:
            self._updates.record_refusal("write", refused.text, (raw_path,))
            raise NotServedError(INVALID_PARAMS, refused.text) from refused
        arguments = {"path": path, "content": content}
        result = self._toolbox.call(ToolCall(id="write", name=Tool.WRITE, arguments=arguments))
        if result.refused is not None:
            self._updates.record_refusal("write", result.text, (raw_path,))
        if not result.ok:
            raise NotServedError(INVALID_PARAMS, result.text)
        return {}


def _choose_outcome(request: AcpMessage, *, allowed: bool) -> dict[str, JsonValue]:
    """Allow or reject once, never for good: the next call may be about another file."""
    for option in get_objects(request, "options"):
        if get_text(option, "kind") == _OPTION_KINDS[allowed]:
            return {"outcome": "selected", "optionId": get_text(option, "optionId")}
    return {"outcome": "cancelled"}


def _select_lines(content: str, line: int, limit: int) -> str:
    """Return the requested lines, counted from 1, or all lines if none are named."""
    if line <= 1 and not limit:
        return content
    first = max(line, 1) - 1
    lines = content.splitlines(keepends=True)
    return "".join(lines[first : first + limit] if limit else lines[first:])
