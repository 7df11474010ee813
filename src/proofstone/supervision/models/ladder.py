"""The re-verification ladder: its triggers, its three levels, its questions and their answers.

Also the position table: one row for each agent, as observed by the engine and as reported by the agent.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from proofstone.agents.roles.models.payload import AnswerPart
from proofstone.common.models import Finding, FrozenModel, Verdict
from proofstone.supervision.models.context import PhaseNumber, Phrase, Sentence
from proofstone.supervision.models.understanding import AnalysisItem, ItemVerdict


class ReverifyLevel(IntEnum):
    PING = 1
    """A ping that asks where the agent is."""
    QUESTION = 2
    """A question that needs understanding to answer."""
    ANALYSIS = 3
    """An abbreviated impact analysis."""


class ReverifyTrigger(StrEnum):
    """T4, the step to the next task, is not among them: each task has an agent of its own."""

    SILENCE = "T1"
    STALE_DOCS = "T2"
    SCOPE_CHANGE = "T3"
    LOW_TOOL_USE = "T5"
    DEVIATION = "T6"
    RECOVERY = "T7"


class ReverifyCause(FrozenModel):
    """One anomaly of one agent. It keeps its number while it climbs the ladder, until it is settled."""

    number: int = Field(ge=1)
    trigger: ReverifyTrigger
    level: ReverifyLevel
    reason: str


class DueQuestion(FrozenModel):
    """A question that is due or open."""

    level: ReverifyLevel
    causes: tuple[ReverifyCause, ...] = Field(min_length=1)
    """Every cause that the question is to settle. The strongest question that is due covers the weaker ones."""
    time: int = Field(default=1, ge=1)
    """For a ping, its number in a row. For an analysis, the number of the submission."""
    turns: int = 0
    """Turns without an answer, in which the agent used tools."""


class AnswerResult(StrEnum):
    """What an answer shows, or that there is no answer."""

    FITS = "fits"
    ANOMALY = "anomaly"
    UNDERSTOOD = "understood"
    GAP = "gap"
    UNVERIFIABLE = "unverifiable"
    INTACT = "intact"
    JUSTIFIED = "justified"
    UNJUSTIFIED = "unjustified"
    UNANSWERED = "unanswered"


class DeviationImpact(StrEnum):
    """How far the work is from its plan, in ascending order."""

    NONE = "NONE"
    MINOR_ADJUSTMENT = "MINOR_ADJUSTMENT"
    SIGNIFICANT_DEVIATION = "SIGNIFICANT_DEVIATION"

    @property
    def rank(self) -> int:
        return tuple(DeviationImpact).index(self)


class Category(StrEnum):
    """The category of a question that tests understanding."""

    INTERCONNECTION_MAP = "INTERCONNECTION_MAP"
    SCOPE_BOUNDARY = "SCOPE_BOUNDARY"
    RIPPLE_TRACE = "RIPPLE_TRACE"
    FAILURE_MODE = "FAILURE_MODE"
    DEPENDENCY_RISK = "DEPENDENCY_RISK"
    ASSUMPTION_PROBE = "ASSUMPTION_PROBE"
    ALTERNATIVE_DEMAND = "ALTERNATIVE_DEMAND"


class RequiredMentions(FrozenModel):
    """What an answer must name, as far as the engine knows."""

    what: Literal["files", "names"]
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    """If not empty, the answer must name at least one of these."""


class ReverifyQuestion(FrozenModel):
    category: Category
    text: Sentence
    expected: RequiredMentions | None = None
    """None if code cannot check the answer."""
    judged: bool = True
    """Whether a judge must say if the answer shows understanding."""
    is_about_change: bool = True
    """Whether the files that the answer names are files that the agent wants to change."""


class AnswerGrade(FrozenModel):
    """The grade of the answer to a question."""

    verdict: Verdict
    missing: tuple[str, ...] = ()
    """What the answer had to name and did not."""
    announced: tuple[str, ...] = ()
    """Files that the answer names beyond the declared ones."""
    changed_approach: bool = False
    """Whether the plan must be approved again before the work continues."""


class MiniAnalysis(AnswerPart):
    """The abbreviated impact analysis, and what has changed since the analysis before the work."""

    task: Sentence = Field(description="The task as you understand it now, and what is new about it.")
    files: Sentence = Field(description="Every file that you change or will change, and which of them are new.")
    downstream: Sentence = Field(description="Who your work affects, and whether what you said about that still holds.")
    claimed_before: Sentence = Field(description="The point of your first analysis that matters here.")
    reality: Sentence = Field(description="What is different now, and why.")
    impact: DeviationImpact


class LaterTask(FrozenModel):
    """A task that depends on the current one."""

    id: str
    title: str = ""
    files: tuple[str, ...] = ()


class AnalysisScore(FrozenModel):
    """An abbreviated analysis, compared with the plan and the real change."""

    result: Literal[AnswerResult.INTACT, AnswerResult.JUSTIFIED, AnswerResult.UNJUSTIFIED]
    claimed: DeviationImpact
    computed: DeviationImpact
    items: tuple[ItemVerdict, ...]
    hidden: Finding | None = None
    """A deviation that the agent did not admit: the engine's own observation contradicts its claim."""
    amended: tuple[str, ...] = ()
    """Undeclared files that the agent has changed or may change. Its file ownership must cover them."""
    reason: str

    @property
    def impact(self) -> DeviationImpact:
        """The greater of both."""
        return max(self.claimed, self.computed, key=lambda one: one.rank)

    @property
    def unverifiable(self) -> tuple[AnalysisItem, ...]:
        return tuple(item.item for item in self.items if item.verdict is Verdict.UNVERIFIABLE)


