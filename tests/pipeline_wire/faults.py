"""The ways in which a provider can let a run down, and when it does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from proofstone.testing.model_server.answers import Answer, Disconnect, Garbage, HttpError, Reply, StreamError
from tests.pipeline_wire.played import Disturb, Question


@dataclass(frozen=True)
class Trouble:
    """What is said in place of the right answer, and what it leaves on record."""

    answer: Callable[[Reply], Answer]
    record: str = "Fault"
    """The message that tells of it; empty: none does, for nothing was wrong."""


def _late(reply: Reply) -> Reply:
    time.sleep(0.3)
    return reply


def _no_json(reply: Reply) -> Reply:
    return replace(reply, raw_arguments='{"completion": {"status":')


TROUBLES = {
    "429": Trouble(lambda _: HttpError(429, retry_after=0.02)),
    "500": Trouble(lambda _: HttpError(500)),
    "cut": Trouble(lambda _: Disconnect(after_pieces=1)),
    "cut-at-once": Trouble(lambda _: Disconnect()),
    "overloaded-while-it-speaks": Trouble(lambda _: StreamError()),
    "no-json": Trouble(lambda _: Garbage(b'{"id": "x", "choices": [{')),
    "a-login-page": Trouble(lambda _: Garbage()),
    "an-answer-that-is-no-json": Trouble(_no_json, "Repair"),
    "slow-first-byte": Trouble(_late, ""),
}
OUTAGES = tuple(name for name, trouble in TROUBLES.items() if trouble.record == "Fault")
"""Those that a provider cannot be reached by, if they last."""


def once(trouble: Trouble, role: str) -> Disturb:
    """When this role would give its answer, the first time."""
    hit: list[Question] = []

    def disturb(_: int, question: Question, reply: Reply) -> Answer:
        if question.asker.role != role or reply.calls[0][0] != "answer" or hit:
            return reply
        hit.append(question)
        return trouble.answer(reply)

    return disturb


def ever(trouble: Trouble, role: str) -> Disturb:
    """Whenever this role would give its answer."""

    def disturb(_: int, question: Question, reply: Reply) -> Answer:
        at_its_answer = question.asker.role == role and reply.calls[0][0] == "answer"
        return trouble.answer(reply) if at_its_answer else reply

    return disturb


def now_and_then(every: int) -> Disturb:
    """Every so manieth request, each time by another of them."""
    troubles = list(TROUBLES.values())

    def disturb(number: int, _: Question, reply: Reply) -> Answer:
        wrong = number % every == 0 and reply.calls[0][0] == "answer"
        return troubles[number // every % len(troubles)].answer(reply) if wrong else reply

    return disturb
