"""The ladder of re-verification: what sets it off, its three levels, what is asked and what is answered.

Where an agent stands: a row of the position table, and what an agent says of it itself.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from proofstone.agents.roles.models.payload import Part
from proofstone.common.models import Contract, Finding, Verdict
from proofstone.supervision.models.context import PhaseNumber, Phrase, Sentence
from proofstone.supervision.models.understanding import Item, ItemVerdict


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
        return tuple(item.item for item in self.items if item.verdict is Verdict.UNVERIFIABLE)


STEP_WORDS = 10


def _brief(value: object) -> object:
    return " ".join(value.split()[:STEP_WORDS]) if isinstance(value, str) else value


class PositionStatus(StrEnum):
    ON_TRACK = "ON_TRACK"
    ATTENTION = "ATTENTION"
    BLOCKED = "BLOCKED"
    REVERIFY = "REVERIFY"
    COMPLETING = "COMPLETING"
    COMPACT_RISK = "COMPACT_RISK"
    """What it was told first is about to be pushed out of what it can see."""


class Docs(StrEnum):
    CURRENT = "current"
    STALE = "stale"
    """Source has changed since the report was last updated."""
    MISSING = "missing"


class ToolUse(StrEnum):
    """Whether an agent looks before it decides."""

    ACTIVE = "ACTIVE"
    LOW = "LOW"
    MISSING = "MISSING"
    EXEMPT = "EXEMPT"


class Work(StrEnum):
    """What kind of work a phase is, as far as it asks for looking things up."""

    RESEARCH = "research"
    DESIGN = "design"
    PLANNING = "planning"
    IMPLEMENTATION = "implementation"


class SelfLocate(Contract):
    """Where an agent says it is."""

    phase: PhaseNumber
    task: int = Field(ge=0, le=10_000)
    total: int = Field(ge=0, le=10_000)
    step: Annotated[Phrase, BeforeValidator(_brief)]
    progress: int = Field(ge=0, le=100)
    tool_calls: int = Field(ge=0, le=1_000_000)
    docs: Docs


class Position(Contract):
    """A row of the table, for one moment."""

    agent: str
    task: str
    number: int = 0
    total: int = 0
    """`Task 2/3`."""
    step: str
    progress: int | None
    """Criteria met of all, in percent; None: nobody knows how many there are."""
    last_self_locate: float | None
    docs: Docs
    tool_calls: int
    tool_use: ToolUse
    turns: int
    files: tuple[str, ...] = ()
    tokens: int = 0
    quiet_seconds: float
    status: PositionStatus
    notes: tuple[str, ...] = ()


class AgentSeen(Contract):
    """Where an agent of a run stands, or stood when it was last seen."""

    part: str = ""
    """Of which part of the run: `gate 2`; empty: of the run itself."""
    at_work: bool
    """It has not ended, and somebody is at work on the run."""
    position: Position
