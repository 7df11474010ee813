"""How long, how often, how many. A limit is a setting; these are its values and the range it may have."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from proofstone.contracts.base import Contract

MINUTE: Final = 60.0


class Limits(Contract):
    silence_seconds: float = Field(default=15 * MINUTE, gt=0, le=24 * 60 * MINUTE)
    """Longer than this without an event, and the agent is pinged."""
    question_apart_seconds: float = Field(default=30 * MINUTE, ge=0, le=24 * 60 * MINUTE)
    """Between two questions of level 2 to one agent. One that comes sooner waits."""
    pings: int = Field(default=3, ge=1, le=10)
    """In a row without an answer, and the agent is replaced."""
    submissions: int = Field(default=3, ge=1, le=10)
    """Of an abbreviated analysis, before the agent is replaced. There is one analysis in a task."""
    patience_turns: int = Field(default=10, ge=1, le=100)
    """Turns of nothing but tool calls, before an open question counts as unanswered."""
    stale_in_a_row: int = Field(default=2, ge=1, le=10)
    """Times that an agent says where it is with stale documents, before it is pinged about them."""
    milestones: bool = False
    """Whether an agent is asked when it goes from one task to the next."""


WINDOW_SHARE: Final = 0.8
"""Of what a model can see. Beyond that, what it was told first is at risk."""
HALF: Final = 0.5
"""Of the criteria: by then an agent must have looked something up."""
LARGE_DELTA: Final = 0.5
"""Of a context. Where more than that has changed, the whole of it is sent."""
