"""opencode: `opencode run`, and `opencode acp`.

It has permissions for the files that it may edit, with its own patterns, in which a star also matches across folders:
where a pattern has stars, they are wider than ours, never narrower. The project's configuration is not loaded, because
its permissions would be merged with these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import shorten_name, shorten_paths
from proofstone.agents.backends.programs.lines import (
    classify_status,
    get_amount,
    get_count,
    get_text,
    get_value,
    parse_object,
    shorten,
)
from proofstone.agents.backends.programs.preset import EditLimit, Invocation, LaunchRequest, Preset, ProgramResult
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_VARIABLES = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DB": ":memory:",
}
_PROVIDER_NAME = "given"
_REFUSED = "The user has specified a rule which prevents you"
"""The message with which it reports that a permission refused a call."""
_INVALID_TOOL = "invalid"
"""Its name for a tool that the model made up or may not use."""
_KINDS: Mapping[str, FaultKind] = {
    "ProviderAuthError": FaultKind.DENIED,
    "ContextOverflowError": FaultKind.REJECTED,
}
"""By its name for the error, if there is no status."""


def invoke(errand: LaunchRequest) -> Invocation:
    model = (f"--model={_build_model_name(errand)}",) if errand.model else ()
    edit = {
        "*": "deny",
        **{translated: "allow" for pattern in errand.scope for translated in _translate_pattern(pattern, errand.root)},
    }
    variables = {**_VARIABLES, "OPENCODE_CONFIG_CONTENT": _build_config(errand, edit, "allow")}
    return Invocation(("run", "--format", "json", "--pure", *model), variables, stdin=errand.prompt)


def invoke_acp(errand: LaunchRequest) -> Invocation:
    """Build the command line. It asks only where its configuration says so, and the client answers by the scope."""
    edit = {"*": "ask" if errand.scope else "deny"}
    variables = {**_VARIABLES, "OPENCODE_CONFIG_CONTENT": _build_config(errand, edit, "ask")}
    return Invocation(("acp", "--pure"), variables)


def _build_config(errand: LaunchRequest, edit: Mapping[str, str], bash_permission: str) -> str:
    config: dict[str, JsonValue] = {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,  # its own repository next to the login, with a copy of the work tree
        "permission": {
            "edit": dict(edit),
            "bash": bash_permission if errand.can_run else "deny",
            "external_directory": "deny",
            "webfetch": "deny",
            "question": "deny",
        },
    }
    if errand.model:
        config["model"] = _build_model_name(errand)
    if _uses_base_url(errand):
        config["provider"] = {_PROVIDER_NAME: _build_provider(errand)}
    return json.dumps(config)


def _translate_pattern(pattern: str, root: Path) -> Iterator[str]:
    """Translate one of our patterns into its own. A folder covers everything below it. Paths are relative to the root
    of the git repository or, without one, to the root of the file system."""
    plain = pattern.removeprefix("./").rstrip("/").replace("**/", "*").replace("**", "*")
    covers_all = plain in ("", ".")
    for prefix in ("", f"{root}/".lstrip("/")) if root.is_absolute() else ("",):
        if covers_all:
            yield f"{prefix}*"
        else:
            yield from (f"{prefix}{plain}", f"{prefix}{plain}/*")


def _build_model_name(errand: LaunchRequest) -> str:
    return f"{_PROVIDER_NAME}/{errand.model}" if _uses_base_url(errand) else errand.model


def _uses_base_url(errand: LaunchRequest) -> bool:
    """Return whether the model belongs to the URL in the user's variables. Other models are named `provider/model`."""
    return "/" not in errand.model and bool(errand.model) and bool(errand.variables.get("OPENAI_BASE_URL"))


def _build_provider(errand: LaunchRequest) -> dict[str, JsonValue]:
    key: dict[str, JsonValue] = {"apiKey": "{env:OPENAI_API_KEY}"} if errand.variables.get("OPENAI_API_KEY") else {}
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": _PROVIDER_NAME,
        "options": {"baseURL": errand.variables["OPENAI_BASE_URL"], **key},
        "models": {errand.model: {}},
    }


