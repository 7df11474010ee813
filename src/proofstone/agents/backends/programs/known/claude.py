"""Claude Code: `claude -p`, and the adapter `claude-agent-acp`.

Our hook (`scope_hook`) decides its edits, with our rule for patterns. The program runs in a mode that denies whatever
is not allowed, so a hook that cannot run allows nothing. The project's own settings are not loaded: their hooks would
run in the middle of the task, and their permissions are not those of the task.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import (
    RecordedCall,
    RecordedCalls,
    build_hook_command,
    build_hook_files,
    shorten_name,
    shorten_paths,
)
from proofstone.agents.backends.programs.lines import (
    classify_status,
    get_amount,
    get_count,
    get_objects,
    get_text,
    get_value,
    parse_object,
    shorten,
)
from proofstone.agents.backends.programs.preset import (
    EditLimit,
    FileArgument,
    Invocation,
    LaunchRequest,
    Preset,
    ProgramResult,
)
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_READING = ("Read", "Glob", "Grep")
_EDITING = ("Edit", "Write", "NotebookEdit")
_RUNNING = ("Bash",)
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "DISABLE_AUTOUPDATER": "1",
}
_RETRIES = {"CLAUDE_CODE_MAX_RETRIES": "4"}
"""The default of ten retries takes minutes, even with a wrong key. The engine decides whether to ask again later."""

_KINDS: Mapping[str, FaultKind] = {
    "authentication_failed": FaultKind.DENIED,
    "oauth_org_not_allowed": FaultKind.DENIED,
    "account_on_hold": FaultKind.DENIED,
    "verification_required": FaultKind.DENIED,
    "billing_error": FaultKind.DENIED,
    "cloud_credential_error": FaultKind.DENIED,
    "model_not_found": FaultKind.DENIED,
    "invalid_request": FaultKind.REJECTED,
    "rate_limit": FaultKind.UNAVAILABLE,
    "overloaded": FaultKind.UNAVAILABLE,
    "server_error": FaultKind.UNAVAILABLE,
}
"""By the program's own code for the error."""


def invoke(errand: LaunchRequest) -> Invocation:
    editing = _EDITING if errand.scope else ()
    running = _RUNNING if errand.can_run else ()
    arguments: list[str | FileArgument] = [
        "-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence",
        "--strict-mcp-config", "--disable-slash-commands",
        "--setting-sources", "user", "--settings", FileArgument("PROOFSTONE_SETTINGS"),
        "--permission-mode", "dontAsk",
        "--tools", ",".join((*_READING, *editing, *running)),
        "--allowedTools", ",".join((*_READING, *running)),
    ]  # fmt: skip
    if errand.model:
        arguments += [f"--model={errand.model}"]
    if errand.schema is not None:
        arguments += ["--json-schema", json.dumps(errand.schema)]
    handed = {"PROOFSTONE_SETTINGS": _build_settings(), **build_hook_files(errand)}
    return Invocation(tuple(arguments), _build_variables(errand), stdin=errand.prompt, files=handed)


def invoke_acp(errand: LaunchRequest) -> Invocation:
    """Build the command line of the adapter, which has no options and takes the model from a variable."""
    model = {"ANTHROPIC_MODEL": errand.model} if errand.model else {}
    return Invocation((), {**_build_variables(errand), **model})


def _build_variables(errand: LaunchRequest) -> dict[str, str]:
    retries = {name: value for name, value in _RETRIES.items() if name not in errand.variables}
    return {**_QUIET, **retries}


def _build_settings() -> str:
    hook = {"matcher": "|".join(_EDITING), "hooks": [{"type": "command", "command": build_hook_command()}]}
    return json.dumps({"disableAllHooks": False, "hooks": {"PreToolUse": [hook]}})


