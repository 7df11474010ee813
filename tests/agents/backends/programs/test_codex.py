"""Codex: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from proofstone.agents.backends.programs.known.codex import PRESET, CodexStream, invoke, invoke_acp
from proofstone.agents.backends.programs.known.shared import build_hook_command
from proofstone.agents.backends.programs.preset import Invocation, LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from proofstone.common.models import Usage
from tests.agents.backends.programs.played import brief, played, survives
from tests.rows import each_row

SAID, TOOL, RESULT, NOTE = ActivityKind.SAID, ActivityKind.TOOL, ActivityKind.RESULT, ActivityKind.NOTE
URL = "http://127.0.0.1:1/v1"


def settings(started: Invocation) -> dict[str, object]:
    """What its `-c` options amount to: each must be TOML."""
    words = [str(word) for word in started.arguments]
    return {
        key: tomllib.loads(f"value = {value}")["value"]
        for flag, setting in pairwise(words)
        if flag == "-c"
        for key, _, value in [setting.partition("=")]
    }


def test_the_prompt_goes_by_standard_input_and_no_session_is_kept() -> None:
    started = invoke(LaunchRequest("do it", root=Path("/tree")))
    assert started.stdin == "do it"
    assert started.arguments[-1] == "-"
    assert "--ephemeral" in started.arguments
    assert started.arguments[started.arguments.index("-C") + 1] == "/tree"


@pytest.mark.parametrize(("model", "named"), [("gpt-5", ["--model=gpt-5"]), ("", [])])
def test_the_model_is_named_only_where_the_person_did_and_can_be_no_option(model: str, named: list[str]) -> None:
    for started in (invoke(LaunchRequest("", model=model)),):
        assert [one for one in started.arguments if str(one).startswith(("-m", "--model"))] == named


def test_patches_and_commands_go_through_the_hook() -> None:
    group = {"matcher": "Bash|apply_patch", "hooks": [{"type": "command", "command": build_hook_command()}]}
    assert settings(invoke(LaunchRequest("", scope=("a.py",))))["hooks.PreToolUse"] == [group]


@pytest.mark.parametrize(
    ("user", "scope", "mode"),
    [
        (1000, ("a.py",), "workspace-write"), (1000, (), "read-only"),
        (0, ("a.py",), "danger-full-access"), (0, (), "danger-full-access"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("start", [invoke, invoke_acp])
def test_its_sandbox_is_on_where_it_can_be_set_up(
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    scope: tuple[str, ...],
    mode: str,
    start: Callable[[LaunchRequest], Invocation],
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    told = settings(start(LaunchRequest("", scope=scope)))
    assert told["sandbox_mode"] == mode
    excluded = [told.get(f"sandbox_workspace_write.exclude_{one}") for one in ("slash_tmp", "tmpdir_env_var")]
    assert excluded == ([None, None] if user == 0 else [True, True])


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({"OPENAI_API_KEY": "k"}, "OPENAI_API_KEY"), ({"CODEX_API_KEY": "c", "OPENAI_API_KEY": "k"}, "CODEX_API_KEY"),
        ({"OPENAI_API_KEY": ""}, None),
    ],
)  # fmt: skip
def test_the_url_of_a_provider_becomes_a_provider(variables: dict[str, str], key: str | None) -> None:
    told = settings(invoke(LaunchRequest("", variables={"OPENAI_BASE_URL": URL, **variables})))
    expected = {"name": "given", "base_url": URL, "wire_api": "responses"} | ({"env_key": key} if key else {})
    assert (told["model_provider"], told["model_providers.given"]) == ("given", expected)


def test_without_a_url_its_own_provider_serves() -> None:
    assert "model_provider" not in settings(invoke(LaunchRequest("", variables={"OPENAI_API_KEY": "k"})))


def test_over_the_protocol_its_policy_asks_and_no_mode_overrides_it() -> None:
    told = settings(invoke_acp(LaunchRequest("", model="gpt-5")))
    assert (told["approval_policy"], told["model"], PRESET.acp_mode) == ("untrusted", "gpt-5", "")


def test_work_is_told_tool_by_tool() -> None:
    activities, final = played(CodexStream(), "codex-work.jsonl")
    path = ("/some/tree/src/a.py",)
    assert brief(activities) == [
        (NOTE, "", (), None), (SAID, "", (), None), (TOOL, "shell", (), None), (RESULT, "shell", (), True),
        (TOOL, "apply_patch", path, None), (RESULT, "apply_patch", path, True), (SAID, "", (), None),
    ]  # fmt: skip
    assert (final.text, final.fault) == ("Done, x is 2.", None)
    assert final.usage == Usage(requests=1, input_tokens=33, output_tokens=21, usd=None)


def test_a_refused_patch_is_not_in_its_output() -> None:
    activities, final = played(CodexStream(), "codex-refused.jsonl")
    assert not [one for one in activities if one.name == "apply_patch"]
    assert (final.text, final.fault) == ("Done.", None)


def test_a_command_that_failed_is_a_result_that_is_not_well() -> None:
    activities, _ = played(CodexStream(), "codex-shell.jsonl")
    assert [(one.name, one.ok) for one in activities if one.kind is RESULT] == [("shell", True), ("shell", False)]


def test_thoughts_are_no_words() -> None:
    activities, final = played(CodexStream(), "codex-lie.jsonl")
    assert [one.kind for one in activities] == [NOTE, ActivityKind.THOUGHT, SAID]
    assert final.text == "Done, all changed."


@pytest.mark.parametrize(
    ("stream", "kind", "why"),
    [
        ("codex-401.jsonl", FaultKind.DENIED, "`codex login`"),
        ("codex-429.jsonl", FaultKind.UNAVAILABLE, "429 Too Many Requests"),
        ("codex-too-long.jsonl", FaultKind.REJECTED, "context too long"),
    ],
)
def test_a_failure_says_what_follows_from_it(stream: str, kind: FaultKind, why: str) -> None:
    _, final = played(CodexStream(), stream, 1)
    assert final.fault
    assert (final.fault.kind, why in final.fault.why) == (kind, True)


@each_row(
    ("message", "kind"),
    [
        ("We’re currently experiencing high demand, which may cause temporary errors.", FaultKind.UNAVAILABLE),
        ("Connection failed: error sending request", FaultKind.UNAVAILABLE),
        ("stream disconnected before completion", FaultKind.UNAVAILABLE),
        ("Missing environment variable: `OPENAI_API_KEY`.", FaultKind.DENIED),
        ("unexpected status 403 Forbidden: no", FaultKind.DENIED),
        ("something else", FaultKind.FAILED),
    ],
)
def test_its_sentences_are_understood(message: str, kind: FaultKind) -> None:
    stream = CodexStream()
    stream.line(f'{{"type": "turn.failed", "error": {{"message": "{message}"}}}}')
    fault = stream.is_final(1).fault
    assert fault and fault.kind is kind


def test_an_error_that_it_got_over_is_no_fault() -> None:
    stream = CodexStream()
    stream.line('{"type": "error", "message": "Reconnecting... 1/5"}')
    stream.line('{"type": "turn.completed", "usage": {}}')
    assert stream.is_final(0).fault is None


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    survives(CodexStream())
