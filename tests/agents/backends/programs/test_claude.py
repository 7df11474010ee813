"""Claude Code: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

import json

import pytest

from proofstone.agents.backends.programs.known.claude import PRESET, ClaudeStream, invoke, invoke_acp
from proofstone.agents.backends.programs.preset import FileArgument, Invocation, LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from proofstone.common.models import Usage
from tests.agents.backends.programs.played import brief, played, survives
from tests.rows import each_row

SAID, TOOL, RESULT, REFUSED = ActivityKind.SAID, ActivityKind.TOOL, ActivityKind.RESULT, ActivityKind.REFUSED
NOTE, THOUGHT = ActivityKind.NOTE, ActivityKind.THOUGHT
TREE = "/some/tree"


def after(started: Invocation, flag: str) -> str | FileArgument | None:
    """What follows the flag; None: it is not given."""
    return started.arguments[started.arguments.index(flag) + 1] if flag in started.arguments else None


@each_row(
    ("errand", "flag", "value"),
    [
        (LaunchRequest("", scope=("a.py",)), "--tools", "Read,Glob,Grep,Edit,Write,NotebookEdit,Bash"),
        (LaunchRequest("", scope=("a.py",), can_run=False), "--tools", "Read,Glob,Grep,Edit,Write,NotebookEdit"),
        (LaunchRequest("", scope=(), can_run=False), "--tools", "Read,Glob,Grep"),
        (LaunchRequest("", scope=("a.py",)), "--allowedTools", "Read,Glob,Grep,Bash"),
        (LaunchRequest("", scope=("a.py",)), "--permission-mode", "dontAsk"),
        (LaunchRequest(""), "--setting-sources", "user"),
        (LaunchRequest(""), "--settings", FileArgument("PROOFSTONE_SETTINGS")),
        (LaunchRequest("", schema={"type": "object"}), "--json-schema", '{"type": "object"}'),
        (LaunchRequest(""), "--json-schema", None),
    ],
)
def test_what_it_is_started_with(errand: LaunchRequest, flag: str, value: str | FileArgument | None) -> None:
    assert after(invoke(errand), flag) == value


@pytest.mark.parametrize(("model", "named"), [("opus", ["--model=opus"]), ("", [])])
def test_the_model_is_named_only_where_the_person_did_and_can_be_no_option(model: str, named: list[str]) -> None:
    for started in (invoke(LaunchRequest("", model=model)),):
        assert [one for one in started.arguments if str(one).startswith(("-m", "--model"))] == named


def test_the_prompt_goes_by_standard_input_and_no_session_is_kept() -> None:
    started = invoke(LaunchRequest("do it"))
    assert started.stdin == "do it"
    assert "--no-session-persistence" in started.arguments


def test_no_edit_is_allowed_but_by_the_hook() -> None:
    started = invoke(LaunchRequest("", scope=("src/**",)))
    settings = json.loads(started.files["PROOFSTONE_SETTINGS"])
    (hook,) = settings["hooks"]["PreToolUse"]
    assert set(hook["matcher"].split("|")) == {"Edit", "Write", "NotebookEdit"}
    assert not set(str(after(started, "--allowedTools")).split(",")) & set(hook["matcher"].split("|"))
    assert settings["disableAllHooks"] is False


@pytest.mark.parametrize(("given", "expected"), [({}, "4"), ({"CLAUDE_CODE_MAX_RETRIES": "9"}, None)])
def test_the_persons_own_number_of_retries_stands(given: dict[str, str], expected: str | None) -> None:
    assert invoke(LaunchRequest("", variables=given)).variables.get("CLAUDE_CODE_MAX_RETRIES") == expected


def test_the_adapter_takes_the_model_from_a_variable() -> None:
    assert invoke_acp(LaunchRequest("", model="opus")).variables["ANTHROPIC_MODEL"] == "opus"
    assert "ANTHROPIC_MODEL" not in invoke_acp(LaunchRequest("")).variables
    assert PRESET.acp_mode == "default"


def test_work_is_told_tool_by_tool() -> None:
    activities, final = played(ClaudeStream(), "claude-work.jsonl")
    path = (f"{TREE}/src/a.py",)
    assert brief(activities) == [
        (SAID, "", (), None), (TOOL, "Read", path, None), (RESULT, "Read", path, True),
        (TOOL, "Edit", path, None), (RESULT, "Edit", path, True), (SAID, "", (), None),
    ]  # fmt: skip
    assert (final.text, final.model, final.fault) == ("Done, x is 2.", "scripted-model", None)
    # It guesses at the price of a model that it does not know.
    assert final.usage == Usage(requests=3, input_tokens=33, output_tokens=21, usd=None)


def test_what_the_hook_refused_is_a_refusal_with_its_reason() -> None:
    activities, final = played(ClaudeStream(), "claude-refused.jsonl")
    refused = [one for one in activities if one.kind is REFUSED]
    assert [(one.name, one.paths) for one in refused] == [
        ("Edit", (f"{TREE}/b.py",)), ("Write", ("/elsewhere/evil",)), ("Write", (f"{TREE}/.claude/settings.json",)),
    ]  # fmt: skip
    assert refused[0].text.startswith("b.py is not yours to change. You may change: src/**.")
    assert (final.text, final.fault) == ("Done.", None)


def test_a_tool_that_a_reader_does_not_have_is_a_refusal() -> None:
    activities, _ = played(ClaudeStream(), "claude-reader.jsonl")
    assert [one.name for one in activities if one.kind is REFUSED] == ["Edit"]


def test_a_command_that_failed_is_a_result_that_is_not_well() -> None:
    activities, _ = played(ClaudeStream(), "claude-shell.jsonl")
    assert [(one.name, one.ok) for one in activities if one.kind is RESULT] == [("Bash", True), ("Bash", False)]
    assert next(one for one in activities if one.kind is TOOL).text == "echo hi > src/n.txt; ls"


def test_thoughts_are_no_words() -> None:
    activities, final = played(ClaudeStream(), "claude-lie.jsonl")
    assert [one.kind for one in activities] == [THOUGHT, SAID]
    assert final.text == "Done, all changed."


def test_an_answer_by_schema_is_the_answer() -> None:
    _, final = played(ClaudeStream(), "claude-schema.jsonl")
    assert json.loads(final.text) == {"name": "x"}


@pytest.mark.parametrize(
    ("stream", "kind", "why"),
    [
        ("claude-401.jsonl", FaultKind.DENIED, "Invalid API key"),
        ("claude-429.jsonl", FaultKind.UNAVAILABLE, "slow down"),
        ("claude-no-login.jsonl", FaultKind.DENIED, "Log in with `claude`"),
    ],
)
def test_a_failure_says_what_follows_from_it(stream: str, kind: FaultKind, why: str) -> None:
    activities, final = played(ClaudeStream(), stream, 1)
    assert final.fault
    assert (final.fault.kind, why in final.fault.why) == (kind, True)
    assert {one.kind for one in activities} == {NOTE}


def test_a_known_price_is_told() -> None:
    stream = ClaudeStream()
    stream.line('{"type": "result", "result": "x", "total_cost_usd": 0.5, "modelUsage": {"m": {"costBasis": "list"}}}')
    assert stream.is_final(0).usage.usd == 0.5


@pytest.mark.parametrize(("exit_code", "failed"), [(0, True), (1, False), (None, False)])
def test_an_end_without_a_result_is_no_answer(exit_code: int | None, failed: bool) -> None:
    # Of any other end the backend says itself what it was.
    assert bool(ClaudeStream().is_final(exit_code).fault) is failed


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    survives(ClaudeStream())
