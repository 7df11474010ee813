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

from proofstone.agents.backends.programs.known.shared import named, paths_of
from proofstone.agents.backends.programs.lines import (
    amount_at,
    count_at,
    fields,
    kind_of_status,
    shown,
    text_at,
    value_at,
)
from proofstone.agents.backends.programs.preset import Errand, Final, Invocation, Limit, Preset
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


def invoke(errand: Errand) -> Invocation:
    model = (f"--model={_build_model_name(errand)}",) if errand.model else ()
    edit = {
        "*": "deny",
        **{translated: "allow" for pattern in errand.scope for translated in _translate_pattern(pattern, errand.root)},
    }
    variables = {**_VARIABLES, "OPENCODE_CONFIG_CONTENT": _build_config(errand, edit, "allow")}
    return Invocation(("run", "--format", "json", "--pure", *model), variables, stdin=errand.prompt)


def acp(errand: Errand) -> Invocation:
    """Build the command line. It asks only where its configuration says so, and the client answers by the scope."""
    edit = {"*": "ask" if errand.scope else "deny"}
    variables = {**_VARIABLES, "OPENCODE_CONFIG_CONTENT": _build_config(errand, edit, "ask")}
    return Invocation(("acp", "--pure"), variables)


def _build_config(errand: Errand, edit: Mapping[str, str], bash_permission: str) -> str:
    config: dict[str, JsonValue] = {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,  # its own repository next to the login, with a copy of the work tree
        "permission": {
            "edit": dict(edit),
            "bash": bash_permission if errand.may_run else "deny",
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


def _build_model_name(errand: Errand) -> str:
    return f"{_PROVIDER_NAME}/{errand.model}" if _uses_base_url(errand) else errand.model


def _uses_base_url(errand: Errand) -> bool:
    """Return whether the model belongs to the URL in the user's variables. Other models are named `provider/model`."""
    return "/" not in errand.model and bool(errand.model) and bool(errand.variables.get("OPENAI_BASE_URL"))


def _build_provider(errand: Errand) -> dict[str, JsonValue]:
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
        event = fields(text) or {}
        part = value_at(event, "part")
        match text_at(event, "type"):
            case "text":
                self._text = text_at(part, "text")
                return [Activity(kind=ActivityKind.SAID, text=shown(self._text))]
            case "reasoning":
                return [Activity(kind=ActivityKind.THOUGHT, text=shown(text_at(part, "text")))]
            case "tool_use":
                return _read_call(part)
            case "step_finish":
                self._usage += _read_usage(part)
                self._fault = None
            case "error":
                self._fault = _build_fault(value_at(event, "error"))
                return [Activity(kind=ActivityKind.NOTE, text=self._fault.why)]
        return ()

    def final(self, exit_code: int | None) -> Final:
        usage = self._usage if self._usage.requests else Usage(requests=1, usd=None)
        return Final(self._text, usage, fault=self._fault)


def _read_call(part: JsonValue) -> list[Activity]:
    """Read a tool call. It is reported when it is over, with its arguments and its result."""
    name = named(text_at(part, "tool"))
    arguments = value_at(part, "state", "input")
    if name == _INVALID_TOOL:
        tool_name, why = named(text_at(arguments, "tool")), shown(text_at(arguments, "error"))
        return [Activity(kind=ActivityKind.REFUSED, name=tool_name, text=why)]
    paths = paths_of(text_at(arguments, "filePath"), text_at(arguments, "path"))
    text = shown(text_at(arguments, "command") or text_at(arguments, "pattern"))
    tool = Activity(kind=ActivityKind.TOOL, name=name, text=text, paths=paths)
    failed = text_at(part, "state", "status") == "error"
    output = text_at(part, "state", "error") if failed else text_at(part, "state", "output")
    if failed and _REFUSED in output:
        return [tool, Activity(kind=ActivityKind.REFUSED, name=name, text=shown(output), paths=paths)]
    ok = not failed and not count_at(part, "state", "metadata", "exit")
    return [tool, Activity(kind=ActivityKind.RESULT, name=name, text=shown(output), paths=paths, ok=ok)]


def _read_usage(part: JsonValue) -> Usage:
    read, written = count_at(part, "tokens", "cache", "read"), count_at(part, "tokens", "cache", "write")
    return Usage(
        requests=1,
        input_tokens=count_at(part, "tokens", "input") + read + written,
        output_tokens=count_at(part, "tokens", "output") + count_at(part, "tokens", "reasoning"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        usd=amount_at(part, "cost") or None,  # it reports 0 for a model whose price it does not know
    )


def _build_fault(error: JsonValue) -> Fault:
    name = text_at(error, "name")
    why = shown(text_at(error, "data", "message") or name) or "it failed without a reason"
    status = count_at(error, "data", "statusCode")
    kind = kind_of_status(status) if status else _KINDS.get(name, FaultKind.FAILED)
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
    limit=Limit.PATHS,
    limits="its permissions for edits; where a pattern has stars, they are wider than Proofstone's",
    hosts=(
        "opencode.ai", "api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai",
    ),
    keys=(
        "OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY",
        "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
    ),
    login=(".local/share/opencode", ".config/opencode"),
    logged_in=(".local/share/opencode/auth.json",),
    startup=(
        ".config/opencode", ".local/share/opencode/bin", ".local/share/opencode/plugins",
        ".local/share/opencode/snapshot",
    ),
    renewed=(".local/share/opencode/auth.json*",),
    acp=acp,
    troubles=(
        "It ends with exit code 0 when its edits were refused: only the diff counts.",
        "Its permissions do not apply to shell commands: only the diff shows what they write.",
        "It retries a provider that fails with 5xx for minutes, without any output.",
        "opencode.json and AGENTS.md of the project are not loaded; your own permissions are merged with Proofstone's.",
        "Models are named `provider/model`; one without a provider needs OPENAI_BASE_URL.",
        "Only a few providers can be reached unless you add the host of yours to `hosts`.",
        "With `acp:` it writes a file itself even if the client refused the write: only its permission request counts.",
    ),
)  # fmt: skip
