"""Deadlines of a model: until its answer begins, within it, and for the whole; and what is said while it is awaited."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proofstone.agents.backends.api.answer_watch import AnswerWatch, SilenceError
from proofstone.agents.models import FaultKind
from proofstone.config.providers import ModelSettings, ProviderProtocol
from proofstone.testing.model_server.answers import Answer, Hang, Reply
from tests.agents.backends.api_world import conversation, served, site_in, the_fault, the_turn

SLOW = Reply(text="a b c d", pieces=4, pause=30)
LIMITS: dict[str, tuple[ModelSettings, Answer, str]] = {
    "before the answer": (ModelSettings(first_seconds=0.2), Hang(), "did not begin its answer for 0.2 s"),
    "before an answer in one piece": (ModelSettings(first_seconds=0.2, stream=False), Hang(), "`first_seconds`"),
    "within the answer": (ModelSettings(pause_seconds=0.2), SLOW, "sent nothing more in the middle of its answer"),
    "for the whole answer": (ModelSettings(answer_seconds=0.4), SLOW, "did not answer within 0.4 s"),
}


@pytest.mark.parametrize(("settings", "answer", "why"), LIMITS.values(), ids=LIMITS)
def test_a_model_that_is_silent_for_too_long_is_a_timeout_that_names_its_limit(
    settings: ModelSettings, answer: Answer, why: str, tmp_path: Path
) -> None:
    with served(ProviderProtocol.OPENAI_CHAT, [answer], settings) as (model, _):
        fault = the_fault(model.turn(conversation(), site_in(tmp_path), 60))
    assert fault.kind is FaultKind.TIMEOUT and why in fault.why


def test_an_answer_within_its_limits_is_an_answer(tmp_path: Path) -> None:
    settings = ModelSettings(first_seconds=50, pause_seconds=50, answer_seconds=50)
    with served(ProviderProtocol.OPENAI_CHAT, [Reply(text="here")], settings) as (model, _):
        assert the_turn(model.turn(conversation(), site_in(tmp_path), 60)).text == "here"


def test_what_is_waited_for_is_said_in_words() -> None:
    watch = AnswerWatch(None, None, lambda _: None)
    assert watch.describe(12.4) == "waiting for the first token, 12 s so far"
    watch.count(400)
    assert watch.describe(20) == "about 100 tokens of the answer in 20 s"


def test_the_first_part_and_the_others_have_limits_of_their_own() -> None:
    async def never() -> None:
        await asyncio.sleep(3600)

    async def wait(watch: AnswerWatch) -> SilenceError:
        with pytest.raises(SilenceError) as caught:
            await watch.wait(never())
        return caught.value

    watch = AnswerWatch(0.01, 0.02, lambda _: None)
    first = asyncio.run(wait(watch))
    watch.count(1)
    later = asyncio.run(wait(watch))
    assert (first.has_begun, first.seconds, later.has_begun, later.seconds) == (False, 0.01, True, 0.02)
