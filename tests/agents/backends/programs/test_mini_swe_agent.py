"""mini-swe-agent: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

import pytest

from proofstone.agents.backends.programs.known.mini_swe_agent import MiniStream, invoke
from proofstone.agents.backends.programs.preset import LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from tests.agents.backends.programs.played import brief, played, survives

SAID, TOOL, RESULT = ActivityKind.SAID, ActivityKind.TOOL, ActivityKind.RESULT


def test_a_task_goes_by_an_argument() -> None:
    started = invoke(LaunchRequest("-do it", model="openai/m"))
    assert started.arguments[-1] == "--task=-do it"
    assert "--model=openai/m" in started.arguments
    assert not started.files


@pytest.mark.parametrize("prompt", ["x" * 100_001, "é" * 50_001])
def test_a_task_that_no_argument_holds_goes_by_a_file(prompt: str) -> None:
    started = invoke(LaunchRequest(prompt))
    assert started.files == {"PROOFSTONE_TASK": prompt}
    assert "PROOFSTONE_TASK" in str(started.arguments[-1])
    assert all(len(str(argument).encode()) <= 100_000 for argument in started.arguments)


def test_commands_and_what_came_of_them_are_seen() -> None:
    activities, final = played(MiniStream(), "mini-work.txt")
    assert brief(activities) == [
        (SAID, "", (), None),
        (TOOL, "bash", (), None),
        (RESULT, "bash", (), True),
        (SAID, "", (), None),
        (TOOL, "bash", (), None),
        (TOOL, "bash", (), None),
        (RESULT, "bash", (), False),
        (RESULT, "bash", (), True),
        (SAID, "", (), None),
        (TOOL, "bash", (), None),
    ]
    assert activities[1].text == "sed -i 's/x = 1/x = 2/' src/a.py; cat src/a.py"
    assert activities[2].text == "x = 2"
    assert final.text == "my last words\nthe second line"
    assert final.fault is None
    assert final.usage.requests == 3


@pytest.mark.parametrize(
    ("name", "exit_code", "kind"),
    [
        ("mini-no-command.txt", 0, FaultKind.FAILED),
        ("mini-401.txt", 1, FaultKind.DENIED),
        ("mini-500.txt", 1, FaultKind.UNAVAILABLE),
    ],
)
def test_why_it_gave_up_is_told(name: str, exit_code: int, kind: FaultKind) -> None:
    _, final = played(MiniStream(), name, exit_code)
    assert final.fault is not None
    assert final.fault.kind is kind


def test_a_command_that_prints_a_heading_does_not_end_the_run() -> None:
    stream = MiniStream()
    for line in ("mini-swe-agent (step 1, $0.25):", "Look.", "Tool:", "Exit:", "RepeatedFormatError", "─" * 40):
        list(stream.line(line))
    final = stream.is_final(0)
    assert final.fault is None
    assert final.text == "Look."
    assert final.usage.usd == 0.25


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    assert survives(MiniStream()).fault is None
