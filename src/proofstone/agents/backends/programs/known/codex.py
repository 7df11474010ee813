"""Codex: `codex exec`, and the adapter `codex-acp`.

Two limits apply: our hook (`scope_hook`) decides its patches, and its own sandbox keeps its commands in the work tree.
Root cannot set up that sandbox inside ours (a user namespace without capabilities may not map root again), and every
command of the agent would fail. So for root it is off, and ours is the only one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import (
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
    parse_object,
    shorten,
)
from proofstone.agents.backends.programs.preset import EditLimit, Invocation, LaunchRequest, Preset, ProgramResult
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Assurance, Usage

_OFFLINE_SETTINGS = (
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "features.apps=false",
    "features.plugins=false",
    "features.remote_plugin=false",
    "features.daemon_auto_start=false",
    "features.unbounded_connection_retries=false",
    'web_search="disabled"',
)
"""Together they keep it off the network, except for its model. Without any one of them it waits for hosts that it
cannot reach."""

_TRUST_OPTION = "--dangerously-bypass-hook-trust"
"""Without it, the program would ask a person about an unknown hook. It warns about the option twice in every run."""
_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_FAULT_PHRASES: tuple[tuple[str, FaultKind], ...] = (
    ("Missing environment variable", FaultKind.DENIED),
    ("log out and sign in", FaultKind.DENIED),
    ("not supported when using Codex", FaultKind.DENIED),
    ("does not exist", FaultKind.DENIED),
    ("context_length_exceeded", FaultKind.REJECTED),
    ("context window", FaultKind.REJECTED),
    ("high demand", FaultKind.UNAVAILABLE),
    ("usage limit", FaultKind.UNAVAILABLE),
    ("Connection failed", FaultKind.UNAVAILABLE),
    ("stream disconnected", FaultKind.UNAVAILABLE),
    ("timed out", FaultKind.UNAVAILABLE),
    ("timeout", FaultKind.UNAVAILABLE),
)
"""It has no error codes, only sentences."""


def invoke(errand: LaunchRequest) -> Invocation:
    hook = f'[{{matcher="Bash|apply_patch",hooks=[{{type="command",command={json.dumps(build_hook_command())}}}]}}]'
    arguments = [
        "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules",
        "-C", str(errand.root), *_build_sandbox_settings(errand),
        _TRUST_OPTION, *_build_options(f"hooks.PreToolUse={hook}"),
        *_build_options(*_OFFLINE_SETTINGS), *_build_provider_settings(errand),
    ]  # fmt: skip
    if errand.model:
        arguments += [f"--model={errand.model}"]
    return Invocation((*arguments, "-"), stdin=errand.prompt, files=build_hook_files(errand))


def invoke_acp(errand: LaunchRequest) -> Invocation:
    """Build the command line. It asks because of its approval policy, which any session mode would override."""
    model = _build_options(f"model={json.dumps(errand.model)}") if errand.model else []
    policy = _build_options('approval_policy="untrusted"')
    return Invocation(
        (
            *policy,
            *_build_sandbox_settings(errand),
            *_build_options(*_OFFLINE_SETTINGS),
            *_build_provider_settings(errand),
            *model,
        )
    )


def _build_sandbox_settings(errand: LaunchRequest) -> list[str]:
    """Return the sandbox as settings: `-s` could not be given a second time in the user's `arguments`."""
    if errand.level is Assurance.LANDLOCK or (errand.level is Assurance.BUBBLEWRAP and os.geteuid() == 0):
        return _build_options('sandbox_mode="danger-full-access"')
    mode = "workspace-write" if errand.scope else "read-only"
    tree_only = ("exclude_slash_tmp=true", "exclude_tmpdir_env_var=true")
    return _build_options(f'sandbox_mode="{mode}"', *(f"sandbox_workspace_write.{setting}" for setting in tree_only))


def _build_options(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("-c", setting)]


def _build_provider_settings(errand: LaunchRequest) -> list[str]:
    """Return the provider as settings: there is no variable for its URL."""
    url = errand.variables.get("OPENAI_BASE_URL")
    if not url:
        return []
    key = next((name for name in _KEYS if errand.variables.get(name)), "")
    secret = f',env_key="{key}"' if key else ""
    provider = f'{{name="given",base_url={json.dumps(url)},wire_api="responses"{secret}}}'
    return _build_options('model_provider="given"', f"model_providers.given={provider}")


