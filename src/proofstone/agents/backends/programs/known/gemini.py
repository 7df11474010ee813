"""Gemini CLI: `gemini`.

Its edits are decided by its own policy engine, from rules that we put into its HOME. It runs in the mode that asks,
and nobody is there to answer: what no rule allows is denied, so that a rule which cannot be read lets nothing through.

Only the files with its login are shared, and its settings are ours: the person's own settings, hooks, extensions and
servers play no part. It writes those files in place, so that a single file can be shared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import Calls, Pieces, named, paths_of
from proofstone.agents.backends.programs.lines import count_at, fields, kind_of_status, shown, text_at, value_at
from proofstone.agents.backends.programs.preset import Errand, Final, Invocation, Limit, Preset
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_EDITING = ("write_file", "replace")
_RUNNING = ("run_shell_command",)
_FETCHING = ("web_fetch", "google_web_search")
_ATTEMPTS = 4
"""At a request that fails. It makes ten by itself, which takes minutes; whether to ask again is the engine's to say."""

_REFUSALS = ("policy_violation",)
_OUTSIDE = "Path not in workspace"
_NO_LOGIN = 41
_BAD_INPUT = 42
_LAST_STATUS = range(400, 512)
"""It ends with the provider's status as its exit code, of which the lowest eight bits are left."""


def invoke(errand: Errand) -> Invocation:
    return Invocation(
        (*_arguments(errand), "--output-format", "stream-json", "--approval-mode", "default"),
        _VARIABLES,
        stdin=errand.prompt,
        home=_home(errand, decides=True),
    )


def acp(errand: Errand) -> Invocation:
    """The client is asked about every edit and every command; the rules only take away what it may not have."""
    return Invocation(("--acp", *_arguments(errand)), _VARIABLES, home=_home(errand, decides=False))


def _arguments(errand: Errand) -> tuple[str, ...]:
    return ("--skip-trust", "--extensions", "none", *((f"--model={errand.model}",) if errand.model else ()))


_VARIABLES = {
    "GEMINI_CLI_NO_RELAUNCH": "true",  # one process, and none that outlives it
    "GEMINI_TELEMETRY_ENABLED": "false",
    "NO_COLOR": "1",
}


def _home(errand: Errand, *, decides: bool) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": _authentication(errand.variables)}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": _ATTEMPTS},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    return {
        ".gemini/settings.json": json.dumps(settings),
        ".gemini/policies/proofstone.toml": _policy(errand, decides=decides),
    }


def _authentication(variables: Mapping[str, str]) -> str:
    """It does not start unless its settings name one."""
    if variables.get("GOOGLE_GENAI_USE_VERTEXAI"):
        return "vertex-ai"
    return "gemini-api-key" if variables.get("GEMINI_API_KEY") else "oauth-personal"


def _policy(errand: Errand, *, decides: bool) -> str:
    """In its form of rules, TOML: the highest priority that fits decides. A tool that is denied whatever its arguments
    are is not even offered to the model."""
    rules = [_rule(900, "deny", _FETCHING), _rule(900, "deny", ("*",), mcpName="*")]
    if not errand.may_run:
        rules.append(_rule(900, "deny", _RUNNING))
    elif decides:
        rules.append(_rule(900, "allow", _RUNNING, allowRedirection=True))
    if not errand.scope:
        rules.append(_rule(900, "deny", _EDITING))
    elif decides:
        rules += [_rule(800, "allow", _EDITING, argsPattern=within(item, str(errand.root))) for item in errand.scope]
        rules.append(_rule(700, "deny", _EDITING, argsPattern=".", denyMessage=_refusal(errand.scope)))
    return "\n".join(rules)


def _rule(priority: int, decision: str, tools: tuple[str, ...], **more: str | bool) -> str:
    written = {"toolName": list(tools), "decision": decision, "priority": priority, **more}
    # What JSON writes of texts, lists, numbers and truths is TOML, but for one character.
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in written.items())
    return "[[rule]]\n" + "\n".join(lines).replace("\x7f", "\\u007f") + "\n"


def _refusal(scope: tuple[str, ...]) -> str:
    return (
        f"This file is not yours to change. You may change: {', '.join(scope)}. If another must change too, name it in "
        "`files_requested`."
    )


def within(pattern: str, root: str) -> str:
    """A regular expression for the arguments of a call that changes a file which the pattern covers (`common.globs`).

    The arguments are JSON, each pair at the top between two zero characters. No group may be repeated, or the program
    takes the expression for a dangerous one. What cannot be told for certain does not match: a name with a quotation
    mark or a backslash in a star's place, a path with `..`.
    """
    plain = pattern.removeprefix("./").rstrip("/")
    pieces = '[^"\\\\]*' if plain in ("", ".") else "".join(map(_piece, re.findall(r"\*\*/|\*\*|.", plain, re.DOTALL)))
    begins = f'\\x00"file_path":"(?:|\\./|{_literal(root.rstrip("/"))}/)'
    straight = r'(?!(?:|[^\x00]*/)(?:\.|\.\.|)(?:/|"\x00))'
    return rf'{begins}{straight}{pieces}(?:|/[^"\\]*)"\x00'


