"""Claude Code: `claude -p`, and the adapter `claude-agent-acp`.

Its edits are decided by a hook of ours (`scope_hook`), by the one rule for patterns. The mode in which it runs denies
whatever nothing allows, so that a hook which cannot run lets nothing through. The project's own settings are not
loaded: their hooks would run in the middle of the task, and their permissions are not the task's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import Call, Calls, hook_command, hook_files, named, paths_of
from proofstone.agents.backends.programs.lines import (
    amount_at,
    count_at,
    fields,
    kind_of_status,
    objects_at,
    shown,
    text_at,
    value_at,
)
from proofstone.agents.backends.programs.preset import Errand, Final, Given, Invocation, Limit, Preset
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
"""Its ten take minutes, also for a key that is wrong; whether to ask again later is the engine's to say."""

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
"""By the program's own word for the error."""


def invoke(errand: Errand) -> Invocation:
    editing = _EDITING if errand.scope else ()
    running = _RUNNING if errand.may_run else ()
    arguments: list[str | Given] = [
        "-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence",
        "--strict-mcp-config", "--disable-slash-commands",
        "--setting-sources", "user", "--settings", Given("PROOFSTONE_SETTINGS"),
        "--permission-mode", "dontAsk",
        "--tools", ",".join((*_READING, *editing, *running)),
        "--allowedTools", ",".join((*_READING, *running)),
    ]  # fmt: skip
    if errand.model:
        arguments += [f"--model={errand.model}"]
    if errand.schema is not None:
        arguments += ["--json-schema", json.dumps(errand.schema)]
    handed = {"PROOFSTONE_SETTINGS": _settings(), **hook_files(errand)}
    return Invocation(tuple(arguments), _variables(errand), stdin=errand.prompt, handed=handed)


def acp(errand: Errand) -> Invocation:
    """The adapter has no options; it takes the model from a variable."""
    model = {"ANTHROPIC_MODEL": errand.model} if errand.model else {}
    return Invocation((), {**_variables(errand), **model})


def _variables(errand: Errand) -> dict[str, str]:
    retries = {name: value for name, value in _RETRIES.items() if name not in errand.variables}
    return {**_QUIET, **retries}


def _settings() -> str:
    hook = {"matcher": "|".join(_EDITING), "hooks": [{"type": "command", "command": hook_command()}]}
    return json.dumps({"disableAllHooks": False, "hooks": {"PreToolUse": [hook]}})


