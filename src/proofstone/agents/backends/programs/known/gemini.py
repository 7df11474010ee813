"""Gemini CLI: `gemini`.

Its own policy engine decides its edits, with rules that we put into its HOME. It runs in the mode that asks, and nobody
answers: whatever no rule allows is denied, so a rule that cannot be read allows nothing.

Only the files with its login are shared, and its settings are ours: the user's own settings, hooks, extensions and
servers have no effect. It writes those files in place, so single files can be shared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import RecordedCalls, TextBuffer, shorten_name, shorten_paths
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

_EDITING = ("write_file", "replace")
_RUNNING = ("run_shell_command",)
_FETCHING = ("web_fetch", "google_web_search")
_ATTEMPTS = 4
"""Attempts at a failing request. The default of ten takes minutes; the engine decides whether to ask again."""

_REFUSALS = ("policy_violation",)
_OUTSIDE_WORKSPACE = "Path not in workspace"
_NO_LOGIN = 41
_BAD_INPUT = 42
_LAST_STATUS = range(400, 512)
"""It ends with the provider's status as its exit code, of which only the lowest eight bits remain."""


def invoke(errand: LaunchRequest) -> Invocation:
    return Invocation(
        (*_build_arguments(errand), "--output-format", "stream-json", "--approval-mode", "default"),
        _VARIABLES,
        stdin=errand.prompt,
        home=_build_home(errand, decides=True),
    )


def invoke_acp(errand: LaunchRequest) -> Invocation:
    """Build the command line with which the client is asked about every edit and command. The rules only deny tools."""
    return Invocation(("--acp", *_build_arguments(errand)), _VARIABLES, home=_build_home(errand, decides=False))


def _build_arguments(errand: LaunchRequest) -> tuple[str, ...]:
    return ("--skip-trust", "--extensions", "none", *((f"--model={errand.model}",) if errand.model else ()))


_VARIABLES = {
    "GEMINI_CLI_NO_RELAUNCH": "true",  # only one process, which leaves none behind
    "GEMINI_TELEMETRY_ENABLED": "false",
    "NO_COLOR": "1",
}


def _build_home(errand: LaunchRequest, *, decides: bool) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": _choose_authentication(errand.variables)}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": _ATTEMPTS},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    return {
        ".gemini/settings.json": json.dumps(settings),
        ".gemini/policies/proofstone.toml": _build_policy(errand, decides=decides),
    }


def _choose_authentication(variables: Mapping[str, str]) -> str:
    """Return the kind of login. The program does not start unless its settings name one."""
    if variables.get("GOOGLE_GENAI_USE_VERTEXAI"):
        return "vertex-ai"
    return "gemini-api-key" if variables.get("GEMINI_API_KEY") else "oauth-personal"


def _build_policy(errand: LaunchRequest, *, decides: bool) -> str:
    """Return the rules of its policy engine, as TOML. The matching rule with the highest priority decides.

    A tool that is denied for all arguments is not even offered to the model."""
    rules = [_build_rule(900, "deny", _FETCHING), _build_rule(900, "deny", ("*",), mcpName="*")]
    if not errand.can_run:
        rules.append(_build_rule(900, "deny", _RUNNING))
    elif decides:
        rules.append(_build_rule(900, "allow", _RUNNING, allowRedirection=True))
    if not errand.scope:
        rules.append(_build_rule(900, "deny", _EDITING))
    elif decides:
        rules += [
            _build_rule(800, "allow", _EDITING, argsPattern=build_scope_regex(pattern, str(errand.root)))
            for pattern in errand.scope
        ]
        rules.append(_build_rule(700, "deny", _EDITING, argsPattern=".", denyMessage=_render_refusal(errand.scope)))
    return "\n".join(rules)


def _build_rule(priority: int, decision: str, tools: tuple[str, ...], **extra: str | bool) -> str:
    fields_written = {"toolName": list(tools), "decision": decision, "priority": priority, **extra}
    # JSON text, lists, numbers and booleans are TOML as well, except for one character.
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields_written.items())
    return "[[rule]]\n" + "\n".join(lines).replace("\x7f", "\\u007f") + "\n"


def _render_refusal(scope: tuple[str, ...]) -> str:
    return (
        f"This file is not yours to change. You may change: {', '.join(scope)}. If another must change too, name it in "
        "`files_requested`."
    )


def build_scope_regex(pattern: str, root: str) -> str:
    """Return a regular expression for the arguments of a call that changes a file which the pattern covers.

    Patterns are those of `common.globs`. The arguments are JSON, each pair at the top level between two NUL characters.
    No group may be repeated, because the program would take the expression for a dangerous one. Doubtful cases do not
    match: a name with a quotation mark or a backslash in place of a star, a path with `..`.
    """
    plain = pattern.removeprefix("./").rstrip("/")
    pieces = (
        '[^"\\\\]*' if plain in ("", ".") else "".join(map(_translate, re.findall(r"\*\*/|\*\*|.", plain, re.DOTALL)))
    )
    prefix = f'\\x00"file_path":"(?:|\\./|{_escape(root.rstrip("/"))}/)'
    no_traversal = r'(?!(?:|[^\x00]*/)(?:\.|\.\.|)(?:/|"\x00))'
    return rf'{prefix}{no_traversal}{pieces}(?:|/[^"\\]*)"\x00'


