"""GitHub Copilot: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from proofstone.agents.backends.programs.known.copilot import PRESET, CopilotStream, invoke, invoke_acp
from proofstone.agents.backends.programs.preset import Invocation, LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from proofstone.common.models import Usage
from tests.agents.backends.programs.played import brief, played, survives
from tests.rows import each_row

SAID, TOOL, RESULT, REFUSED = ActivityKind.SAID, ActivityKind.TOOL, ActivityKind.RESULT, ActivityKind.REFUSED


def test_the_prompt_goes_by_standard_input() -> None:
    started = invoke(LaunchRequest("do it"))
    assert started.stdin == "do it"
    assert "-p" not in started.arguments


@each_row("start", [invoke, invoke_acp])
@each_row(
    ("errand", "denied"),
    [
        (LaunchRequest("", scope=("a.py",)), []),
        (LaunchRequest("", scope=("a.py",), can_run=False), ["--deny-tool=shell"]),
        (LaunchRequest("", scope=()), ["--deny-tool=write"]),
        (LaunchRequest("", scope=(), can_run=False), ["--deny-tool=write", "--deny-tool=shell"]),
    ],
)
def test_what_a_role_may_not_do_is_denied(
    start: Callable[[LaunchRequest], Invocation], errand: LaunchRequest, denied: list[str]
) -> None:
    assert [one for one in start(errand).arguments if str(one).startswith("--deny-tool")] == denied


@pytest.mark.parametrize("start", [invoke, invoke_acp])
def test_it_keeps_to_the_work_tree(start: Callable[[LaunchRequest], Invocation]) -> None:
    arguments = start(LaunchRequest("", scope=("a.py",))).arguments
    assert "--disallow-temp-dir" in arguments
    assert not {"--allow-all", "--yolo", "--allow-all-paths"} & set(arguments)


def test_over_the_protocol_no_tool_is_allowed_beforehand() -> None:
    assert "--allow-all-tools" in invoke(LaunchRequest("")).arguments
    assert "--allow-all-tools" not in invoke_acp(LaunchRequest("")).arguments
    assert PRESET.acp_mode.endswith("#agent")


@pytest.mark.parametrize(("model", "named"), [("gpt-5", ["--model=gpt-5"]), ("", [])])
def test_the_model_is_named_only_where_the_person_did_and_can_be_no_option(model: str, named: list[str]) -> None:
    for started in (invoke(LaunchRequest("", model=model)), invoke_acp(LaunchRequest("", model=model))):
        assert [one for one in started.arguments if str(one).startswith(("-m", "--model"))] == named


def test_tokens_that_open_more_than_copilot_are_not_handed_on() -> None:
    assert not {"GH_TOKEN", "GITHUB_TOKEN"} & set(PRESET.keys)


def test_work_is_told_tool_by_tool() -> None:
    activities, final = played(CopilotStream(), "copilot-work.jsonl")
    path = ("/some/tree/src/a.py",)
    assert brief(activities) == [
        (SAID, "", (), None), (TOOL, "view", path, None), (RESULT, "view", path, True),
        (TOOL, "edit", path, None), (RESULT, "edit", path, True), (SAID, "", (), None),
    ]  # fmt: skip
    assert (final.text, final.model, final.fault) == ("Done, x is 2.", "scripted-model", None)
    assert final.usage == Usage(requests=3, usd=None)


def test_what_lies_outside_the_tree_is_refused_and_an_undeclared_file_is_not() -> None:
    activities, final = played(CopilotStream(), "copilot-refused.jsonl")
    assert [(one.name, one.paths) for one in activities if one.kind is REFUSED] == [("create", ("/elsewhere/evil4",))]
    assert [one.ok for one in activities if one.kind is RESULT and one.name == "edit"] == [True]
    assert final.fault is None


def test_what_a_reader_is_denied_is_a_refusal() -> None:
    activities, _ = played(CopilotStream(), "copilot-reader.jsonl")
    assert [one.name for one in activities if one.kind is REFUSED] == ["bash", "edit"]


def test_a_command_that_failed_is_a_result_that_is_not_well() -> None:
    activities, _ = played(CopilotStream(), "copilot-shell.jsonl")
    assert [(one.name, one.ok) for one in activities if one.kind is RESULT] == [("bash", True), ("bash", False)]


def test_thoughts_are_no_words() -> None:
    activities, final = played(CopilotStream(), "copilot-lie.jsonl")
    assert [one.kind for one in activities] == [ActivityKind.THOUGHT, SAID]
    assert final.text == "Done, all changed."


@pytest.mark.parametrize(
    ("stream", "kind", "why"),
    [
        ("copilot-401.jsonl", FaultKind.DENIED, "Authentication failed"),
        ("copilot-429.jsonl", FaultKind.UNAVAILABLE, "slow down"),
    ],
)
def test_a_failure_says_what_follows_from_it(stream: str, kind: FaultKind, why: str) -> None:
    _, final = played(CopilotStream(), stream, 1)
    assert final.fault
    assert (final.fault.kind, why in final.fault.why) == (kind, True)


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    survives(CopilotStream())
