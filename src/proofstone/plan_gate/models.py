"""The plan gate: what is said about a plan before work starts.

record.py    challenge, unknown, surfaced context, probed risk, iteration state: the protocol's own words
evidence.py  claims that the engine can look up, and what it saw
answers.py   what the agents of the plan gate answer
requests.py  what they are asked
report.py    what came of it
setup.py     what a run of the plan gate was started with

What came of putting a plan through the gate. Made by code, from the record.

What a run of the plan gate was started with. It is the first row of the run; a resumed run takes it from there.
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
    LookedUp,
    PlanQuality,
    ProbedRisk,
    SurfacedContext,
    TeamMode,
    Unknown,
)
from proofstone.common.models import Budget, Contract, Spent
from proofstone.ledger.models import BegunSetup


class PlanVerdict(StrEnum):
    PROCEED = "PROCEED"
    REVISE = "REVISE"
    RETHINK = "RETHINK"


class Complexity(Contract):
    """How the size of the team was found: points by what they are given for."""

    steps: int = Field(default=0, ge=0, le=3)
    domains: int = Field(default=0, ge=0, le=3)
    integrations: int = Field(default=0, ge=0, le=4)
    compliance: int = Field(default=0, ge=0, le=2)
    unknowns: int = Field(default=0, ge=0, le=3)
    files: int = Field(default=0, ge=0, le=1)

    @property
    def total(self) -> int:
        return self.steps + self.domains + self.integrations + self.compliance + self.unknowns + self.files


class ScoreLine(Contract):
    dimension: Dimension
    weight: float
    score: int = Field(ge=1, le=10)
    evidence: str
    audited: int | None = None
    """What the challenger gives at the close; None: it said nothing about it."""

    @property
    def disputed(self) -> bool:
        """Both scores are shown then."""
        return self.audited is not None and abs(self.audited - self.score) >= 2


class QualityScore(Contract):
    total: int = Field(ge=1, le=10)
    lines: tuple[ScoreLine, ...]


class OpenQuestion(Contract):
    """What the person is asked."""

    challenge: str
    question: str
    options: tuple[str, ...] = ()
    """Each can be named by its number, from 1."""
    why: str = ""
    """What is feared, and what would happen."""


class PersonsAnswer(Contract):
    challenge: str
    text: str
    iteration: int


class HeldAgainst(Contract):
    """A claim that the engine could not find to be true: a finding against its author."""

    agent: str
    iteration: int
    about: str
    """The id of what rested on it, `U2`; in the record, which is written before there is one, the step."""
    looked: LookedUp


class EventKind(StrEnum):
    FAILURE = "failure"
    """An agent gave no answer."""
    OVERFLOW = "overflow"
    """Challenges beyond a cap."""
    DISPLACED = "displaced"
    DEGRADATION = "degradation"
    REFUSED = "refused"
    """A ruling, a directive or a withdrawal that the rules do not allow."""
    BUDGET = "budget"
    """A tool call beyond its budget, or a budget that was raised."""
    TEAM = "team"
    """Who was asked, and why nobody else was."""


class PlanEvent(Contract):
    iteration: int
    kind: EventKind
    text: str


class PlanReport(Contract):
    run_id: str
    plan_path: str
    plan: str = ""
    """Its path from the root of the repository, where it lies in it."""
    plan_digest: str
    """SHA-256 of the plan's bytes: the verdict is about these and no others."""
    base_commit: str
    title: str = ""
    verdict: PlanVerdict | None
    """None: a question is waiting."""
    strong: bool = False
    """Of REVISE: strongly recommended before anything is begun."""
    status: ConvergenceStatus
    reason: str
    """Why it is so, by the table."""
    plan_quality: PlanQuality
    quality_reason: str = ""
    complexity: Complexity
    team_mode: TeamMode
    trivial: bool = False
    agents: Mapping[str, str] = {}
    """Who served whom; nobody: the rules alone."""
    challenges: tuple[Challenge, ...] = ()
    lines: Mapping[str, int] = {}
    """Where in the plan a challenge points, by its id, as far as that is known."""
    rules: Mapping[str, str] = {}
    """By challenge: which rule has found it."""
    evidence: Mapping[str, str] = {}
    """By challenge: what it was settled by."""
    unknowns: tuple[Unknown, ...] = ()
    surfaced: tuple[SurfacedContext, ...] = ()
    risks: tuple[ProbedRisk, ...] = ()
    iterations: tuple[IterationState, ...] = ()
    score: QualityScore | None = None
    disputes: tuple[str, ...] = ()
    audit: str = ""
    """The challenger's closing words."""
    against: tuple[HeldAgainst, ...] = ()
    events: tuple[PlanEvent, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    answers: tuple[PersonsAnswer, ...] = ()
    debt_warning: bool = False
    """At least five were deferred."""
    next_step: str = ""
    dispatches: int = 0
    spent: Spent = Spent()
    schema_version: Literal["1"] = "1"


class PlanGateSetup(BegunSetup):
    command: Literal["verify-plan"] = "verify-plan"
    plan_path: str
    plan_artifact: str
    """SHA-256 of the plan's own bytes: editing the file does not change a run that is under way."""
    agents: Mapping[str, tuple[str, ...]] = {}
    """Who serves each role, the fallbacks behind the first. Nobody: the rules decide alone."""
    alone: str = ""
    """Why nobody is asked, if so."""
    beyond: tuple[str, ...] = ()
    """Tools that look further than the tree, as far as there were any: agents were told of these, whatever there is
    when the run goes on."""
    minutes: float = 0.0
    """The longest that it may take at a time; 0: as long as it needs."""
    budget: Budget = Budget()
    answers: Mapping[str, str] = {}
    """What the person has said beforehand, by challenge."""
    notes: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return self.plan_path
