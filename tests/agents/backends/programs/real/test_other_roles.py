"""Real coding agents in roles whose words are the answer: the same contracts, and the same repairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply
from tests.agents.backends.programs.real.desk import HONEST, desk

pytestmark = [pytest.mark.registry, pytest.mark.agents]

FOUND = {
    "completion": {"status": "DONE", "summary": "found it"},
    "focus": "architecture",
    "summary": "a shop",
    "findings": [],
    "source_files_examined": ["shop/cart.py"],
}


def researcher(asked: ReceivedRequest) -> Answer:
    """Its first answer is of no schema; shown that, it gives a right one, in the way that it is offered."""
    told = "\n".join(text for _, text in asked.messages)
    if "Your answer could not be used" not in told:
        return Reply(text="It is a shop, I think.")
    if "StructuredOutput" in asked.tools and not any(role == "assistant" for role, _ in asked.messages):
        return Reply(calls=(("StructuredOutput", FOUND),))
    return Reply(text=json.dumps(FOUND))


@pytest.mark.few(1)
@pytest.mark.parametrize("spec", ["acp:goose", "cli:claude"])
def test_a_researcher_is_held_to_its_schema(spec: str, place: Path, program: Callable[[str], Path]) -> None:
    name = spec.partition(":")[2]
    with desk(place / "desk", name, program(name), (), answer=researcher) as at:
        words = ("ask", "researcher:architecture", "what is there?", "--backend", spec, "--json")
        done = at.stage.workshop.proofstone(at.stage.root, *words, env=at.env)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert (answer["output"]["summary"], answer["repairs"]) == ("a shop", 1)


def test_an_architect_reads_and_decides(place: Path, program: Callable[[str], Path]) -> None:
    verdict = json.dumps({"verdict": "REJECTED", "findings": ["one() is of no use"], "feedback": "make it two()"})

    def answer(asked: ReceivedRequest) -> Answer:
        told = "\n".join(text for _, text in asked.messages)
        return at.player.answer(asked) if "You are the executor" in told else Reply(text=verdict)

    with desk(place / "desk", "goose", program("goose"), HONEST, answer=answer) as at:
        gated = at.gate("acp:goose", "--architect", "cli:goose")
    assert gated.exit == 1
    assert set(gated.failures(1)) == {"ARCHITECT_REJECTION"}
    assert "make it two()" in gated.stdout or "of no use" in gated.stdout
