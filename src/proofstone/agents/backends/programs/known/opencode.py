"""opencode: `opencode run`, and `opencode acp`.

Which files it may edit is a permission of its own, by patterns of its own, in which a star crosses folders: they are
wider than ours where a pattern has stars, never narrower. The project's configuration is not loaded, since its
permissions would be mixed with these.
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

_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DB": ":memory:",
}
_GIVEN = "given"
_REFUSED = "The user has specified a rule which prevents you"
"""How it says that a permission refused it."""
_UNAVAILABLE = "invalid"
"""What it calls a tool that the model made up or may not use."""
_KINDS: Mapping[str, FaultKind] = {
    "ProviderAuthError": FaultKind.DENIED,
    "ContextOverflowError": FaultKind.REJECTED,
}
"""By its name for the error, where there is no status."""


def invoke(errand: Errand) -> Invocation:
    model = (f"--model={_model(errand)}",) if errand.model else ()
    edit = {"*": "deny", **{item: "allow" for pattern in errand.scope for item in _patterns(pattern, errand.root)}}
    variables = {**_QUIET, "OPENCODE_CONFIG_CONTENT": _config(errand, edit, "allow")}
    return Invocation(("run", "--format", "json", "--pure", *model), variables, stdin=errand.prompt)


def acp(errand: Errand) -> Invocation:
    """It asks only where it is told to, and the client answers by the scope."""
    edit = {"*": "ask" if errand.scope else "deny"}
    variables = {**_QUIET, "OPENCODE_CONFIG_CONTENT": _config(errand, edit, "ask")}
    return Invocation(("acp", "--pure"), variables)


def _config(errand: Errand, edit: Mapping[str, str], running: str) -> str:
    config: dict[str, JsonValue] = {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,  # a repository of its own, beside the login, with a copy of the work tree
        "permission": {
            "edit": dict(edit),
            "bash": running if errand.may_run else "deny",
            "external_directory": "deny",
            "webfetch": "deny",
            "question": "deny",
        },
    }
    if errand.model:
        config["model"] = _model(errand)
    if _is_given(errand):
        config["provider"] = {_GIVEN: _provider(errand)}
    return json.dumps(config)


def _patterns(pattern: str, root: Path) -> Iterator[str]:
    """Ours, as its own: a folder covers all below it. It counts paths from the root of the git repository, and from
    that of the machine where there is none."""
    plain = pattern.removeprefix("./").rstrip("/").replace("**/", "*").replace("**", "*")
    whole = plain in ("", ".")
    for start in ("", f"{root}/".lstrip("/")) if root.is_absolute() else ("",):
        if whole:
            yield f"{start}*"
        else:
            yield from (f"{start}{plain}", f"{start}{plain}/*")


def _model(errand: Errand) -> str:
    return f"{_GIVEN}/{errand.model}" if _is_given(errand) else errand.model


def _is_given(errand: Errand) -> bool:
    """It names models as `provider/model`; one without a provider is that of the URL in the person's variables."""
    return "/" not in errand.model and bool(errand.model) and bool(errand.variables.get("OPENAI_BASE_URL"))


def _provider(errand: Errand) -> dict[str, JsonValue]:
    key: dict[str, JsonValue] = {"apiKey": "{env:OPENAI_API_KEY}"} if errand.variables.get("OPENAI_API_KEY") else {}
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": _GIVEN,
        "options": {"baseURL": errand.variables["OPENAI_BASE_URL"], **key},
        "models": {errand.model: {}},
    }


class OpencodeStream:
    def __init__(self) -> None:
        self._words = ""
        self._usage = Usage(usd=0.0)
        self._fault: Fault | None = None

    def line(self, text: str) -> Iterable[Activity]:
        event = fields(text) or {}
        part = value_at(event, "part")
        match text_at(event, "type"):
            case "text":
                self._words = text_at(part, "text")
                return [Activity(kind=ActivityKind.SAID, text=shown(self._words))]
            case "reasoning":
                return [Activity(kind=ActivityKind.THOUGHT, text=shown(text_at(part, "text")))]
            case "tool_use":
                return _used(part)
            case "step_finish":
                self._usage += _usage_of(part)
                self._fault = None
            case "error":
                self._fault = _fault(value_at(event, "error"))
                return [Activity(kind=ActivityKind.NOTE, text=self._fault.why)]
        return ()

    def final(self, exit_code: int | None) -> Final:
        usage = self._usage if self._usage.requests else Usage(requests=1, usd=None)
        return Final(self._words, usage, fault=self._fault)


def _used(part: JsonValue) -> list[Activity]:
    """It tells of a tool when it is done with it: what it wanted, and what came of it."""
    name = named(text_at(part, "tool"))
    wanted = value_at(part, "state", "input")
    if name == _UNAVAILABLE:
        tried, why = named(text_at(wanted, "tool")), shown(text_at(wanted, "error"))
        return [Activity(kind=ActivityKind.REFUSED, name=tried, text=why)]
    paths = paths_of(text_at(wanted, "filePath"), text_at(wanted, "path"))
    words = shown(text_at(wanted, "command") or text_at(wanted, "pattern"))
    tool = Activity(kind=ActivityKind.TOOL, name=name, text=words, paths=paths)
    failed = text_at(part, "state", "status") == "error"
    came = text_at(part, "state", "error") if failed else text_at(part, "state", "output")
    if failed and _REFUSED in came:
        return [tool, Activity(kind=ActivityKind.REFUSED, name=name, text=shown(came), paths=paths)]
    ok = not failed and not count_at(part, "state", "metadata", "exit")
    return [tool, Activity(kind=ActivityKind.RESULT, name=name, text=shown(came), paths=paths, ok=ok)]


def _usage_of(part: JsonValue) -> Usage:
    read, written = count_at(part, "tokens", "cache", "read"), count_at(part, "tokens", "cache", "write")
    return Usage(
        requests=1,
        input_tokens=count_at(part, "tokens", "input") + read + written,
        output_tokens=count_at(part, "tokens", "output") + count_at(part, "tokens", "reasoning"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        usd=amount_at(part, "cost") or None,  # it says 0 of a model whose price it does not know
    )


def _fault(error: JsonValue) -> Fault:
    name = text_at(error, "name")
    why = shown(text_at(error, "data", "message") or name) or "it does not say why it failed"
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
    limits="its permissions for edits, by patterns that are wider than Proofstone's where they have stars",
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
        "A shell command is not bound by its permissions: what it writes is seen in the diff only.",
        "It asks a provider that fails with 5xx again for minutes, and says nothing meanwhile.",
        "opencode.json and AGENTS.md of the project are not loaded; your own permissions are mixed with Proofstone's.",
        "Models are called `provider/model`; one without a provider needs OPENAI_BASE_URL.",
        "Only a few providers can be reached unless you name the host of yours in `hosts`.",
        "With `acp:` it writes by itself even where the client refused the write: only its permission request counts.",
    ),
)  # fmt: skip
