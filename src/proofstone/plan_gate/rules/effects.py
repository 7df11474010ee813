"""The effects that the loop yields, the results that it receives, and what is left when it has ended."""

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
    """The plan that goes through the gate."""

    plan_path: str
    quality: PlanQuality
    team: TeamMode | None
    """None if no agent is asked and the rules decide alone."""
    rules: tuple[Entering, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    """The person's answers given in advance; used if no agent is asked."""
    notes: tuple[str, ...] = ()
    """Notes for the reader of the report about who is asked."""

    @property
    def is_asked(self) -> bool:
        """Whether agents are asked. They are not asked about a plan that cannot be run at all."""
        return self.team is not None and not any(rule.final for rule in self.rules)

    @property
    def mode(self) -> TeamMode:
        """The team mode; BASE if no agent is asked."""
        return self.team or TeamMode.BASE


@dataclass(frozen=True)
class Seen:
    """The state of the discussion that agents are shown."""

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


# Effects


@dataclass(frozen=True)
class AskChallenges:
    """Ask a challenger. The result is Heard with a ChallengesOutput, or Failed."""

    origin: Origin
    at_most: int
    directives: tuple[str, ...]
    seen: Seen


@dataclass(frozen=True)
class AskResearch:
    """Ask a researcher. The result is Heard with the output of the mode, or Failed."""

    mode: Mode
    targets: tuple[str, ...]
    directives: tuple[str, ...]
    seen: Seen


@dataclass(frozen=True)
class AskSynthesis:
    """Ask the synthesizer. The result is Heard with a SynthesisOutput, or Failed."""

    seen: Seen


@dataclass(frozen=True)
class AskPerson:
    """Ask the person. The result is Answered, with an answer to at least one of the questions."""

    questions: tuple[OpenQuestion, ...]
    decision: Decision
    progress: Progress


@dataclass(frozen=True)
class AskAudit:
    """Ask for the closing audit. The result is Heard with a PlanAuditOutput, or Failed."""

    verdict: str
    seen: Seen


@dataclass(frozen=True)
class Iterated:
    """Record that an iteration ended, and show it to the observer. The result is Noted."""

    state: IterationState
    challenges: tuple[Challenge, ...]
    events: tuple[PlanEvent, ...]
    """The events of this iteration."""


Need = AskChallenges | AskResearch | AskSynthesis | AskPerson | AskAudit | Iterated


@dataclass(frozen=True)
class Heard:
    """The answer of an agent."""

    output: Contract
    looked: tuple[LookedUp, ...] = ()
    """What Proofstone found out about every claim in the answer."""
    refusals: tuple[str, ...] = ()
    """Tool calls beyond the budget."""


@dataclass(frozen=True)
class Failed:
    """An agent gave no usable answer."""

    why: str
    unreadable: bool = False
    """There was an answer, but it does not follow the schema."""


@dataclass(frozen=True)
class Answered:
    """The person's answers."""

    answers: Mapping[str, str]
    """By challenge."""


@dataclass(frozen=True)
class Noted:
    pass


Sent = Heard | Failed | Answered | Noted
Step = Generator[tuple[Need, ...], tuple[Sent, ...], None]


@dataclass(frozen=True)
class Progress:
    """Everything that can be reported at any time."""

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
    """The result of the loop."""

    decision: Decision
    progress: Progress


Loop = Generator[tuple[Need, ...], tuple[Sent, ...], Ended]
