"""What agents of a benchmark say at once: researchers and reviewers of the pipeline, of the size that theirs have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, Turn
from proofstone.agents.roles.models.pipeline import ResearchFocus, ReviewFocus
from proofstone.pipeline.rules.effects import AskAgent, AskResearch, AskReview

_DETAIL: Final = "It sums the prices of what is in it, and nothing counts them yet. " * 4
_DONE: Final[Mapping[str, JsonValue]] = {"completion": {"status": "DONE", "summary": "looked at the cart"}}


def _research(focus: str) -> dict[str, JsonValue]:
    found: list[JsonValue] = [
        {"id": f"F{n}", "title": "The cart", "detail": _DETAIL, "evidence": [f"shop/cart.py:{n}"], "relevance": "high"}
        for n in range(1, 4)
    ]
    return {**_DONE, "focus": focus, "findings": found, "summary": "A cart that sums.", "source_files_examined": []}


def _review(focus: str) -> dict[str, JsonValue]:
    finding: dict[str, JsonValue] = {
        "title": "It counts nothing",
        "severity": "minor",
        "category": "correctness",
        "description": _DETAIL,
        "affected": ["shop/cart.py:1"],
        "recommendation": "Say so.",
        "evidence": "the line itself",
    }
    verdict: dict[str, JsonValue] = {"verdict": "approve", "confidence": "high", "summary": "As asked for."}
    return {**_DONE, "review_focus": focus, "scope": "code", "findings": [finding, finding], **verdict}


ANSWERS: Final[Mapping[str, Mapping[str, JsonValue]]] = {
    **{f"researcher:{focus}": _research(focus) for focus in ResearchFocus},
    **{f"reviewer:{focus}": _review(focus) for focus in ReviewFocus},
}
"""By agent."""
TEXTS: Final = {agent: json.dumps(answer) for agent, answer in ANSWERS.items()}


class AtOnce:
    """Implements `Backend`: it knows what to say."""

    identity = BackendIdentity("at-once")

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn:
        return Turn(text=TEXTS[conversation.occasion.agent], model="at-once")

    def close(self) -> None:
        return None


def needs(steps: int, numbers: count[int]) -> list[AskAgent]:
    """So many, in the pipeline's own words, and none that was there before."""
    asked: list[AskAgent] = []
    while len(asked) < steps:
        number = next(numbers)
        asked += [AskResearch(focus, number) for focus in ResearchFocus]
        asked += [AskReview("code", focus, number) for focus in ReviewFocus]
    return asked[:steps]
