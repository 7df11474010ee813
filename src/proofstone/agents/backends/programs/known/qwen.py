"""Qwen Code: `qwen`.

Our hook (`scope_hook`) decides its edits. The hook is set in the system settings, which override those of the user and
the project. If the hook cannot run, nothing is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import (
    RecordedCalls,
    build_hook_command,
    build_hook_files,
    shorten_name,
    shorten_paths,
)
from proofstone.agents.backends.programs.lines import (
    classify_status,
    get_count,
    get_objects,
    get_text,
    get_value,
    make_relative,
    parse_object,
    shorten,
)
from proofstone.agents.backends.programs.preset import EditLimit, Invocation, LaunchRequest, Preset, ProgramResult
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_EDITING = ("edit", "write_file", "notebook_edit")
_RUNNING = ("run_shell_command", "monitor")
_FETCHING = ("web_fetch",)
_RETRIES = 0
"""Retries on top of the seven attempts that it always makes, which take a minute and a half; its default goes on for an
hour. The engine decides whether to ask again."""

_AUTHENTICATIONS = {"OPENAI_API_KEY": "openai", "ANTHROPIC_API_KEY": "anthropic", "GEMINI_API_KEY": "gemini"}

_API_ERROR = re.compile(r"^\[API Error: (?:(\d{3})\b)?", re.MULTILINE)
_NO_LOGIN = ("No auth type is selected", "Missing API key")
_NO_STRUCTURE = "Model produced plain text"
_DECLINED = "Qwen Code requires permission"
_HOOK_REFUSALS = ("is not yours to change", "It is not clear which file")
"""Phrases of `scope_hook`."""


def invoke(errand: LaunchRequest) -> Invocation:
    schema = () if errand.schema is None else ("--json-schema", json.dumps(errand.schema))
    return Invocation(
        (*_build_arguments(errand), "--output-format", "stream-json", "--approval-mode", "yolo", *schema),
        _VARIABLES,
        stdin=errand.prompt,
        files=_build_files(errand),
    )


def invoke_acp(errand: LaunchRequest) -> Invocation:
    """Build the command line with which the client is asked about every edit and every command."""
    settings = {"QWEN_CODE_SYSTEM_SETTINGS_PATH": json.dumps(_SETTINGS)}
    return Invocation(("--acp", *_build_arguments(errand)), _VARIABLES, files=settings)


def _build_arguments(errand: LaunchRequest) -> tuple[str, ...]:
    auth_type = next((method for key, method in _AUTHENTICATIONS.items() if errand.variables.get(key)), "")
    excluded = (*_FETCHING, *(() if errand.scope else _EDITING), *(() if errand.can_run else _RUNNING))
    return (
        *("--chat-recording", "false", "--extensions", "none", "--exclude-tools", ",".join(excluded)),
        *(("--auth-type", auth_type) if auth_type else ()),
        *((f"--model={errand.model}",) if errand.model else ()),
    )


_VARIABLES = {"QWEN_CODE_NO_RELAUNCH": "true", "QWEN_TELEMETRY_ENABLED": "false", "NO_COLOR": "1"}

_SETTINGS: Mapping[str, JsonValue] = {
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},  # these would ask the model unseen
    "model": {"generationConfig": {"maxRetries": _RETRIES}},
    "disableAllHooks": False,
}


def _build_files(errand: LaunchRequest) -> Mapping[str, str]:
    hook: JsonValue = {
        "matcher": f"^({'|'.join(_EDITING)})$",
        # Any exit code but 0 and 2 would allow the edit.
        "hooks": [{"type": "command", "command": f"({build_hook_command()}) || exit 2", "timeout": 20_000}],
    }
    settings = json.dumps({**_SETTINGS, "hooks": {"PreToolUse": [hook]}})
    return {"QWEN_CODE_SYSTEM_SETTINGS_PATH": settings, **build_hook_files(errand)}


class QwenStream:
    def __init__(self) -> None:
        self._root = ""
        self._model = ""
        self._text = ""
        self._calls = RecordedCalls()
        self._result: Mapping[str, JsonValue] = {}

    def line(self, text: str) -> Iterable[Activity]:
        event = parse_object(text)
        return tuple(self._read_event(event)) if event is not None else ()

    def _read_event(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        match get_text(event, "type"):
            case "system":
                self._root = shorten(get_text(event, "cwd")) or self._root
                self._model = shorten_name(get_text(event, "model")) or self._model
            case "assistant":
                yield from self._read_message(event)
            case "user":
                for part in get_objects(event, "message", "content"):
                    if get_text(part, "type") == "tool_result":
                        yield self._read_result(part)
            case "result":
                self._result = event

    def _read_message(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        for part in get_objects(event, "message", "content"):
            match get_text(part, "type"):
                case "text" if text := get_text(part, "text").strip():
                    self._text = text
                    yield Activity(kind=ActivityKind.SAID, text=shorten(text))
                case "thinking" if text := get_text(part, "thinking").strip():
                    yield Activity(kind=ActivityKind.THOUGHT, text=shorten(text))
                case "tool_use":
                    yield self._read_call(part)

    def _read_call(self, part: Mapping[str, JsonValue]) -> Activity:
        name, arguments = shorten_name(get_text(part, "name")), get_value(part, "input")
        path = get_text(arguments, "file_path") or get_text(arguments, "notebook_path") or get_text(arguments, "path")
        paths = tuple(make_relative(path_name, self._root or "/") for path_name in shorten_paths(path))
        self._calls.add(get_text(part, "id"), name, paths)
        return Activity(kind=ActivityKind.TOOL, name=name, paths=paths, text=shorten(get_text(arguments, "command")))

    def _read_result(self, part: Mapping[str, JsonValue]) -> Activity:
        call = self._calls.get(get_text(part, "tool_use_id"))
        text = get_text(part, "content")
        failed = get_value(part, "is_error") is True
        if failed and (text.startswith(_DECLINED) or any(phrase in text for phrase in _HOOK_REFUSALS)):
            return Activity(kind=ActivityKind.REFUSED, name=call.tool, paths=call.paths, text=shorten(text))
        return Activity(kind=ActivityKind.RESULT, name=call.tool, paths=call.paths, text=shorten(text), ok=not failed)

    def is_final(self, exit_code: int | None) -> ProgramResult:
        """Return the result. The exit code is no help: it is 0 even after an error of the provider."""
        usage = Usage(
            requests=max(1, get_count(self._result, "num_turns")),
            input_tokens=get_count(self._result, "usage", "input_tokens"),
            output_tokens=get_count(self._result, "usage", "output_tokens"),
            cache_read_tokens=get_count(self._result, "usage", "cache_read_input_tokens"),
            usd=None,
        )
        text = get_text(self._result, "result").strip() or self._text
        return ProgramResult(text, usage, self._model, self._find_fault(text))

    def _find_fault(self, text: str) -> Fault | None:
        """Find the fault in the text: the program reports an error message of the provider as a success."""
        why = shorten(get_text(self._result, "error", "message"))
        if any(why.startswith(phrase) for phrase in _NO_LOGIN):
            return Fault(kind=FaultKind.DENIED, why=f"{why} Or start `qwen` and log in.")
        if why.startswith(_NO_STRUCTURE):
            return Fault(kind=FaultKind.MALFORMED, why=why)
        if match := _API_ERROR.match(why or text):
            status = int(match[1] or 0)
            return Fault(kind=classify_status(status) if status else FaultKind.UNAVAILABLE, why=shorten(why or text))
        if get_value(self._result, "is_error") is True:
            return Fault(kind=FaultKind.FAILED, why=shorten(why or text) or "it reported a failure without a reason")
        return None


PRESET = Preset(
    name="qwen",
    program="qwen",
    install="npm install -g @qwen-code/qwen-code",
    minimum="0.15.0",
    invoke=invoke,
    stream=QwenStream,
    limit=EditLimit.PATHS,
    limit_description="a hook before each edit, in settings that override all others; if the hook cannot run, "
    "edits are denied",
    hosts=(
        "chat.qwen.ai",
        "dashscope.aliyuncs.com",
        "dashscope-intl.aliyuncs.com",
        "dashscope-us.aliyuncs.com",
        "coding.dashscope.aliyuncs.com",
        "coding-intl.dashscope.aliyuncs.com",
        "api.openai.com",
        "openrouter.ai",
    ),
    keys=(
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_MODEL",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL",
        "GEMINI_API_KEY",
        "GEMINI_MODEL",
        "DASHSCOPE_API_KEY",
        "OPENROUTER_API_KEY",
    ),
    login=(".qwen",),
    login_markers=(".qwen/oauth_creds.json", ".qwen/.env", ".qwen/settings.json"),
    startup_files=(
        ".qwen/settings.json",
        ".qwen/.env",
        ".qwen/QWEN.md",
        ".qwen/AGENTS.md",
        ".qwen/memory.md",
        ".qwen/output-language.md",
        ".qwen/trustedFolders.json",
        ".qwen/agents",
        ".qwen/bin",
        ".qwen/channels",
        ".qwen/commands",
        ".qwen/extensions",
        ".qwen/hooks",
        ".qwen/locales",
        ".qwen/memories",
        ".qwen/rules",
        ".qwen/skills",
    ),
    renewable_files=(".qwen/oauth_creds.json*", ".qwen/oauth_creds.lock"),
    acp=invoke_acp,
    acp_mode="default",
    has_schema_option=True,
    known_problems=(
        "It reports errors of the provider and failed commands as a success.",
        "It retries a provider that fails or limits the rate for a minute and a half.",
        "It edits only files that it has read in the same run.",
        "Settings and servers in the project's own `.qwen` apply.",
    ),
)
