"""Gemini CLI: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.backends.programs.known.gemini import PRESET, GeminiStream, build_scope_regex, invoke, invoke_acp
from proofstone.agents.backends.programs.preset import LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from proofstone.common.globs import matches
from tests.agents.backends.programs.played import brief, played, survives
from tests.rows import each_row

ROOT = Path("/tree")
SAID, TOOL, RESULT, REFUSED = ActivityKind.SAID, ActivityKind.TOOL, ActivityKind.RESULT, ActivityKind.REFUSED
POLICY = ".gemini/policies/proofstone.toml"


def rules(errand: LaunchRequest) -> list[dict[str, object]]:
    found: list[dict[str, object]] = tomllib.loads(invoke(errand).home[POLICY])["rule"]
    return found


def decided(errand: LaunchRequest, tool: str, **arguments: str) -> str:
    """As its policy engine decides: the highest priority that fits; without one it would ask, which is a no."""
    pairs = "".join(f'\x00"{name}":{json.dumps(value)}\x00' for name, value in sorted(arguments.items()))
    fitting = [
        rule
        for rule in rules(errand)
        if tool in rule["toolName"]  # type: ignore[operator]
        and "mcpName" not in rule
        and re.search(str(rule.get("argsPattern", "")), "{" + pairs + "}")
    ]
    best = max(fitting, key=lambda rule: int(str(rule["priority"])), default={"decision": "ask_user"})
    return str(best["decision"])


def test_the_prompt_goes_by_standard_input_and_the_model_by_its_flag() -> None:
    started = invoke(LaunchRequest("do it", model="gemini-2.5-pro", scope=("a.py",), root=ROOT))
    assert started.stdin == "do it"
    assert started.arguments[3] == "--model=gemini-2.5-pro"
    assert "--approval-mode" in started.arguments
    assert started.arguments[started.arguments.index("--approval-mode") + 1] == "default"
    assert not any("--model" in str(one) for one in invoke(LaunchRequest("do it")).arguments)


@pytest.mark.parametrize(
    ("variables", "way"),
    [
        ({"GEMINI_API_KEY": "k"}, "gemini-api-key"),
        ({}, "oauth-personal"),
        ({"GEMINI_API_KEY": "k", "GOOGLE_GENAI_USE_VERTEXAI": "true"}, "vertex-ai"),
    ],
)
def test_its_settings_name_the_login_or_it_would_not_start(variables: dict[str, str], way: str) -> None:
    settings = json.loads(invoke(LaunchRequest("", variables=variables)).home[".gemini/settings.json"])
    assert settings["security"]["auth"]["selectedType"] == way


@each_row(
    ("path", "decision"),
    [
        ("src/a.py", "allow"),
        ("./src/a.py", "allow"),
        ("/tree/src/a.py", "allow"),
        ("lib/x/y.ts", "allow"),
        ("docs/deep/er/page.md", "allow"),
        ("app/[id]/page.tsx", "allow"),
        ("b.py", "deny"),
        ("src/a.pyc", "deny"),
        ("src/../src/a.py", "deny"),
        ("lib/../b.py", "deny"),
        ("lib//x", "deny"),
        ("/elsewhere/src/a.py", "deny"),
        ("/tree/../src/a.py", "deny"),
        ("app/i/page.tsx", "deny"),
        ("docs/page.txt", "deny"),
        ("", "deny"),
    ],
)
@each_row("tool", ["write_file", "replace"])
def test_only_declared_files_may_be_changed(tool: str, path: str, decision: str) -> None:
    errand = LaunchRequest("", scope=("src/a.py", "lib/", "docs/**/*.md", "app/[id]/page.tsx"), root=ROOT)
    assert decided(errand, tool, file_path=path, content="x") == decision


def test_what_a_file_holds_cannot_pass_for_its_path() -> None:
    errand = LaunchRequest("", scope=("src/a.py",), root=ROOT)
    assert decided(errand, "write_file", content='\x00"file_path":"src/a.py"\x00', file_path="b.py") == "deny"


def test_a_refusal_tells_the_model_what_it_may_change_and_how_to_ask_for_more() -> None:
    (message,) = [
        str(rule["denyMessage"]) for rule in rules(LaunchRequest("", scope=("src/a.py",))) if "denyMessage" in rule
    ]
    assert "src/a.py" in message
    assert "files_requested" in message


@each_row(
    ("errand", "tool", "decision"),
    [
        (LaunchRequest("", scope=("a.py",)), "run_shell_command", "allow"),
        (LaunchRequest("", scope=("a.py",), can_run=False), "run_shell_command", "deny"),
        (LaunchRequest("", scope=()), "write_file", "deny"),
        (LaunchRequest("", scope=()), "replace", "deny"),
        (LaunchRequest("", scope=("a.py",)), "web_fetch", "deny"),
        (LaunchRequest("", scope=("a.py",)), "google_web_search", "deny"),
    ],
)
def test_tools_that_it_may_not_have_are_denied(errand: LaunchRequest, tool: str, decision: str) -> None:
    assert decided(errand, tool, file_path="a.py") == decision


def test_by_the_protocol_nothing_is_allowed_beforehand_so_that_it_asks() -> None:
    started = invoke_acp(LaunchRequest("", scope=("a.py",)))
    assert started.arguments[0] == "--acp"
    assert 'decision = "allow"' not in started.home[POLICY]
    assert '"run_shell_command"' in invoke_acp(LaunchRequest("", scope=("a.py",), can_run=False)).home[POLICY]


names = st.text(alphabet="ab.[]é+ (){}|^$", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
patterns = st.lists(
    st.one_of(names, st.sampled_from(["*", "**", "?", "a*", "**b", "*.a", "?b"])), min_size=1, max_size=4
).map("/".join)


@given(patterns, paths)
def test_its_rule_covers_what_ours_covers(pattern: str, path: str) -> None:
    arguments = f'{{\x00"file_path":{json.dumps(path, ensure_ascii=False)}\x00}}'
    found = re.search(build_scope_regex(pattern, "/tree"), arguments) is not None
    assert found == matches(pattern, path)


@given(patterns, st.text(max_size=3))
def test_its_rule_is_one_that_the_program_takes(pattern: str, root: str) -> None:
    """It refuses expressions in which something that repeats is repeated, by this very test."""
    assert not re.search(r"\([^)]*[*+?{].*\)[*+?{]", build_scope_regex(pattern, f"/{root}"))


def test_work_is_seen_and_an_undeclared_edit_is_seen_refused() -> None:
    activities, final = played(GeminiStream(), "gemini-work.jsonl")
    assert brief(activities) == [
        (SAID, "", (), None),
        (TOOL, "read_file", ("src/a.py",), None),
        (RESULT, "read_file", ("src/a.py",), True),
        (TOOL, "replace", ("src/a.py",), None),
        (TOOL, "write_file", ("b.py",), None),
        (TOOL, "write_file", ("/tmp/escaped.py",), None),
        (RESULT, "replace", ("src/a.py",), True),
        (REFUSED, "write_file", ("b.py",), None),
        (REFUSED, "write_file", ("/tmp/escaped.py",), None),
        (TOOL, "run_shell_command", (), None),
        (RESULT, "run_shell_command", (), True),
        (SAID, "", (), None),
    ]
    assert final.text == "All done."
    assert final.fault is None
    assert final.model == "gemini-2.5-pro"
    assert (final.usage.input_tokens, final.usage.output_tokens, final.usage.cache_read_tokens) == (44, 28, 3)


def test_a_tool_that_was_taken_away_fails() -> None:
    activities, _ = played(GeminiStream(), "gemini-reader.jsonl")
    failed = [(one.name, one.ok) for one in activities if one.kind is RESULT]
    assert failed == [("write_file", False), ("run_shell_command", False)]


def test_a_lie_is_no_more_than_words() -> None:
    activities, final = played(GeminiStream(), "gemini-lie.jsonl")
    assert [activity.kind for activity in activities] == [SAID]
    assert final.text == "Done, x is 2 now."


@each_row(
    ("name", "exit_code", "kind"),
    [
        ("gemini-401.jsonl", 145, FaultKind.DENIED),
        ("gemini-429.jsonl", 173, FaultKind.UNAVAILABLE),
        ("gemini-429.jsonl", 42, FaultKind.REJECTED),
        ("gemini-429.jsonl", 1, FaultKind.FAILED),
        ("gemini-lie.jsonl", 41, FaultKind.DENIED),
    ],
)
def test_an_error_of_the_provider_is_told_by_its_exit_code(name: str, exit_code: int, kind: FaultKind) -> None:
    _, final = played(GeminiStream(), name, exit_code)
    assert final.fault is not None
    assert final.fault.kind is kind


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    assert survives(GeminiStream()).fault is None


def test_the_preset_shares_files_that_it_writes_in_place_and_no_settings() -> None:
    assert all(name.endswith(".json") and "settings" not in name for name in PRESET.login)
    assert PRESET.acp_mode == "default"
