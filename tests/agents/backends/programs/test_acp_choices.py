"""What is chosen of what an agent offers."""

from __future__ import annotations

from pydantic import JsonValue

from proofstone.agents.backends.programs.acp.session_settings import SessionMode, choose_login, find_asking_mode
from tests.rows import each_row

_COPILOT = "https://agentclientprotocol.com/protocol/session-modes"
# The modes that real agents offer, by id (and name where it differs) → the one in which each asks.
MODES: dict[str, tuple[list[tuple[str, str]], str]] = {
    "goose": ([("auto", ""), ("approve", ""), ("smart_approve", ""), ("chat", "")], "approve"),
    "qwen": ([("plan", "Plan"), ("default", "Default"), ("auto-edit", "Auto Edit"), ("yolo", "YOLO")], "default"),
    "gemini": ([("default", "Default"), ("autoEdit", "Auto Edit"), ("yolo", "YOLO"), ("plan", "Plan")], "default"),
    "claude": (
        [("default", "Default"), ("acceptEdits", "Accept Edits"), ("plan", "Plan Mode"), ("dontAsk", "Don't Ask"),
         ("bypassPermissions", "Bypass Permissions")],
        "default",
    ),
    "codex": ([("read-only", "Read Only"), ("auto", "Default"), ("full-access", "Full Access")], "read-only"),
    "opencode": ([("build", ""), ("plan", "")], "build"),
    "copilot": (
        [(f"{_COPILOT}#agent", "Agent"), (f"{_COPILOT}#plan", "Plan"), (f"{_COPILOT}#autopilot", "Autopilot")],
        f"{_COPILOT}#agent",
    ),
    "a name that asks and an id that does not": ([("yolo", "Ask"), ("x", "Manual")], "x"),
    "none that asks": ([("auto", ""), ("full-access", ""), ("turbo", "")], ""),
    "none": ([], ""),
}  # fmt: skip


@each_row("name", MODES)
def test_the_mode_is_one_in_which_it_asks(name: str) -> None:
    modes, chosen = MODES[name]
    assert find_asking_mode([SessionMode(*mode) for mode in modes]) == chosen
    assert find_asking_mode([SessionMode(*mode) for mode in reversed(modes)]) == chosen


def test_the_mode_of_the_preset_goes_before_if_it_is_there() -> None:
    modes = [SessionMode("auto"), SessionMode("approve")]
    assert find_asking_mode(modes, "auto") == "auto"
    assert find_asking_mode(modes, "gone") == "approve"


_ENV: dict[str, JsonValue] = {"id": "env", "type": "env_var", "vars": [{"name": "A_KEY"}, {"name": "B_URL"}]}
_TOLD: dict[str, JsonValue] = {"id": "openai", "description": "Requires setting the `OPENAI_API_KEY` variable"}
_KEY: dict[str, JsonValue] = {"id": "gemini-api-key", "name": "Gemini API key"}
_BROWSER: dict[str, JsonValue] = {"id": "oauth", "name": "Log in with a browser"}
# methods, variables that are there → the method.
LOGINS: list[tuple[list[dict[str, JsonValue]], set[str], str]] = [
    ([_BROWSER, _ENV], {"A_KEY", "B_URL"}, "env"),
    ([_BROWSER, _ENV], {"A_KEY"}, ""),
    ([_BROWSER, _TOLD], {"OPENAI_API_KEY"}, "openai"),
    ([_BROWSER, _TOLD], {"OTHER_API_KEY"}, ""),
    ([_BROWSER, _KEY], {"GEMINI_API_KEY"}, "gemini-api-key"),
    ([_BROWSER, _KEY], {"HOME"}, ""),
    ([_BROWSER], {"GEMINI_API_KEY"}, ""),
    ([], {"GEMINI_API_KEY"}, ""),
]


@each_row("methods,given,chosen", LOGINS)
def test_a_login_is_one_that_needs_no_person(methods: list[dict[str, JsonValue]], given: set[str], chosen: str) -> None:
    assert choose_login(methods, given) == chosen
