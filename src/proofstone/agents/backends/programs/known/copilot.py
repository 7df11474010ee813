"""GitHub Copilot: `copilot`, with its prompt on standard input, and `copilot --acp`.

It keeps its edits in the work tree by itself. Its rules for single paths have no patterns, so the scope is not passed
to it: the diff decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import RecordedCall, RecordedCalls, shorten_name, shorten_paths
from proofstone.agents.backends.programs.lines import (
    classify_status,
    get_count,
    get_text,
    get_value,
    parse_object,
    shorten,
)
from proofstone.agents.backends.programs.preset import EditLimit, Invocation, LaunchRequest, Preset, ProgramResult
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_OPTIONS = (
    "--no-auto-update", "--disable-client-telemetry", "--disable-builtin-mcps", "--no-remote", "--log-level", "none",
)  # fmt: skip
_KINDS: Mapping[str, FaultKind] = {
    "authentication": FaultKind.DENIED,
    "authorization": FaultKind.DENIED,
    "quota": FaultKind.DENIED,
    "rate_limit": FaultKind.UNAVAILABLE,
    "context_limit": FaultKind.REJECTED,
}
"""By its own code for the error, if there is no status."""


def invoke(errand: LaunchRequest) -> Invocation:
    model = (f"--model={errand.model}",) if errand.model else ()
    arguments = (
        "--output-format", "json", "--stream", "off", "--no-color", "--no-ask-user", "--disallow-temp-dir",
        "--allow-all-tools", *_list_denied_tools(errand), *_OPTIONS, *model,
    )  # fmt: skip
    return Invocation(arguments, stdin=errand.prompt)


def invoke_acp(errand: LaunchRequest) -> Invocation:
    """Build the command line with which it asks before every edit and command."""
    model = (f"--model={errand.model}",) if errand.model else ()
    return Invocation(("--acp", "--disallow-temp-dir", *_list_denied_tools(errand), *_OPTIONS, *model))


def _list_denied_tools(errand: LaunchRequest) -> Iterator[str]:
    """Yield the options that deny tools. A denial overrides every permission."""
    if not errand.scope:
        yield "--deny-tool=write"
    if not errand.can_run:
        yield "--deny-tool=shell"


class CopilotStream:
    def __init__(self) -> None:
        self._text = ""
        self._model = ""
        self._requests = 0
        self._calls = RecordedCalls()
        self._fault: Fault | None = None

    def line(self, text: str) -> Iterable[Activity]:
        event = parse_object(text) or {}
        data = get_value(event, "data")
        match get_text(event, "type"):
            case "assistant.message":
                return self._read_message(data)
            case "tool.execution_start":
                activity = _read_call(data)
                self._calls.add(get_text(data, "toolCallId"), activity.name, activity.paths)
                return [activity]
            case "tool.execution_complete":
                return [_read_outcome(data, self._calls.get(get_text(data, "toolCallId")))]
            case "model.call_failure":
                why = f"the provider failed: {shorten(get_text(data, 'errorMessage'))}"
                return [Activity(kind=ActivityKind.NOTE, text=why)]
            case "session.error":
                self._fault = _build_fault(data)
                return [Activity(kind=ActivityKind.NOTE, text=self._fault.why)]
        return ()

    def is_final(self, exit_code: int | None) -> ProgramResult:
        usage = Usage(requests=max(self._requests, 1), usd=None)
        return ProgramResult(self._text, usage, self._model, self._fault)

    def _read_message(self, data: JsonValue) -> list[Activity]:
        self._requests += 1
        self._fault = None
        self._model = shorten_name(get_text(data, "model")) or self._model
        thought, content = get_text(data, "reasoningText"), get_text(data, "content")
        self._text = content or self._text
        parts = ((ActivityKind.THOUGHT, thought), (ActivityKind.SAID, content))
        return [Activity(kind=kind, text=shorten(text)) for kind, text in parts if text]


def _read_call(data: JsonValue) -> Activity:
    path = get_text(data, "arguments", "path")
    text = get_text(data, "arguments", "command") or get_text(data, "arguments", "pattern")
    name = shorten_name(get_text(data, "toolName"))
    return Activity(kind=ActivityKind.TOOL, name=name, text=shorten(text), paths=shorten_paths(path))


def _read_outcome(data: JsonValue, call: RecordedCall) -> Activity:
    if get_text(data, "error", "code") == "denied":
        why = get_text(data, "error", "message")
        return Activity(kind=ActivityKind.REFUSED, name=call.tool, text=shorten(why), paths=call.paths)
    succeeded = get_value(data, "success") is True
    text = get_text(data, "result", "content") if succeeded else get_text(data, "error", "message")
    ok = succeeded and not get_count(data, "shellExecution", "exitCode")
    return Activity(kind=ActivityKind.RESULT, name=call.tool, text=shorten(text), paths=call.paths, ok=ok)


def _build_fault(data: JsonValue) -> Fault:
    status = get_count(data, "statusCode")
    kind = classify_status(status) if status else _KINDS.get(get_text(data, "errorType"), FaultKind.FAILED)
    return Fault(kind=kind, why=shorten(get_text(data, "message")) or "it failed without a reason")


PRESET = Preset(
    name="copilot",
    program="copilot",
    install="npm install -g @github/copilot",
    minimum="1.0.0",
    invoke=invoke,
    stream=CopilotStream,
    limit=EditLimit.TREE,
    limit_description="it edits nothing outside the work tree; in a role that only reads, its edits are denied",
    hosts=("api.github.com", "api.githubcopilot.com", "*.githubcopilot.com"),
    keys=(
        "COPILOT_GITHUB_TOKEN", "COPILOT_GH_HOST", "COPILOT_MODEL", "COPILOT_OFFLINE",
        "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_API_KEY",
        "COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_PROVIDER_WIRE_API", "COPILOT_PROVIDER_MODEL_ID",
    ),
    login=(".copilot",),
    startup_files=(
        ".copilot/settings.json", ".copilot/mcp-config.json", ".copilot/lsp-config.json", ".copilot/hooks",
        ".copilot/agents", ".copilot/skills", ".copilot/instructions", ".copilot/copilot-instructions.md",
        ".copilot/installed-plugins", ".copilot/extensions", ".copilot/permissions-config.json",
    ),
    acp=invoke_acp,
    acp_mode="https://agentclientprotocol.com/protocol/session-modes#agent",
    known_problems=(
        "It ends with exit code 0 when its edits were refused: only the diff counts.",
        "It can change an undeclared file of the work tree, which the diff catches (with `acp:` it asks first).",
        "A login in the system's keychain cannot be reached from the sandbox: set COPILOT_GITHUB_TOKEN.",
        "GH_TOKEN and GITHUB_TOKEN give access to more than Copilot and are not passed on unless you `pass` them.",
        "Without a login it says so only on standard error, and counts as crashed.",
        "It unpacks itself again in every fresh HOME, which takes some seconds per run.",
        "It removes the text of its key from its output: a short key makes the output unreadable.",
        "It does not report how many tokens it used.",
    ),
)  # fmt: skip
