"""The models of the plan gate: the report of a run, and the setup of a run.

The report is built by code from the records. The setup is the first row of a run, and a resumed run takes it from
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field

from proofstone.agents.roles.models.plan_gate import Dimension
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ConvergenceStatus,
    IterationState,
    LookupResult,
    PlanQuality,
    ProbedRisk,
    SurfacedContext,
    TeamMode,
    Unknown,
)
from proofstone.common.models import Budget, BudgetUsage, FrozenModel
from proofstone.ledger.models import RunConfig


class PlanVerdict(StrEnum):
    """The verdict on a plan."""

    PROCEED = "PROCEED"
    REVISE = "REVISE"
    RETHINK = "RETHINK"


class Complexity(FrozenModel):
    """The points that decide the size of the team, by category."""

    steps: int = Field(default=0, ge=0, le=3)
    domains: int = Field(default=0, ge=0, le=3)
    integrations: int = Field(default=0, ge=0, le=4)
    compliance: int = Field(default=0, ge=0, le=2)
    unknowns: int = Field(default=0, ge=0, le=3)
    files: int = Field(default=0, ge=0, le=1)

    @property
    def total(self) -> int:
        """The sum of all points."""
        return self.steps + self.domains + self.integrations + self.compliance + self.unknowns + self.files


class ScoreLine(FrozenModel):
    """The score of one dimension."""

    dimension: Dimension
    weight: float
    score: int = Field(ge=1, le=10)
    evidence: str
    audited: int | None = None
    """The challenger's score in the closing audit; None if it gave none."""

    @property
    def is_disputed(self) -> bool:
        """Whether the two scores differ so much that both are shown."""
        return self.audited is not None and abs(self.audited - self.score) >= 2


class QualityScore(FrozenModel):
    """The quality score of a plan."""

    total: int = Field(ge=1, le=10)
    lines: tuple[ScoreLine, ...]


class OpenQuestion(FrozenModel):
    """A question for the person."""

    challenge: str
    question: str
    options: tuple[str, ...] = ()
    """The person can name each option by its number, from 1."""
    why: str = ""
    """The concern, and what would happen."""


class UserAnswer(FrozenModel):
    """The answer of a person about a challenge."""

    challenge: str
    text: str
    iteration: int


class FalseClaim(FrozenModel):
    """A claim that Proofstone found to be false: a finding against its author."""

    agent: str
    iteration: int
    about: str
    """The id of what rests on it, `U2`. In the ledger, where no id is known yet, it is the step."""
    looked: LookupResult


class PlanEventKind(StrEnum):
    """The kind of an event of the plan gate."""

    FAILURE = "failure"
    """An agent gave no answer."""
    OVERFLOW = "overflow"
    """There were more challenges than the cap allows."""
    DISPLACED = "displaced"
    DEGRADATION = "degradation"
    REFUSED = "refused"
    """The rules do not allow a ruling, a directive or a withdrawal."""
    BUDGET = "budget"
    """A tool call exceeded its budget, or a budget was raised."""
    TEAM = "team"
    """Which agents were asked, and why no others were."""


class PlanEvent(FrozenModel):
    """An event of an iteration."""

    iteration: int
    kind: PlanEventKind
    text: str


class PlanReport(FrozenModel):
    """The result of a run of the plan gate."""

    run_id: str
    plan_path: str
    plan: str = ""
    """The path of the plan from the root of the repository, if it is in the repository."""
    plan_digest: str
    """SHA-256 of the plan's content. The verdict is about this content only."""
    base_commit: str
    title: str = ""
    verdict: PlanVerdict | None
    """None while a question is open."""
    strong: bool = False
    """For REVISE: the revision is strongly recommended before work begins."""
    status: ConvergenceStatus
    reason: str
    """The row of the decision table that applied."""
    plan_quality: PlanQuality
    quality_reason: str = ""
    complexity: Complexity
    team_mode: TeamMode
    trivial: bool = False
    agents: Mapping[str, str] = {}
    """The agent of each role. Empty if the rules decided alone."""
    challenges: tuple[Challenge, ...] = ()
    lines: Mapping[str, int] = {}
    """The line of the plan that each challenge is about, by challenge id, if known."""
    rules: Mapping[str, str] = {}
    """The rule that found each challenge."""
    evidence: Mapping[str, str] = {}
    """The evidence that settled each challenge."""
    unknowns: tuple[Unknown, ...] = ()
    surfaced: tuple[SurfacedContext, ...] = ()
    risks: tuple[ProbedRisk, ...] = ()
    iterations: tuple[IterationState, ...] = ()
    score: QualityScore | None = None
    disputes: tuple[str, ...] = ()
    audit: str = ""
    """The challenger's closing summary."""
    against: tuple[FalseClaim, ...] = ()
    events: tuple[PlanEvent, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    answers: tuple[UserAnswer, ...] = ()
    debt_warning: bool = False
    """At least five challenges were deferred."""
    next_step: str = ""
    dispatches: int = 0
    spent: BudgetUsage = BudgetUsage()
    schema_version: Literal["1"] = "1"


class PlanGateSetup(RunConfig):
    """What a run of the plan gate was started with."""

    command: Literal["verify-plan"] = "verify-plan"
    plan_path: str
    plan_artifact: str
    """SHA-256 of the plan's content: editing the file does not change a run that has begun."""
    agents: Mapping[str, tuple[str, ...]] = {}
    """The agents of each role: the first choice, then the fallbacks. Empty if the rules decide alone."""
    alone: str = ""
    """Why no agent is asked, if so."""
    beyond: tuple[str, ...] = ()
    """The available tools that reach beyond the tree. Agents know only these, even if others are available when the run
    is resumed.
    """
    minutes: float = 0.0
    """The time limit of a session; 0 means none."""
    budget: Budget = Budget()
    answers: Mapping[str, str] = {}
    """The person's answers given in advance, by challenge."""
    notes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The plan that this run is about."""
        return self.plan_path
