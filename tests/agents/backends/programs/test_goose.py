"""goose: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

import pytest

from proofstone.agents.backends.programs.known.goose import PRESET, GooseStream, invoke, invoke_acp
from proofstone.agents.backends.programs.preset import EditLimit, LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from tests.agents.backends.programs.played import brief, played, survives

SAID, TOOL, RESULT = ActivityKind.SAID, ActivityKind.TOOL, ActivityKind.RESULT


@pytest.mark.parametrize(
    ("errand", "has_tools"),
    [
        (LaunchRequest("", scope=("a.py",)), True),
        (LaunchRequest("", scope=("a.py",), can_run=False), True),
        (LaunchRequest("", scope=(), can_run=True), True),
        (LaunchRequest("", scope=(), can_run=False), False),
    ],
)
def test_one_that_may_neither_change_nor_run_has_no_tools(errand: LaunchRequest, has_tools: bool) -> None:
    assert ("developer" in invoke(errand).arguments) == has_tools


def test_the_prompt_goes_by_standard_input_and_the_model_by_its_flag() -> None:
    started = invoke(LaunchRequest("do it", model="gpt-5"))
    assert started.stdin == "do it"
    assert started.arguments[-2:] == ("--instructions", "-")
    assert "--model=gpt-5" in started.arguments
    assert started.variables["GOOSE_MODE"] == "auto"
    assert not any("--model" in str(one) for one in invoke(LaunchRequest("")).arguments)


def test_by_the_protocol_it_asks_about_everything() -> None:
    started = invoke_acp(LaunchRequest("", model="gpt-5"))
    assert started.arguments[0] == "acp"
    assert started.variables["GOOSE_MODE"] == "approve" == PRESET.acp_mode
    assert started.variables["GOOSE_MODEL"] == "gpt-5"
    assert "GOOSE_MODEL" not in invoke_acp(LaunchRequest("")).variables


def test_it_is_said_that_it_has_no_limit_of_paths() -> None:
    assert PRESET.limit is EditLimit.NONE


def test_work_is_seen_message_by_message() -> None:
    activities, final = played(GooseStream(), "goose-work.jsonl")
    assert brief(activities) == [
        (SAID, "", (), None),
        (TOOL, "shell", (), None),
        (RESULT, "shell", (), False),
        (TOOL, "edit", ("src/a.py",), None),
        (TOOL, "write", ("b.py",), None),
        (RESULT, "edit", ("src/a.py",), True),
        (RESULT, "write", ("b.py",), True),
        (SAID, "", (), None),
    ]
    assert activities[0].text == "I look first."
    assert final.text == "All done."
    assert final.fault is None
    assert final.model == "m3"
    assert (final.usage.requests, final.usage.input_tokens, final.usage.output_tokens) == (3, 33, 21)
    assert final.usage.cache_read_tokens == 3


def test_a_tool_that_it_does_not_have_fails() -> None:
    activities, _ = played(GooseStream(), "goose-reader.jsonl")
    assert [one.ok for one in activities if one.kind is RESULT] == [False]


def test_a_lie_is_no_more_than_words() -> None:
    activities, final = played(GooseStream(), "goose-lie.jsonl")
    assert [activity.kind for activity in activities] == [SAID]
    assert final.text == "Done, x is 2 now."


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("goose-401.jsonl", FaultKind.DENIED),
        ("goose-429.jsonl", FaultKind.UNAVAILABLE),
        ("goose-500.jsonl", FaultKind.UNAVAILABLE),
        ("goose-no-provider.txt", FaultKind.DENIED),
    ],
)
def test_an_error_is_told_whatever_the_exit_code(name: str, kind: FaultKind) -> None:
    _, final = played(GooseStream(), name)
    assert final.fault is not None
    assert final.fault.kind is kind
    assert "Please re" not in final.fault.why


def test_what_the_model_says_of_errors_is_no_error() -> None:
    stream = GooseStream()
    line = (
        '{"type":"message","message":{"id":"1","role":"assistant","content":[{"type":"text","text":"Network error: '
        'is fixed"}],"metadata":{"inference":{"requestedModel":"m"}}}}'
    )
    list(stream.line(line))
    assert stream.is_final(0).fault is None
    assert stream.is_final(0).text == "Network error: is fixed"


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    assert survives(GooseStream()).text == ""