class CodexStream:
    def __init__(self) -> None:
        self._text = ""
        self._usage = Usage(requests=1, usd=None)
        self._error = ""
        self._failed = False

    def line(self, text: str) -> Iterable[Activity]:
        event = parse_object(text) or {}
        match get_text(event, "type"):
            case "item.started":
                return _read_started(get_value(event, "item"))
            case "item.completed":
                return self._read_item(get_value(event, "item"))
            case "turn.completed":
                self._usage += _read_usage(get_value(event, "usage"))
                self._failed = False
            case "turn.failed":
                self._error = get_text(event, "error", "message") or self._error
                self._failed = True
            case "error":
                self._error = get_text(event, "message")
                return [Activity(kind=ActivityKind.NOTE, text=shorten(self._error))]
        return ()

    def is_final(self, exit_code: int | None) -> ProgramResult:
        has_failed = self._failed or (bool(exit_code) and bool(self._error))
        return ProgramResult(self._text, self._usage, fault=_build_fault(self._error) if has_failed else None)

    def _read_item(self, item: JsonValue) -> Iterable[Activity]:
        match get_text(item, "type"):
            case "agent_message":
                self._text = get_text(item, "text")
                return [Activity(kind=ActivityKind.SAID, text=shorten(self._text))]
            case "reasoning":
                return [Activity(kind=ActivityKind.THOUGHT, text=shorten(get_text(item, "text")))]
            case "error":
                text = get_text(item, "message")
                return [] if _TRUST_OPTION in text else [Activity(kind=ActivityKind.NOTE, text=shorten(text))]
        return _read_completed(item)


def _read_started(item: JsonValue) -> list[Activity]:
    match get_text(item, "type"):
        case "command_execution":
            return [Activity(kind=ActivityKind.TOOL, name="shell", text=shorten(get_text(item, "command")))]
        case "file_change":
            return [Activity(kind=ActivityKind.TOOL, name="apply_patch", paths=_list_changed_paths(item))]
        case "mcp_tool_call":
            server = shorten(get_text(item, "server"))
            return [Activity(kind=ActivityKind.TOOL, name=shorten_name(get_text(item, "tool")), text=server)]
    return []


def _read_completed(item: JsonValue) -> list[Activity]:
    ok = get_text(item, "status") == "completed"
    match get_text(item, "type"):
        case "command_execution":
            text = shorten(get_text(item, "aggregated_output"))
            return [Activity(kind=ActivityKind.RESULT, name="shell", text=text, ok=ok)]
        case "file_change":
            return [Activity(kind=ActivityKind.RESULT, name="apply_patch", paths=_list_changed_paths(item), ok=ok)]
        case "mcp_tool_call":
            return [Activity(kind=ActivityKind.RESULT, name=shorten_name(get_text(item, "tool")), ok=ok)]
    return []


def _list_changed_paths(item: JsonValue) -> tuple[str, ...]:
    return shorten_paths(*(get_text(change, "path") for change in get_objects(item, "changes")))


def _read_usage(counts: JsonValue) -> Usage:
    return Usage(
        input_tokens=get_count(counts, "input_tokens"),
        output_tokens=get_count(counts, "output_tokens"),
        cache_read_tokens=get_count(counts, "cached_input_tokens"),
        cache_write_tokens=get_count(counts, "cache_write_input_tokens"),
        usd=None,
    )


def _build_fault(error: str) -> Fault:
    why = shorten(get_text(parse_object(error) or {}, "error", "message") or error) or "it failed without a reason"
    if status := _STATUS.search(error):
        kind = classify_status(int(status.group(1)))
    else:
        kind = next((kind for phrase, kind in _FAULT_PHRASES if phrase in error), FaultKind.FAILED)
    if kind is FaultKind.DENIED:
        why += "\nLog in with `codex login`, or set CODEX_API_KEY; see `proofstone backends`."
    return Fault(kind=kind, why=why)


PRESET = Preset(
    name="codex",
    program="codex",
    install="npm install -g @openai/codex (for acp: also @zed-industries/codex-acp)",
    minimum="0.166.0",
    vendor="openai",
    invoke=invoke,
    stream=CodexStream,
    limit=EditLimit.PATHS,
    limit_description="Proofstone's PreToolUse hook decides patches; its own sandbox keeps commands in the work "
    "tree, except for "
    "root",
    hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
    keys=("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    login=(".codex",),
    login_markers=(".codex/auth.json",),
    startup_files=(
        ".codex/config.toml", ".codex/managed_config.toml", ".codex/requirements.toml", ".codex/hooks.json",
        ".codex/hooks", ".codex/rules", ".codex/AGENTS.md", ".codex/AGENTS.override.md", ".codex/prompts",
        ".codex/skills", ".codex/plugins", ".codex/agents", ".codex/automations", ".codex/packages",
        ".codex/.env",
    ),
    renewable_files=(".codex/auth.json*", ".codex/auth.lock"),
    acp=invoke_acp,
    acp_program="codex-acp",
    known_problems=(
        "It ends with exit code 0 when a patch was refused, and its output does not say so: only the diff counts.",
        "It reads files with commands, so it runs commands in every role. The hook does not check what they write.",
        "Root cannot set up its sandbox inside Proofstone's: for root it is off, and a reader's commands can write.",
        "Under Landlock, and for root, its own sandbox cannot be set up and is off; Proofstone's is the only one.",
        "It keeps helpers in HOME. If HOME is in the temporary folder, it refuses to, and its commands fail.",
        "Your config.toml is not loaded: name another provider in OPENAI_BASE_URL, or in `arguments` in your settings.",
        "OPENAI_API_KEY works only together with OPENAI_BASE_URL; otherwise use `codex login` or CODEX_API_KEY.",
        "The prompt asks it for JSON: its schema option accepts only OpenAI's strict schemas.",
        "With `acp:` your config.toml is loaded, and a refusal ends its turn.",
    ),
)  # fmt: skip
