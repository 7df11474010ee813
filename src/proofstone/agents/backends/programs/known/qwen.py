"""Qwen Code: `qwen`.

Our hook (`scope_hook`) decides its edits. The hook is set in the system settings, which override those of the user and
the project. If the hook cannot run, nothing is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import Calls, hook_command, hook_files, named, paths_of
from proofstone.agents.backends.programs.lines import (
    count_at,
    fields,
    kind_of_status,
    objects_at,
    relative,
    shown,
    text_at,
    value_at,
)
from proofstone.agents.backends.programs.preset import Errand, Final, Invocation, Limit, Preset
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


def invoke(errand: Errand) -> Invocation:
    schema = () if errand.schema is None else ("--json-schema", json.dumps(errand.schema))
    return Invocation(
        (*_build_arguments(errand), "--output-format", "stream-json", "--approval-mode", "yolo", *schema),
        _VARIABLES,
        stdin=errand.prompt,
        handed=_build_files(errand),
    )


def acp(errand: Errand) -> Invocation:
    """Build the command line with which the client is asked about every edit and every command."""
    settings = {"QWEN_CODE_SYSTEM_SETTINGS_PATH": json.dumps(_SETTINGS)}
    return Invocation(("--acp", *_build_arguments(errand)), _VARIABLES, handed=settings)


def _build_arguments(errand: Errand) -> tuple[str, ...]:
    auth_type = next((method for key, method in _AUTHENTICATIONS.items() if errand.variables.get(key)), "")
    excluded = (*_FETCHING, *(() if errand.scope else _EDITING), *(() if errand.may_run else _RUNNING))
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


def _build_files(errand: Errand) -> Mapping[str, str]:
    hook: JsonValue = {
        "matcher": f"^({'|'.join(_EDITING)})$",
        # Any exit code but 0 and 2 would allow the edit.
        "hooks": [{"type": "command", "command": f"({hook_command()}) || exit 2", "timeout": 20_000}],
    }
    settings = json.dumps({**_SETTINGS, "hooks": {"PreToolUse": [hook]}})
    return {"QWEN_CODE_SYSTEM_SETTINGS_PATH": settings, **hook_files(errand)}


class QwenStream:
    def __init__(self) -> None:
        self._root = ""
        self._model = ""
        self._text = ""
        self._calls = Calls()
        self._result: Mapping[str, JsonValue] = {}

    def line(self, text: str) -> Iterable[Activity]:
        event = fields(text)
        return tuple(self._read_event(event)) if event is not None else ()

    def _read_event(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        match text_at(event, "type"):
            case "system":
                self._root = shown(text_at(event, "cwd")) or self._root
                self._model = named(text_at(event, "model")) or self._model
            case "assistant":
                yield from self._read_message(event)
            case "user":
                for part in objects_at(event, "message", "content"):
                    if text_at(part, "type") == "tool_result":
                        yield self._read_result(part)
            case "result":
                self._result = event

    def _read_message(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        for part in objects_at(event, "message", "content"):
            match text_at(part, "type"):
                case "text" if text := text_at(part, "text").strip():
                    self._text = text
                    yield Activity(kind=ActivityKind.SAID, text=shown(text))
                case "thinking" if text := text_at(part, "thinking").strip():
                    yield Activity(kind=ActivityKind.THOUGHT, text=shown(text))
                case "tool_use":
                    yield self._read_call(part)

    def _read_call(self, part: Mapping[str, JsonValue]) -> Activity:
        name, arguments = named(text_at(part, "name")), value_at(part, "input")
        path = text_at(arguments, "file_path") or text_at(arguments, "notebook_path") or text_at(arguments, "path")
        paths = tuple(relative(path_name, self._root or "/") for path_name in paths_of(path))
        self._calls.add(text_at(part, "id"), name, paths)
        return Activity(kind=ActivityKind.TOOL, name=name, paths=paths, text=shown(text_at(arguments, "command")))

    def _read_result(self, part: Mapping[str, JsonValue]) -> Activity:
        call = self._calls.of(text_at(part, "tool_use_id"))
        text = text_at(part, "content")
        failed = value_at(part, "is_error") is True
        if failed and (text.startswith(_DECLINED) or any(phrase in text for phrase in _HOOK_REFUSALS)):
            return Activity(kind=ActivityKind.REFUSED, name=call.tool, paths=call.paths, text=shown(text))
        return Activity(kind=ActivityKind.RESULT, name=call.tool, paths=call.paths, text=shown(text), ok=not failed)

    def final(self, exit_code: int | None) -> Final:
        """Return the result. The exit code is no help: it is 0 even after an error of the provider."""
        usage = Usage(
            requests=max(1, count_at(self._result, "num_turns")),
            input_tokens=count_at(self._result, "usage", "input_tokens"),
            output_tokens=count_at(self._result, "usage", "output_tokens"),
            cache_read_tokens=count_at(self._result, "usage", "cache_read_input_tokens"),
            usd=None,
        )
        text = text_at(self._result, "result").strip() or self._text
        return Final(text, usage, self._model, self._find_fault(text))

    def _find_fault(self, text: str) -> Fault | None:
        """Find the fault in the text: the program reports an error message of the provider as a success."""
        why = shown(text_at(self._result, "error", "message"))
        if any(why.startswith(phrase) for phrase in _NO_LOGIN):
            return Fault(kind=FaultKind.DENIED, why=f"{why} Or start `qwen` and log in.")
        if why.startswith(_NO_STRUCTURE):
            return Fault(kind=FaultKind.MALFORMED, why=why)
        if match := _API_ERROR.match(why or text):
            status = int(match[1] or 0)
            return Fault(kind=kind_of_status(status) if status else FaultKind.UNAVAILABLE, why=shown(why or text))
        if value_at(self._result, "is_error") is True:
            return Fault(kind=FaultKind.FAILED, why=shown(why or text) or "it reported a failure without a reason")
        return None


PRESET = Preset(
    name="qwen",
    program="qwen",
    install="npm install -g @qwen-code/qwen-code",
    minimum="0.15.0",
    invoke=invoke,
    stream=QwenStream,
    limit=Limit.PATHS,
    limits="a hook before each edit, in settings that override all others; if the hook cannot run, edits are denied",
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
    logged_in=(".qwen/oauth_creds.json", ".qwen/.env", ".qwen/settings.json"),
    startup=(
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
    renewed=(".qwen/oauth_creds.json*", ".qwen/oauth_creds.lock"),
    acp=acp,
    acp_mode="default",
    schema=True,
    troubles=(
        "It reports errors of the provider and failed commands as a success.",
        "It retries a provider that fails or limits the rate for a minute and a half.",
        "It edits only files that it has read in the same run.",
        "Settings and servers in the project's own `.qwen` apply.",
    ),
)