def _piece(piece: str) -> str:
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
            return _literal(piece)


def _literal(text: str) -> str:
    return re.escape(json.dumps(text, ensure_ascii=False)[1:-1])


class GeminiStream:
    """A message comes in pieces; it is whole when something else comes."""

    def __init__(self) -> None:
        self._pieces = Pieces()
        self._words = ""
        self._model = ""
        self._calls = Calls()
        self._result: Mapping[str, JsonValue] = {}

    def line(self, text: str) -> Iterable[Activity]:
        event = fields(text)
        return tuple(self._told(event)) if event is not None else ()

    def _told(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        kind = text_at(event, "type")
        if kind == "message" and text_at(event, "role") == "assistant":
            self._pieces.add(text_at(event, "content"))
            return
        yield from self._said()
        match kind:
            case "init":
                self._model = named(text_at(event, "model"))
            case "tool_use":
                yield self._used(event)
            case "tool_result":
                yield self._came_of_it(event)
            case "error":
                yield Activity(kind=ActivityKind.NOTE, text=shown(text_at(event, "message")))
            case "result":
                self._result = event

    def _said(self) -> Iterator[Activity]:
        words = "".join(self._pieces.taken())
        if words.strip():
            self._words = words
            yield Activity(kind=ActivityKind.SAID, text=shown(words))

    def _used(self, event: Mapping[str, JsonValue]) -> Activity:
        name, arguments = named(text_at(event, "tool_name")), value_at(event, "parameters")
        paths = paths_of(text_at(arguments, "file_path") or text_at(arguments, "dir_path"))
        self._calls.add(text_at(event, "tool_id"), name, paths)
        return Activity(kind=ActivityKind.TOOL, name=name, paths=paths, text=shown(text_at(arguments, "command")))

    def _came_of_it(self, event: Mapping[str, JsonValue]) -> Activity:
        call = self._calls.of(text_at(event, "tool_id"))
        words = text_at(event, "error", "message") or text_at(event, "output")
        refused = text_at(event, "error", "type") in _REFUSALS or words.startswith(_OUTSIDE)
        if refused:
            return Activity(kind=ActivityKind.REFUSED, name=call.tool, paths=call.paths, text=shown(words))
        good = text_at(event, "status") == "success"
        return Activity(kind=ActivityKind.RESULT, name=call.tool, paths=call.paths, text=shown(words), ok=good)

    def final(self, exit_code: int | None) -> Final:
        stats = value_at(self._result, "stats")
        usage = Usage(
            requests=1,
            input_tokens=count_at(stats, "input_tokens"),
            output_tokens=count_at(stats, "output_tokens"),
            cache_read_tokens=count_at(stats, "cached"),
            usd=None,
        )
        words = "".join(self._pieces).strip() or self._words.strip()
        return Final(words, usage, self._answering(stats), self._fault(exit_code))

    def _answering(self, stats: JsonValue) -> str:
        """Told to choose by itself, it may ask several: the one that did most."""
        models = value_at(stats, "models")
        if not isinstance(models, Mapping) or not models:
            return self._model
        return named(max(models, key=lambda name: count_at(models, name, "total_tokens")))

    def _fault(self, exit_code: int | None) -> Fault | None:
        if exit_code == _NO_LOGIN:
            return Fault(kind=FaultKind.DENIED, why="it has no login: set GEMINI_API_KEY, or start `gemini` and log in")
        if text_at(self._result, "status") != "error":
            return None
        why = shown(text_at(self._result, "error", "message")) or "it says that it failed"
        status = (exit_code or 0) + 256
        if status in _LAST_STATUS:
            return Fault(kind=kind_of_status(status), why=f"{status}: {why}")
        return Fault(kind=FaultKind.REJECTED if exit_code == _BAD_INPUT else FaultKind.FAILED, why=why)


PRESET = Preset(
    name="gemini",
    program="gemini",
    install="npm install -g @google/gemini-cli",
    minimum="0.61.0",
    vendor="google",
    invoke=invoke,
    stream=GeminiStream,
    limit=Limit.PATHS,
    limits="its policy engine: edits of the declared files are allowed, all others denied",
    hosts=(
        "generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "aiplatform.googleapis.com",
        "oauth2.googleapis.com",
    ),
    keys=(
        "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GEMINI_MODEL",
        "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
    ),
    login=(".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
    logged_in=(".gemini/oauth_creds.json",),
    acp=acp,
    acp_reads=False,
    acp_mode="default",
    troubles=(
        "It calls a command that failed a success, and ends with the provider's status as its exit code.",
        "A key that it keeps in the desktop's keyring cannot be reached: set GEMINI_API_KEY.",
        "Vertex AI in one region needs `hosts = [\"REGION-aiplatform.googleapis.com\"]`.",
        "Settings, hooks and servers that the project itself has in `.gemini` apply.",
    ),
)  # fmt: skip
