"""What an agent is told when it says that it is done."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from proofstone.hooks.agent_hooks import DIALECTS
from tests.hooks.place import Place
from tests.needs import needs

pytestmark = needs("git")

WRONG = "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"
AGENTS = [*sorted(DIALECTS), "opencode"]


def stop(
    place: Place, agent: str = "claude", said: object = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """As the agent's program would call it."""
    told = said if said is not None else {"session_id": "one", "cwd": str(place.root), "stop_hook_active": False}
    return place.workshop.proofstone(
        place.root,
        *("hook", "run", "agent-stop", "--agent", agent),
        env=variables,
        told=told if isinstance(told, str) else json.dumps(told),
    )


def answered(place: Place, agent: str = "claude", **told: object) -> dict[str, Any]:
    said = {"session_id": "one", "cwd": str(place.root), **told}
    done = stop(place, agent, said)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize("agent", AGENTS)
def test_what_does_not_pass_is_sent_back_in_the_words_of_the_agents_program(place: Place, agent: str) -> None:
    place.write(a=WRONG)
    answer = answered(place, agent, stop_hook_active=False)
    if agent == "cursor":
        message = answer["followup_message"]
    else:
        message = answer["reason"]
        assert answer["decision"] == ("deny" if agent == "gemini" else "block")
    assert "a.md:1" in message
    assert "proofstone check" in message
    assert len(message) < 2000


def test_what_passes_is_passed_over_in_silence_and_where_nothing_has_changed_it_is_said(place: Place) -> None:
    answer = answered(place)
    assert list(answer) == ["systemMessage"]
    assert "Proofstone checked nothing: the work tree equals" in answer["systemMessage"]
    place.write(a="new\n")
    assert answered(place) == {}


def test_after_three_rounds_it_may_stop_and_the_person_is_told(place: Place) -> None:
    place.write(a=WRONG)
    assert "decision" in answered(place, stop_hook_active=False)
    for _ in range(2):
        assert "decision" in answered(place, stop_hook_active=True)
    last = answered(place, stop_hook_active=True)
    assert "decision" not in last
    assert "now lets it stop" in last["systemMessage"]
    assert "a.md" in last["systemMessage"]
    assert "decision" in answered(place, stop_hook_active=False)


def test_rounds_are_counted_for_each_conversation_and_end_with_a_pass(place: Place) -> None:
    place.write(a=WRONG)
    for _ in range(2):
        assert "decision" in answered(place, "copilot")  # which does not say whether it was sent back before
    assert "decision" in answered(place, "copilot", session_id="two")
    place.write(a="put right\n")
    assert answered(place, "copilot") == {}
    place.write(a=WRONG)
    for _ in range(3):
        assert "decision" in answered(place, "copilot")
    assert "systemMessage" in answered(place, "copilot")
    assert "decision" in answered(place, "copilot", session_id="two")


def test_where_there_is_nothing_to_compare_with_it_is_said_and_nobody_is_held(place: Place) -> None:
    outside = place.at(place.root.parent)
    assert "not inside a git repository" in answered(outside, cwd=str(outside.root))["systemMessage"]


def test_what_keeps_proofstone_from_checking_is_sent_back_too(place: Place) -> None:
    """An agent that breaks the settings has not proved anything."""
    (place.root / "proofstone.toml").write_text("[check]\nno_such = 1\n")
    answer = answered(place)
    assert answer["decision"] == "block"
    assert "could not be run" in answer["reason"]
    assert "proofstone.toml:2" in answer["reason"]


def test_an_executor_of_the_gate_is_left_alone(place: Place) -> None:
    place.write(a=WRONG)
    done = stop(place, PROOFSTONE_TASK="task.json")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(("said", "words"), [("no json", "not valid JSON"), ("[1]", "not a JSON object")])
def test_what_is_no_message_of_an_agent_is_an_error(place: Place, said: str, words: str) -> None:
    done = stop(place, said=said)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_an_agent_that_nobody_knows_is_an_error(place: Place) -> None:
    done = stop(place, "hal")
    assert done.returncode == 2
    assert "one of" in done.stderr