STEP_WORDS = 10


def _limit_words(value: object) -> object:
    return " ".join(value.split()[:STEP_WORDS]) if isinstance(value, str) else value


class PositionStatus(StrEnum):
    ON_TRACK = "ON_TRACK"
    ATTENTION = "ATTENTION"
    BLOCKED = "BLOCKED"
    REVERIFY = "REVERIFY"
    COMPLETING = "COMPLETING"
    COMPACT_RISK = "COMPACT_RISK"
    """The first instructions are about to leave the agent's context window."""


class DocsStatus(StrEnum):
    CURRENT = "current"
    STALE = "stale"
    """Source has changed since the report was last updated."""
    MISSING = "missing"


class ToolUse(StrEnum):
    """Whether an agent looks things up before it decides."""

    ACTIVE = "ACTIVE"
    LOW = "LOW"
    MISSING = "MISSING"
    EXEMPT = "EXEMPT"


class WorkKind(StrEnum):
    """The kind of work of a phase, which determines how much the agent must look up."""

    RESEARCH = "research"
    DESIGN = "design"
    PLANNING = "planning"
    IMPLEMENTATION = "implementation"


class SelfLocate(FrozenModel):
    """The position that an agent reports."""

    phase: PhaseNumber
    task: int = Field(ge=0, le=10_000)
    total: int = Field(ge=0, le=10_000)
    step: Annotated[Phrase, BeforeValidator(_limit_words)]
    progress: int = Field(ge=0, le=100)
    tool_calls: int = Field(ge=0, le=1_000_000)
    docs: DocsStatus


class Position(FrozenModel):
    """A row of the position table at one moment."""

    agent: str
    task: str
    number: int = 0
    total: int = 0
    """`Task 2/3`."""
    step: str
    progress: int | None
    """Met criteria in percent of all. None if the total is unknown."""
    last_self_locate: float | None
    docs: DocsStatus
    tool_calls: int
    tool_use: ToolUse
    turns: int
    files: tuple[str, ...] = ()
    tokens: int = 0
    quiet_seconds: float
    status: PositionStatus
    notes: tuple[str, ...] = ()


class AgentPosition(FrozenModel):
    """The position of an agent of a run, current or last observed."""

    part: str = ""
    """The part of the run, for example `gate 2`. Empty for the run itself."""
    at_work: bool
    """Whether the agent has not ended and the run is being driven."""
    position: Position
