"""What the loop asks for, what it is sent, and what is left when it has ended."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from proofstone.agents.roles.models.plan_gate import Mode
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    IterationState,
    LookedUp,
    Origin,
    PlanQuality,
    ProbedRisk,
    SurfacedContext,
    TeamMode,
    Unknown,
)
from proofstone.agents.rules.tool_budgets import ToolBudget
from proofstone.common.models import Contract
from proofstone.plan_gate.models import HeldAgainst, OpenQuestion, PersonsAnswer, PlanEvent, QualityScore
from proofstone.plan_gate.rules.board import Entering
from proofstone.plan_gate.rules.decision import Decision


@dataclass(frozen=True)
class Subject:
    """What is put through the gate."""

    plan_path: str
    quality: PlanQuality
    team: TeamMode | None
    """None: nobody is asked, and the rules decide alone."""
    rules: tuple[Entering, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    """What the person has said beforehand; used where nobody else is asked."""
    notes: tuple[str, ...] = ()
    """Who is asked and how, as far as the reader of the report should know."""

    @property
    def is_asked(self) -> bool:
        """Whether anybody is: not about a plan that cannot be run at all."""
        return self.team is not None and not any(rule.final for rule in self.rules)

    @property
    def mode(self) -> TeamMode:
        return self.team or TeamMode.BASE


@dataclass(frozen=True)
class Seen:
    """How far it has come: what whoever is asked is shown."""

    iteration: int
    last: bool
    challenges: tuple[Challenge, ...]
    unknowns: tuple[Unknown, ...]
    surfaced: tuple[SurfacedContext, ...]
    risks: tuple[ProbedRisk, ...]
    responses: tuple[str, ...]
    directives: tuple[str, ...]
    notes: tuple[str, ...]
    budget: ToolBudget


# What it asks for.


@dataclass(frozen=True)
class AskChallenges:
    """Sent back: Heard with a ChallengesOutput, or Failed."""

    origin: Origin
    at_most: int
    directives: tuple[str, ...]
    seen: Seen


@dataclass(frozen=True)
class AskResearch:
    """Sent back: Heard with the output of the mode, or Failed."""

    mode: Mode
    targets: tuple[str, ...]
    directives: tuple[str, ...]
    seen: Seen


@dataclass(frozen=True)
class AskSynthesis:
    """Sent back: Heard with a SynthesisOutput, or Failed."""

    seen: Seen


@dataclass(frozen=True)
class AskPerson:
    """Sent back: Answered, with something about at least one of the questions."""

    questions: tuple[OpenQuestion, ...]
    decision: Decision
    progress: Progress


@dataclass(frozen=True)
class AskAudit:
    """Sent back: Heard with a PlanAuditOutput, or Failed."""

    verdict: str
    seen: Seen


@dataclass(frozen=True)
class Iterated:
    """An iteration has ended: for the record and whoever looks on. Sent back: Noted."""

    state: IterationState
    challenges: tuple[Challenge, ...]
    events: tuple[PlanEvent, ...]
    """Of this iteration."""


Need = AskChallenges | AskResearch | AskSynthesis | AskPerson | AskAudit | Iterated


@dataclass(frozen=True)
class Heard:
    output: Contract
    looked: tuple[LookedUp, ...] = ()
    """What the engine saw of every claim in it."""
    refusals: tuple[str, ...] = ()
    """Tool calls beyond the budget."""


@dataclass(frozen=True)
class Failed:
    why: str
    unreadable: bool = False
    """There was an answer, and it is not of the schema."""


@dataclass(frozen=True)
class Answered:
    answers: Mapping[str, str]
    """By challenge."""


@dataclass(frozen=True)
class Noted:
    pass


Sent = Heard | Failed | Answered | Noted
Step = Generator[tuple[Need, ...], tuple[Sent, ...], None]


@dataclass(frozen=True)
class Progress:
    """All there is to report, at any time."""

    challenges: tuple[Challenge, ...]
    lines: Mapping[str, int]
    rules: Mapping[str, str]
    evidence: Mapping[str, str]
    unknowns: tuple[Unknown, ...]
    surfaced: tuple[SurfacedContext, ...]
    risks: tuple[ProbedRisk, ...]
    iterations: tuple[IterationState, ...]
    score: QualityScore | None
    disputes: tuple[str, ...]
    audit: str
    against: tuple[HeldAgainst, ...]
    events: tuple[PlanEvent, ...]
    answers: tuple[PersonsAnswer, ...]


@dataclass(frozen=True)
class Ended:
    decision: Decision
    progress: Progress


Loop = Generator[tuple[Need, ...], tuple[Sent, ...], Ended]