class OpencodeStream:
    def __init__(self) -> None:
        self._text = ""
        self._usage = Usage(usd=0.0)
        self._fault: Fault | None = None

    def line(self, text: str) -> Iterable[Activity]:
        event = parse_object(text) or {}
        part = get_value(event, "part")
        match get_text(event, "type"):
            case "text":
                self._text = get_text(part, "text")
                return [Activity(kind=ActivityKind.SAID, text=shorten(self._text))]
            case "reasoning":
                return [Activity(kind=ActivityKind.THOUGHT, text=shorten(get_text(part, "text")))]
            case "tool_use":
                return _read_call(part)
            case "step_finish":
                self._usage += _read_usage(part)
                self._fault = None
            case "error":
                self._fault = _build_fault(get_value(event, "error"))
                return [Activity(kind=ActivityKind.NOTE, text=self._fault.why)]
        return ()

    def is_final(self, exit_code: int | None) -> ProgramResult:
        usage = self._usage if self._usage.requests else Usage(requests=1, usd=None)
        return ProgramResult(self._text, usage, fault=self._fault)


def _read_call(part: JsonValue) -> list[Activity]:
    """Read a tool call. It is reported when it is over, with its arguments and its result."""
    name = shorten_name(get_text(part, "tool"))
    arguments = get_value(part, "state", "input")
    if name == _INVALID_TOOL:
        tool_name, why = shorten_name(get_text(arguments, "tool")), shorten(get_text(arguments, "error"))
        return [Activity(kind=ActivityKind.REFUSED, name=tool_name, text=why)]
    paths = shorten_paths(get_text(arguments, "filePath"), get_text(arguments, "path"))
    text = shorten(get_text(arguments, "command") or get_text(arguments, "pattern"))
    tool = Activity(kind=ActivityKind.TOOL, name=name, text=text, paths=paths)
    failed = get_text(part, "state", "status") == "error"
    output = get_text(part, "state", "error") if failed else get_text(part, "state", "output")
    if failed and _REFUSED in output:
        return [tool, Activity(kind=ActivityKind.REFUSED, name=name, text=shorten(output), paths=paths)]
    ok = not failed and not get_count(part, "state", "metadata", "exit")
    return [tool, Activity(kind=ActivityKind.RESULT, name=name, text=shorten(output), paths=paths, ok=ok)]


def _read_usage(part: JsonValue) -> Usage:
    read, written = get_count(part, "tokens", "cache", "read"), get_count(part, "tokens", "cache", "write")
    return Usage(
        requests=1,
        input_tokens=get_count(part, "tokens", "input") + read + written,
        output_tokens=get_count(part, "tokens", "output") + get_count(part, "tokens", "reasoning"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        usd=get_amount(part, "cost") or None,  # it reports 0 for a model whose price it does not know
    )


def _build_fault(error: JsonValue) -> Fault:
    name = get_text(error, "name")
    why = shorten(get_text(error, "data", "message") or name) or "it failed without a reason"
    status = get_count(error, "data", "statusCode")
    kind = classify_status(status) if status else _KINDS.get(name, FaultKind.FAILED)
    if status == 401 or name == "ProviderAuthError":
        why += "\nLog in with `opencode auth login`, or set the key of your provider; see `proofstone backends`."
    return Fault(kind=kind, why=why)


PRESET = Preset(
    name="opencode",
    program="opencode",
    install="npm install -g opencode-ai",
    minimum="1.18.0",
    invoke=invoke,
    stream=OpencodeStream,
    limit=EditLimit.PATHS,
    limit_description="its permissions for edits; where a pattern has stars, they are wider than Proofstone's",
    hosts=(
        "opencode.ai", "api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai",
    ),
    keys=(
        "OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY",
        "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
    ),
    login=(".local/share/opencode", ".config/opencode"),
    login_markers=(".local/share/opencode/auth.json",),
    startup_files=(
        ".config/opencode", ".local/share/opencode/bin", ".local/share/opencode/plugins",
        ".local/share/opencode/snapshot",
    ),
    renewable_files=(".local/share/opencode/auth.json*",),
    acp=invoke_acp,
    known_problems=(
        "It ends with exit code 0 when its edits were refused: only the diff counts.",
        "Its permissions do not apply to shell commands: only the diff shows what they write.",
        "It retries a provider that fails with 5xx for minutes, without any output.",
        "opencode.json and AGENTS.md of the project are not loaded; your own permissions are merged with Proofstone's.",
        "Models are named `provider/model`; one without a provider needs OPENAI_BASE_URL.",
        "Only a few providers can be reached unless you add the host of yours to `hosts`.",
        "With `acp:` it writes a file itself even if the client refused the write: only its permission request counts.",
    ),
)  # fmt: skip
