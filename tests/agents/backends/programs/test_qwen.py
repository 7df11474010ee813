"""Qwen Code: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from proofstone.agents.backends.programs.known.qwen import PRESET, QwenStream, invoke, invoke_acp
from proofstone.agents.backends.programs.preset import Invocation, LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from tests.agents.backends.programs.played import brief, played, survives
from tests.rows import each_row

SAID, TOOL, RESULT, REFUSED = ActivityKind.SAID, ActivityKind.TOOL, ActivityKind.RESULT, ActivityKind.REFUSED
SETTINGS = "QWEN_CODE_SYSTEM_SETTINGS_PATH"


def after(started: Invocation, flag: str) -> str | None:
    """What follows the flag; None: it is not given."""
    if flag not in started.arguments:
        return None
    return str(started.arguments[started.arguments.index(flag) + 1])


@each_row(
    ("errand", "flag", "value"),
    [
        (LaunchRequest("", variables={"OPENAI_API_KEY": "k"}), "--auth-type", "openai"),
        (LaunchRequest("", variables={"ANTHROPIC_API_KEY": "k"}), "--auth-type", "anthropic"),
        (LaunchRequest("", variables={"GEMINI_API_KEY": "k"}), "--auth-type", "gemini"),
        (LaunchRequest("", variables={"OPENAI_API_KEY": ""}), "--auth-type", None),
        (LaunchRequest("", scope=("a.py",)), "--exclude-tools", "web_fetch"),
        (LaunchRequest("", scope=()), "--exclude-tools", "web_fetch,edit,write_file,notebook_edit"),
        (LaunchRequest("", scope=("a.py",), can_run=False), "--exclude-tools", "web_fetch,run_shell_command,monitor"),
        (LaunchRequest("", schema={"type": "object"}), "--json-schema", '{"type": "object"}'),
        (LaunchRequest(""), "--json-schema", None),
        (LaunchRequest(""), "--chat-recording", "false"),
    ],
)
def test_what_it_is_started_with(errand: LaunchRequest, flag: str, value: str | None) -> None:
    assert after(invoke(errand), flag) == value


@pytest.mark.parametrize(("model", "named"), [("qwen3", ["--model=qwen3"]), ("", [])])
def test_the_model_is_named_only_where_the_person_did_and_can_be_no_option(model: str, named: list[str]) -> None:
    for started in (invoke(LaunchRequest("", model=model)), invoke_acp(LaunchRequest("", model=model))):
        assert [one for one in started.arguments if str(one).startswith(("-m", "--model"))] == named


def test_the_prompt_goes_by_standard_input() -> None:
    assert invoke(LaunchRequest("do it")).stdin == "do it"


def asked_of_hook(tmp_path: Path, started: Invocation, tool: str, path: str) -> subprocess.CompletedProcess[str]:
    """The hook as the program would run it: by a shell that knows the files by their variables."""
    (hook,) = json.loads(started.files[SETTINGS])["hooks"]["PreToolUse"]
    assert re.search(hook["matcher"], tool)
    variables = {}
    for name, content in started.files.items():
        (tmp_path / name).write_text(content, "utf-8")
        variables[name] = str(tmp_path / name)
    call = json.dumps({"tool_name": tool, "tool_input": {"file_path": path}})
    return subprocess.run(
        ["/bin/sh", "-c", hook["hooks"][0]["command"]],
        env=variables, input=call, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("tool", ["edit", "write_file"])
@pytest.mark.parametrize(("path", "decision"), [("src/a.py", "allow"), ("b.py", "deny"), ("src/../b.py", "deny")])
def test_the_hook_decides_about_each_edit(tmp_path: Path, tool: str, path: str, decision: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    started = invoke(LaunchRequest("", scope=("src/a.py",), root=tree))
    ended = asked_of_hook(tmp_path, started, tool, str(tree / path))
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["hookSpecificOutput"]["permissionDecision"] == decision


def test_a_hook_that_cannot_run_denies(tmp_path: Path) -> None:
    started = invoke(LaunchRequest("", scope=("src/a.py",), root=tmp_path))
    broken = Invocation(started.arguments, files={**started.files, "PROOFSTONE_SCOPE": "no JSON"})
    assert asked_of_hook(tmp_path, broken, "edit", str(tmp_path / "src/a.py")).returncode == 2


def test_by_the_protocol_it_asks_and_has_no_mode_that_would_not() -> None:
    started = invoke_acp(LaunchRequest("", scope=("a.py",), model="m"))
    assert started.arguments[0] == "--acp"
    assert "--approval-mode" not in started.arguments
    assert "hooks" not in json.loads(started.files[SETTINGS])
    assert PRESET.acp_mode == "default"


def test_work_is_seen_and_an_undeclared_edit_is_seen_refused() -> None:
    activities, final = played(QwenStream(), "qwen-work.jsonl")
    assert brief(activities) == [
        (SAID, "", (), None),
        (TOOL, "read_file", ("src/a.py",), None),
        (TOOL, "read_file", ("b.py",), None),
        (RESULT, "read_file", ("src/a.py",), True),
        (RESULT, "read_file", ("b.py",), True),
        (TOOL, "edit", ("src/a.py",), None),
        (TOOL, "write_file", ("b.py",), None),
        (RESULT, "edit", ("src/a.py",), True),
        (REFUSED, "write_file", ("b.py",), None),
        (ActivityKind.THOUGHT, "", (), None),
        (TOOL, "run_shell_command", (), None),
        (RESULT, "run_shell_command", (), True),
        (SAID, "", (), None),
    ]
    assert final.text == "All done."
    assert final.fault is None
    assert final.model == "m2"
    assert (final.usage.requests, final.usage.input_tokens, final.usage.cache_read_tokens) == (4, 44, 3)


def test_a_tool_that_was_taken_away_is_seen_refused() -> None:
    activities, _ = played(QwenStream(), "qwen-reader.jsonl")
    refused = [activity.name for activity in activities if activity.kind is REFUSED]
    assert refused == ["write_file", "run_shell_command"]


def test_a_lie_is_no_more_than_words() -> None:
    activities, final = played(QwenStream(), "qwen-lie.jsonl")
    assert [activity.kind for activity in activities] == [SAID]
    assert final.text == "Done, x is 2 now."


def test_an_answer_by_schema_is_its_last_word() -> None:
    _, final = played(QwenStream(), "qwen-schema.jsonl")
    assert final.text == '{"a":5}'
    assert PRESET.has_schema_option


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("qwen-401.jsonl", FaultKind.DENIED),
        ("qwen-no-login.jsonl", FaultKind.DENIED),
        ("qwen-no-schema.jsonl", FaultKind.MALFORMED),
    ],
)
def test_an_error_is_told_though_it_calls_it_a_success(name: str, kind: FaultKind) -> None:
    _, final = played(QwenStream(), name)
    assert final.fault is not None
    assert final.fault.kind is kind


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("[API Error: 429 slow down]", FaultKind.UNAVAILABLE),
        ("[API Error: 500 broken]", FaultKind.UNAVAILABLE),
        ("[API Error: Connection error.]", FaultKind.UNAVAILABLE),
        ("[API Error: 400 too long]", FaultKind.REJECTED),
    ],
)
def test_errors_by_the_status_in_its_words(words: str, kind: FaultKind) -> None:
    stream = QwenStream()
    list(stream.line(json.dumps({"type": "result", "result": words, "is_error": False})))
    fault = stream.is_final(0).fault
    assert fault is not None
    assert fault.kind is kind


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    assert survives(QwenStream()).fault is None