def _translate(piece: str) -> str:
    match piece:
        case "**/":
            return r'(?:|[^"\\]*/)'
        case "**":
            return r'[^"\\]*'
        case "*":
            return r'[^/"\\]*'
        case "?":
            return r'[^/"\\]'
        case _:
            return _escape(piece)


def _escape(text: str) -> str:
    return re.escape(json.dumps(text, ensure_ascii=False)[1:-1])


class GeminiStream:
    """Read the output. A message arrives in pieces, and is complete when another event arrives."""

    def __init__(self) -> None:
        self._pieces = TextBuffer()
        self._text = ""
        self._model = ""
        self._calls = RecordedCalls()
        self._result: Mapping[str, JsonValue] = {}

    def line(self, text: str) -> Iterable[Activity]:
        event = parse_object(text)
        return tuple(self._read_event(event)) if event is not None else ()

    def _read_event(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        kind = get_text(event, "type")
        if kind == "message" and get_text(event, "role") == "assistant":
            self._pieces.add(get_text(event, "content"))
            return
        yield from self._end_message()
        match kind:
            case "init":
                self._model = shorten_name(get_text(event, "model"))
            case "tool_use":
                yield self._read_call(event)
            case "tool_result":
                yield self._read_result(event)
            case "error":
                yield Activity(kind=ActivityKind.NOTE, text=shorten(get_text(event, "message")))
            case "result":
                self._result = event

    def _end_message(self) -> Iterator[Activity]:
        text = "".join(self._pieces.take_all())
        if text.strip():
            self._text = text
            yield Activity(kind=ActivityKind.SAID, text=shorten(text))

    def _read_call(self, event: Mapping[str, JsonValue]) -> Activity:
        name, arguments = shorten_name(get_text(event, "tool_name")), get_value(event, "parameters")
        paths = shorten_paths(get_text(arguments, "file_path") or get_text(arguments, "dir_path"))
        self._calls.add(get_text(event, "tool_id"), name, paths)
        return Activity(kind=ActivityKind.TOOL, name=name, paths=paths, text=shorten(get_text(arguments, "command")))

    def _read_result(self, event: Mapping[str, JsonValue]) -> Activity:
        call = self._calls.get(get_text(event, "tool_id"))
        text = get_text(event, "error", "message") or get_text(event, "output")
        is_refused = get_text(event, "error", "type") in _REFUSALS or text.startswith(_OUTSIDE_WORKSPACE)
        if is_refused:
            return Activity(kind=ActivityKind.REFUSED, name=call.tool, paths=call.paths, text=shorten(text))
        succeeded = get_text(event, "status") == "success"
        return Activity(kind=ActivityKind.RESULT, name=call.tool, paths=call.paths, text=shorten(text), ok=succeeded)

    def is_final(self, exit_code: int | None) -> ProgramResult:
        stats = get_value(self._result, "stats")
        usage = Usage(
            requests=1,
            input_tokens=get_count(stats, "input_tokens"),
            output_tokens=get_count(stats, "output_tokens"),
            cache_read_tokens=get_count(stats, "cached"),
            usd=None,
        )
        text = "".join(self._pieces).strip() or self._text.strip()
        return ProgramResult(text, usage, self._find_main_model(stats), self._find_fault(exit_code))

    def _find_main_model(self, stats: JsonValue) -> str:
        """Return the model that did most of the work: in automatic mode, the program may use several."""
        models = get_value(stats, "models")
        if not isinstance(models, Mapping) or not models:
            return self._model
        return shorten_name(max(models, key=lambda name: get_count(models, name, "total_tokens")))

    def _find_fault(self, exit_code: int | None) -> Fault | None:
        if exit_code == _NO_LOGIN:
            return Fault(kind=FaultKind.DENIED, why="it has no login: set GEMINI_API_KEY, or start `gemini` and log in")
        if get_text(self._result, "status") != "error":
            return None
        why = shorten(get_text(self._result, "error", "message")) or "it failed without a reason"
        status = (exit_code or 0) + 256
        if status in _LAST_STATUS:
            return Fault(kind=classify_status(status), why=f"{status}: {why}")
        return Fault(kind=FaultKind.REJECTED if exit_code == _BAD_INPUT else FaultKind.FAILED, why=why)


PRESET = Preset(
    name="gemini",
    program="gemini",
    install="npm install -g @google/gemini-cli",
    minimum="0.61.0",
    vendor="google",
    invoke=invoke,
    stream=GeminiStream,
    limit=EditLimit.PATHS,
    limit_description="its policy engine: edits of the declared files are allowed, all others are denied",
    hosts=(
        "generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "aiplatform.googleapis.com",
        "oauth2.googleapis.com",
    ),
    keys=(
        "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GEMINI_MODEL",
        "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
    ),
    login=(".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
    login_markers=(".gemini/oauth_creds.json",),
    acp=invoke_acp,
    can_read_over_acp=False,
    acp_mode="default",
    known_problems=(
        "It reports failed commands as a success, and ends with the provider's status as its exit code.",
        "It cannot use a key in the desktop's keyring: set GEMINI_API_KEY.",
        "Vertex AI in one region needs `hosts = [\"REGION-aiplatform.googleapis.com\"]`.",
        "Settings, hooks and servers in the project's own `.gemini` apply.",
    ),
)  # fmt: skip
