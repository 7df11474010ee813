"""opencode: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.backends.programs.known.opencode import OpencodeStream, invoke, invoke_acp
from proofstone.agents.backends.programs.preset import Invocation, LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from proofstone.common.models import Usage
from tests.agents.backends.programs.played import brief, played, survives
from tests.rows import each_row

SAID, TOOL, RESULT, REFUSED = ActivityKind.SAID, ActivityKind.TOOL, ActivityKind.RESULT, ActivityKind.REFUSED
URL = "http://127.0.0.1:1/v1"


def config(started: Invocation) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(started.variables["OPENCODE_CONFIG_CONTENT"])
    return told


def test_the_prompt_goes_by_standard_input_and_nothing_of_the_project_is_loaded() -> None:
    started = invoke(LaunchRequest("do it"))
    assert started.stdin == "do it"
    assert started.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    assert started.variables["OPENCODE_DB"] == ":memory:"


@each_row(
    ("scope", "allowed"),
    [
        ((), []),
        (("src/a.py",), ["src/a.py", "src/a.py/*"]),
        (("src/",), ["src", "src/*"]),
        (("./src/**",), ["src/*", "src/*/*"]),
        (("**/x.py",), ["*x.py", "*x.py/*"]),
        ((".",), ["*"]),
    ],
)
def test_only_the_scope_may_be_edited(scope: tuple[str, ...], allowed: list[str]) -> None:
    edit = config(invoke(LaunchRequest("", scope=scope)))["permission"]["edit"]
    assert [pattern for pattern, action in edit.items() if action == "allow"] == allowed
    # The last rule that matches decides, so what denies all must come first.
    assert allowed == ["*"] or next(iter(edit.items())) == ("*", "deny")


def test_a_tree_that_is_no_repository_has_its_scope_too() -> None:
    edit = config(invoke(LaunchRequest("", scope=("a.py",), root=Path("/some/tree"))))["permission"]["edit"]
    allowed = ["a.py", "a.py/*", "some/tree/a.py", "some/tree/a.py/*"]
    assert edit == {"*": "deny", **dict.fromkeys(allowed, "allow")}


@pytest.mark.parametrize(("start", "running"), [(invoke, "allow"), (invoke_acp, "ask")])
def test_commands_are_for_those_who_may_run_them(start: Callable[[LaunchRequest], Invocation], running: str) -> None:
    assert config(start(LaunchRequest("", can_run=True)))["permission"]["bash"] == running
    assert config(start(LaunchRequest("", can_run=False)))["permission"]["bash"] == "deny"


@pytest.mark.parametrize(("scope", "action"), [(("a.py",), "ask"), ((), "deny")])
def test_over_the_protocol_it_asks_about_every_edit(scope: tuple[str, ...], action: str) -> None:
    assert config(invoke_acp(LaunchRequest("", scope=scope)))["permission"]["edit"] == {"*": action}


@pytest.mark.parametrize(
    ("model", "variables", "named"),
    [
        ("anthropic/opus", {}, ["--model=anthropic/opus"]),
        ("anthropic/opus", {"OPENAI_BASE_URL": URL}, ["--model=anthropic/opus"]),
        ("local", {"OPENAI_BASE_URL": URL}, ["--model=given/local"]),
        ("", {"OPENAI_BASE_URL": URL}, []),
    ],
)
def test_a_model_without_a_provider_is_that_of_the_persons_url(
    model: str, variables: dict[str, str], named: list[str]
) -> None:
    started = invoke(LaunchRequest("", model=model, variables=variables))
    assert [one for one in started.arguments if str(one).startswith(("-m", "--model"))] == named
    assert ("provider" in config(started)) is (model == "local")


@pytest.mark.parametrize(("key", "options"), [("k", {"apiKey": "{env:OPENAI_API_KEY}"}), ("", {})])
def test_a_key_is_named_and_never_written_down(key: str, options: dict[str, str]) -> None:
    variables = {"OPENAI_BASE_URL": URL, "OPENAI_API_KEY": key}
    provider = config(invoke(LaunchRequest("", model="local", variables=variables)))["provider"]["given"]
    assert provider["options"] == {"baseURL": URL, **options}


def test_work_is_told_tool_by_tool() -> None:
    activities, final = played(OpencodeStream(), "opencode-work.jsonl")
    path = ("/some/tree/src/a.py",)
    assert brief(activities) == [
        (SAID, "", (), None), (TOOL, "read", path, None), (RESULT, "read", path, True),
        (TOOL, "edit", path, None), (RESULT, "edit", path, True), (SAID, "", (), None),
    ]  # fmt: skip
    assert (final.text, final.fault) == ("Done, x is 2.", None)
    # It says that a model costs nothing whose price it does not know.
    assert final.usage == Usage(requests=3, input_tokens=33, output_tokens=21, usd=None)


def test_what_a_permission_refused_is_a_refusal() -> None:
    activities, final = played(OpencodeStream(), "opencode-refused.jsonl")
    refused = [(one.name, one.paths) for one in activities if one.kind is REFUSED]
    assert refused == [("edit", ("/some/tree/b.py",)), ("write", ("/elsewhere/evil4",))]
    assert (final.text, final.fault) == ("Done.", None)


def test_a_tool_that_a_reader_does_not_have_is_a_refusal() -> None:
    activities, _ = played(OpencodeStream(), "opencode-reader.jsonl")
    assert [one.name for one in activities if one.kind is REFUSED] == ["bash", "edit"]


def test_a_command_that_failed_is_a_result_that_is_not_well() -> None:
    activities, _ = played(OpencodeStream(), "opencode-shell.jsonl")
    assert [(one.name, one.ok) for one in activities if one.kind is RESULT] == [("bash", True), ("bash", False)]


def test_a_known_price_is_told() -> None:
    stream = OpencodeStream()
    for _ in range(2):
        stream.line('{"type": "step_finish", "part": {"cost": 0.25, "tokens": {"input": 1}}}')
    assert stream.is_final(0).usage.usd == 0.5


@pytest.mark.parametrize(
    ("stream", "kind", "why"),
    [
        ("opencode-401.jsonl", FaultKind.DENIED, "`opencode auth login`"),
        ("opencode-429.jsonl", FaultKind.UNAVAILABLE, "slow down"),
        ("opencode-too-long.jsonl", FaultKind.REJECTED, "context too long"),
    ],
)
def test_a_failure_says_what_follows_from_it(stream: str, kind: FaultKind, why: str) -> None:
    _, final = played(OpencodeStream(), stream, 1)
    assert final.fault
    assert (final.fault.kind, why in final.fault.why) == (kind, True)


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    survives(OpencodeStream())