class ClaudeStream:
    def __init__(self) -> None:
        self._calls = RecordedCalls()
        self._request: str | None = None
        self._requests = 0
        self._earlier_usage = Usage(usd=None)
        """The usage of all requests but the last."""
        self._last_usage = Usage(usd=None)
        self._model = ""
        self._error = ""
        self._result: Mapping[str, JsonValue] | None = None

    def line(self, text: str) -> Iterable[Activity]:
        event = parse_object(text) or {}
        match get_text(event, "type"), get_text(event, "subtype"):
            case "assistant", _:
                return list(self._read_message(event))
            case "user", _:
                return list(self._read_results(event))
            case "system", "init":
                self._model = shorten_name(get_text(event, "model"))
            case "system", "api_retry":
                status = get_count(event, "error_status")
                error = shorten(get_text(event, "error"))
                detail = f"{error} ({status})" if status else error
                return [Activity(kind=ActivityKind.NOTE, text=f"the provider failed, it asks again: {detail}")]
            case "result", _:
                self._result = event
        return ()

    def is_final(self, exit_code: int | None) -> ProgramResult:
        result = self._result
        if result is None:
            fault = Fault(kind=FaultKind.FAILED, why="it ended without a result") if exit_code == 0 else None
            return ProgramResult("", self._earlier_usage + self._last_usage, self._model, fault)
        return ProgramResult(
            _extract_answer(result), self._compute_usage(result), self._model, self._find_fault(result)
        )

    def _read_message(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        self._error = shorten_name(get_text(event, "error"))
        self._count_usage(event)
        text_kind = ActivityKind.NOTE if self._error else ActivityKind.SAID
        for part in get_objects(event, "message", "content"):
            match get_text(part, "type"):
                case "text":
                    yield Activity(kind=text_kind, text=shorten(get_text(part, "text")))
                case "thinking":
                    yield Activity(kind=ActivityKind.THOUGHT, text=shorten(get_text(part, "thinking")))
                case "tool_use":
                    activity = _read_call(part)
                    self._calls.add(get_text(part, "id"), activity.name, activity.paths)
                    yield activity

    def _read_results(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        refused = {
            get_text(meta, "id")
            for meta in get_objects(event, "tool_result_meta")
            if get_text(meta, "permission_decision", "decision") == "reject"
        }
        for part in get_objects(event, "message", "content"):
            if get_text(part, "type") == "tool_result":
                call = get_text(part, "tool_use_id")
                yield _read_outcome(part, self._calls.get(call), refused=call in refused)

    def _count_usage(self, event: Mapping[str, JsonValue]) -> None:
        """Count each request once, although its answer arrives in several consecutive events."""
        if self._error:
            return
        request = shorten_name(get_text(event, "message", "id"))
        if request != self._request:
            self._request, self._requests, self._earlier_usage = (
                request,
                self._requests + 1,
                self._earlier_usage + self._last_usage,
            )
        self._last_usage = _read_usage(event, "message", "usage")

    def _compute_usage(self, result: Mapping[str, JsonValue]) -> Usage:
        models = get_value(result, "modelUsage")
        bases = [get_text(model, "costBasis") for model in models.values()] if isinstance(models, dict) else []
        is_unknown_price = "unknown" in bases
        return _read_usage(result, "usage").model_copy(
            update={
                "requests": max(self._requests, 1),
                "usd": None if is_unknown_price else get_amount(result, "total_cost_usd"),
            }
        )

    def _find_fault(self, result: Mapping[str, JsonValue]) -> Fault | None:
        if get_value(result, "is_error") is not True:
            return None
        errors = get_value(result, "errors")
        messages = [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
        why = shorten(get_text(result, "result") or "\n".join(messages) or get_text(result, "subtype"))
        status = get_count(result, "api_error_status")
        kind = classify_status(status) if status else _KINDS.get(self._error, FaultKind.FAILED)
        if self._error == "authentication_failed":
            why += "\nLog in with `claude`, or set ANTHROPIC_API_KEY; see `proofstone backends`."
        return Fault(kind=kind, why=why)


def _read_call(part: Mapping[str, JsonValue]) -> Activity:
    paths = [get_text(part, "input", name) for name in ("file_path", "notebook_path", "path")]
    text = get_text(part, "input", "command") or get_text(part, "input", "pattern")
    name = shorten_name(get_text(part, "name"))
    return Activity(kind=ActivityKind.TOOL, name=name, text=shorten(text), paths=shorten_paths(*paths))


def _read_outcome(part: Mapping[str, JsonValue], call: RecordedCall, *, refused: bool) -> Activity:
    failed = get_value(part, "is_error") is True
    text = get_text(part, "content") or "\n".join(get_text(part, "text") for part in get_objects(part, "content"))
    if refused or (failed and "No such tool available" in text):
        text = text.removeprefix(f"PreToolUse:{call.tool} hook error: ")
        return Activity(kind=ActivityKind.REFUSED, name=call.tool, text=shorten(text), paths=call.paths)
    return Activity(kind=ActivityKind.RESULT, name=call.tool, text=shorten(text), paths=call.paths, ok=not failed)


def _extract_answer(result: Mapping[str, JsonValue]) -> str:
    """Return the structured answer if there is one, else the text. An answer that is nested too deeply counts as
    none."""
    structured = get_value(result, "structured_output")
    try:
        return get_text(result, "result") if structured is None else json.dumps(structured, ensure_ascii=False)
    except RecursionError:
        return ""


def _read_usage(event: Mapping[str, JsonValue], *path: str) -> Usage:
    counts = get_value(event, *path)
    read, written = get_count(counts, "cache_read_input_tokens"), get_count(counts, "cache_creation_input_tokens")
    return Usage(
        requests=1,
        input_tokens=get_count(counts, "input_tokens") + read + written,
        output_tokens=get_count(counts, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        usd=None,
    )


PRESET = Preset(
    name="claude",
    program="claude",
    install="npm install -g @anthropic-ai/claude-code (for acp: also @zed-industries/claude-agent-acp)",
    minimum="2.1.0",
    vendor="anthropic",
    invoke=invoke,
    stream=ClaudeStream,
    limit=EditLimit.PATHS,
    limit_description="Proofstone's PreToolUse hook decides every edit, and the model sees its reason",
    hosts=("api.anthropic.com", "platform.claude.com"),
    keys=(
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_CUSTOM_HEADERS",
        "CLAUDE_CODE_MAX_RETRIES",
    ),
    login=(".claude",),
    login_markers=(".claude/.credentials.json",),
    startup_files=(
        ".claude/settings.json", ".claude/settings.local.json", ".claude/remote-settings.json",
        ".claude/policy-limits.json", ".claude/CLAUDE.md", ".claude/rules", ".claude/hooks", ".claude/plugins",
        ".claude/commands", ".claude/agents", ".claude/skills", ".claude/output-styles", ".claude/workflows",
        ".claude/scheduled_tasks.json", ".claude/keybindings.json", ".claude/local", ".claude/.config.json",
        ".claude/agent-memory", ".claude/memory", ".claude/loop.md", ".claude/daemon.json", ".claude/jobs",
        ".claude/cowork_plugins", ".claude/routines",
    ),
    renewable_files=(".claude/.credentials.json*", ".claude/.oauth_refresh.lock*"),
    acp=invoke_acp,
    acp_program="claude-agent-acp",
    acp_mode="default",
    has_schema_option=True,
    known_problems=(
        "It ends with exit code 0 and \"success\" when its edits were refused: only the diff counts.",
        "The hook does not check shell commands: only the diff shows what they write.",
        "CLAUDE.md and settings of the project are not loaded (with `acp:` they are); your own are.",
        "If your organisation's policy allows only managed hooks, the hook is off and every edit is denied.",
        "The price is the list price, even if you have a subscription.",
        "With `acp:`, it does not ask if a permission rule of yours or of the project allows edits.",
    ),
)  # fmt: skip