class ClaudeStream:
    def __init__(self) -> None:
        self._calls = Calls()
        self._request: str | None = None
        self._requests = 0
        self._before = Usage(usd=None)
        """Of all requests but the last."""
        self._last = Usage(usd=None)
        self._model = ""
        self._error = ""
        self._result: Mapping[str, JsonValue] | None = None

    def line(self, text: str) -> Iterable[Activity]:
        event = fields(text) or {}
        match text_at(event, "type"), text_at(event, "subtype"):
            case "assistant", _:
                return list(self._turn(event))
            case "user", _:
                return list(self._returned(event))
            case "system", "init":
                self._model = named(text_at(event, "model"))
            case "system", "api_retry":
                status = count_at(event, "error_status")
                error = shown(text_at(event, "error"))
                told = f"{error} ({status})" if status else error
                return [Activity(kind=ActivityKind.NOTE, text=f"the provider failed, it asks again: {told}")]
            case "result", _:
                self._result = event
        return ()

    def final(self, exit_code: int | None) -> Final:
        told = self._result
        if told is None:
            fault = Fault(kind=FaultKind.FAILED, why="it ended without a result") if exit_code == 0 else None
            return Final("", self._before + self._last, self._model, fault)
        return Final(_answer(told), self._usage(told), self._model, self._fault(told))

    def _turn(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        self._error = named(text_at(event, "error"))
        self._count(event)
        said = ActivityKind.NOTE if self._error else ActivityKind.SAID
        for part in objects_at(event, "message", "content"):
            match text_at(part, "type"):
                case "text":
                    yield Activity(kind=said, text=shown(text_at(part, "text")))
                case "thinking":
                    yield Activity(kind=ActivityKind.THOUGHT, text=shown(text_at(part, "thinking")))
                case "tool_use":
                    activity = _tool(part)
                    self._calls.add(text_at(part, "id"), activity.name, activity.paths)
                    yield activity

    def _returned(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        refused = {
            text_at(meta, "id")
            for meta in objects_at(event, "tool_result_meta")
            if text_at(meta, "permission_decision", "decision") == "reject"
        }
        for part in objects_at(event, "message", "content"):
            if text_at(part, "type") == "tool_result":
                call = text_at(part, "tool_use_id")
                yield _outcome(part, self._calls.of(call), refused=call in refused)

    def _count(self, event: Mapping[str, JsonValue]) -> None:
        """Each request once, though its answer comes in several events, one after the other."""
        if self._error:
            return
        request = named(text_at(event, "message", "id"))
        if request != self._request:
            self._request, self._requests, self._before = request, self._requests + 1, self._before + self._last
        self._last = _usage_at(event, "message", "usage")

    def _usage(self, told: Mapping[str, JsonValue]) -> Usage:
        models = value_at(told, "modelUsage")
        bases = [text_at(model, "costBasis") for model in models.values()] if isinstance(models, dict) else []
        guessed = "unknown" in bases
        return _usage_at(told, "usage").model_copy(
            update={
                "requests": max(self._requests, 1),
                "usd": None if guessed else amount_at(told, "total_cost_usd"),
            }
        )

    def _fault(self, told: Mapping[str, JsonValue]) -> Fault | None:
        if value_at(told, "is_error") is not True:
            return None
        errors = value_at(told, "errors")
        listed = [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
        why = shown(text_at(told, "result") or "\n".join(listed) or text_at(told, "subtype"))
        status = count_at(told, "api_error_status")
        kind = kind_of_status(status) if status else _KINDS.get(self._error, FaultKind.FAILED)
        if self._error == "authentication_failed":
            why += "\nLog in with `claude`, or set ANTHROPIC_API_KEY; see `proofstone backends`."
        return Fault(kind=kind, why=why)


def _tool(part: Mapping[str, JsonValue]) -> Activity:
    paths = [text_at(part, "input", name) for name in ("file_path", "notebook_path", "path")]
    words = text_at(part, "input", "command") or text_at(part, "input", "pattern")
    name = named(text_at(part, "name"))
    return Activity(kind=ActivityKind.TOOL, name=name, text=shown(words), paths=paths_of(*paths))


def _outcome(part: Mapping[str, JsonValue], call: Call, *, refused: bool) -> Activity:
    failed = value_at(part, "is_error") is True
    words = text_at(part, "content") or "\n".join(text_at(item, "text") for item in objects_at(part, "content"))
    if refused or (failed and "No such tool available" in words):
        words = words.removeprefix(f"PreToolUse:{call.tool} hook error: ")
        return Activity(kind=ActivityKind.REFUSED, name=call.tool, text=shown(words), paths=call.paths)
    return Activity(kind=ActivityKind.RESULT, name=call.tool, text=shown(words), paths=call.paths, ok=not failed)


def _answer(told: Mapping[str, JsonValue]) -> str:
    """In the form that was asked for, where it has one; too deep a form is none."""
    form = value_at(told, "structured_output")
    try:
        return text_at(told, "result") if form is None else json.dumps(form, ensure_ascii=False)
    except RecursionError:
        return ""


def _usage_at(event: Mapping[str, JsonValue], *path: str) -> Usage:
    used = value_at(event, *path)
    read, written = count_at(used, "cache_read_input_tokens"), count_at(used, "cache_creation_input_tokens")
    return Usage(
        requests=1,
        input_tokens=count_at(used, "input_tokens") + read + written,
        output_tokens=count_at(used, "output_tokens"),
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
    limit=Limit.PATHS,
    limits="a PreToolUse hook of Proofstone's decides every edit, and its reason reaches the model",
    hosts=("api.anthropic.com", "platform.claude.com"),
    keys=(
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_CUSTOM_HEADERS",
        "CLAUDE_CODE_MAX_RETRIES",
    ),
    login=(".claude",),
    logged_in=(".claude/.credentials.json",),
    startup=(
        ".claude/settings.json", ".claude/settings.local.json", ".claude/remote-settings.json",
        ".claude/policy-limits.json", ".claude/CLAUDE.md", ".claude/rules", ".claude/hooks", ".claude/plugins",
        ".claude/commands", ".claude/agents", ".claude/skills", ".claude/output-styles", ".claude/workflows",
        ".claude/scheduled_tasks.json", ".claude/keybindings.json", ".claude/local", ".claude/.config.json",
        ".claude/agent-memory", ".claude/memory", ".claude/loop.md", ".claude/daemon.json", ".claude/jobs",
        ".claude/cowork_plugins", ".claude/routines",
    ),
    renewed=(".claude/.credentials.json*", ".claude/.oauth_refresh.lock*"),
    acp=acp,
    acp_program="claude-agent-acp",
    acp_mode="default",
    schema=True,
    troubles=(
        "It ends with exit code 0 and \"success\" when its edits were refused: only the diff counts.",
        "A shell command is not bound by the hook: what it writes is seen in the diff only.",
        "CLAUDE.md and the settings of the project are not loaded (with `acp:` they are); those of the person are.",
        "A policy of the organisation that allows managed hooks only switches the hook off: every edit is then denied.",
        "The price is its own list price, also where a subscription pays.",
        "With `acp:`, a permission rule of the person's or the project's that allows edits keeps it from asking.",
    ),
)  # fmt: skip
