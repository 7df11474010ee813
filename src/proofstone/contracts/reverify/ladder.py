"""The ladder of re-verification: what sets it off, its three levels, what is asked and what is answered."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Literal

from pydantic import Field

from proofstone.contracts.base import Contract
from proofstone.contracts.finding import Finding
from proofstone.contracts.pipeline.part import Part
from proofstone.contracts.reverify.text import Sentence
from proofstone.contracts.reverify.understanding import Item, ItemVerdict
from proofstone.contracts.verdict import Verdict


class Level(IntEnum):
    PING = 1
    """Where are you?"""
    QUESTION = 2
    """A question that only somebody can answer who understands."""
    ANALYSIS = 3
    """An abbreviated impact analysis."""


class Trigger(StrEnum):
    SILENCE = "T1"
    STALE_DOCS = "T2"
    SCOPE_CHANGE = "T3"
    MILESTONE = "T4"
    LOW_TOOL_USE = "T5"
    DEVIATION = "T6"
    RECOVERY = "T7"


class Cause(Contract):
    """One anomaly of one agent. It keeps its number while it goes up the ladder, until something has come of it."""

    number: int = Field(ge=1)
    trigger: Trigger
    level: Level
    reason: str


class Asked(Contract):
    """A question, on its way or open."""

    level: Level
    causes: tuple[Cause, ...] = Field(min_length=1)
    """All that it is to settle: the strongest question that is due speaks for the weaker ones."""
    time: int = Field(default=1, ge=1)
    """Of a ping, the how many-th in a row; of an analysis, the how many-th submission."""
    turns: int = 0
    """Turns that passed over it without an answer: the agent was using tools."""


class Result(StrEnum):
    """What an answer shows, or that there is none."""

    FITS = "fits"
    ANOMALY = "anomaly"
    UNDERSTOOD = "understood"
    GAP = "gap"
    UNVERIFIABLE = "unverifiable"
    INTACT = "intact"
    JUSTIFIED = "justified"
    UNJUSTIFIED = "unjustified"
    UNANSWERED = "unanswered"


class Impact(StrEnum):
    """How far the work is from its plan, from the least on."""

    NONE = "NONE"
    MINOR_ADJUSTMENT = "MINOR_ADJUSTMENT"
    SIGNIFICANT_DEVIATION = "SIGNIFICANT_DEVIATION"

    @property
    def rank(self) -> int:
        return tuple(Impact).index(self)


class Category(StrEnum):
    """Of questions that try whether somebody understands."""

    INTERCONNECTION_MAP = "INTERCONNECTION_MAP"
    SCOPE_BOUNDARY = "SCOPE_BOUNDARY"
    RIPPLE_TRACE = "RIPPLE_TRACE"
    FAILURE_MODE = "FAILURE_MODE"
    DEPENDENCY_RISK = "DEPENDENCY_RISK"
    ASSUMPTION_PROBE = "ASSUMPTION_PROBE"
    ALTERNATIVE_DEMAND = "ALTERNATIVE_DEMAND"


class Expected(Contract):
    """What an answer must name, as far as the engine knows."""

    what: Literal["files", "names"]
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    """One of them at least, if there are any."""


class Question(Contract):
    category: Category
    text: Sentence
    expected: Expected | None = None
    """None: code cannot check it."""
    judged: bool = True
    """Somebody has to say whether the rest of it shows understanding."""


class Grade(Contract):
    """What the answer to a question is worth."""

    verdict: Verdict
    missing: tuple[str, ...] = ()
    """What it must name and does not."""
    announced: tuple[str, ...] = ()
    """Files that it names beyond the declared ones."""
    changed_approach: bool = False
    """The plan is to be approved again before the work goes on."""


class MiniAnalysis(Part):
    """The abbreviated impact analysis, and what has changed since the one before the work."""

    task: Sentence = Field(description="The task as you understand it now; what is new about that.")
    files: Sentence = Field(description="Every file that you change or will change; which are new.")
    downstream: Sentence = Field(description="Who is affected after you; whether that still holds.")
    claimed_before: Sentence = Field(description="The point of the first analysis that matters.")
    reality: Sentence = Field(description="What differs, and why.")
    impact: Impact


class LaterTask(Contract):
    """A task that rests on this one."""

    id: str
    title: str = ""
    files: tuple[str, ...] = ()


class Score(Contract):
    """An abbreviated analysis, held against the plan and what really changed."""

    result: Literal[Result.INTACT, Result.JUSTIFIED, Result.UNJUSTIFIED]
    claimed: Impact
    computed: Impact
    items: tuple[ItemVerdict, ...]
    hidden: Finding | None = None
    """The deviation that it did not own up to: a claim that the engine's own observation contradicts."""
    amended: tuple[str, ...] = ()
    """Files beyond the declared ones that it has now, or may have: ownership is to cover them."""
    reason: str

    @property
    def impact(self) -> Impact:
        """The greater of both."""
        return max(self.claimed, self.computed, key=lambda one: one.rank)

    @property
    def unverifiable(self) -> tuple[Item, ...]:
        return tuple(one.item for one in self.items if one.verdict is Verdict.UNVERIFIABLE)
