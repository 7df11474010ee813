"""The effects that the loop yields, the results that it receives, and what is left when it has ended."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from proofstone.agents.roles.models.plan_gate import ResearchMode
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeOrigin,
    IterationState,
    LookupResult,
    PlanQuality,
    ProbedRisk,
    SurfacedContext,
    TeamMode,
    Unknown,
)
from proofstone.agents.rules.tool_budgets import ToolBudget
from proofstone.common.serialization import AnyModel, serializable
from proofstone.plan_gate.models import FalseClaim, OpenQuestion, PlanEvent, QualityScore, UserAnswer
from proofstone.plan_gate.rules.board import NewChallenge
from proofstone.plan_gate.rules.decision import PlanDecision
from proofstone.runtime.rules import EffectDone


@dataclass(frozen=True)
class PlanSubject:
    """The plan that goes through the gate."""

    plan_path: str
    quality: PlanQuality
    team: TeamMode | None
    """None if no agent is asked and the rules decide alone."""
    rules: tuple[NewChallenge, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    """The person's answers given in advance; used if no agent is asked."""
    notes: tuple[str, ...] = ()
    """Notes for the reader of the report about who is asked."""

    @property
    def has_agents(self) -> bool:
        """Whether agents are asked. They are not asked about a plan that cannot be run at all."""
        return self.team is not None and not any(rule.is_final for rule in self.rules)

    @property
    def mode(self) -> TeamMode:
        """The team mode; BASE if no agent is asked."""
        return self.team or TeamMode.BASE


@dataclass(frozen=True)
class DiscussionSnapshot:
    """The state of the discussion that agents are shown."""

    iteration: int
    is_last: bool
    challenges: tuple[Challenge, ...]
    unknowns: tuple[Unknown, ...]
    surfaced: tuple[SurfacedContext, ...]
    risks: tuple[ProbedRisk, ...]
    responses: tuple[str, ...]
    directives: tuple[str, ...]
    notes: tuple[str, ...]
    budget: ToolBudget


# Effects


@serializable("plan_gate.ask_challenges")
@dataclass(frozen=True)
class AskChallenges:
    """Ask a challenger. The result is a reply with a ChallengesOutput, or a failure."""

    origin: ChallengeOrigin
    max_challenges: int
    directives: tuple[str, ...]
    snapshot: DiscussionSnapshot


@serializable("plan_gate.ask_plan_research")
@dataclass(frozen=True)
class AskPlanResearch:
    """Ask a researcher. The result is a reply with the output of the mode, or a failure."""

    mode: ResearchMode
    targets: tuple[str, ...]
    directives: tuple[str, ...]
    snapshot: DiscussionSnapshot


@serializable("plan_gate.ask_synthesis")
@dataclass(frozen=True)
class AskSynthesis:
    """Ask the synthesizer. The result is a reply with a SynthesisOutput, or a failure."""

    snapshot: DiscussionSnapshot


@serializable("plan_gate.ask_plan_questions")
@dataclass(frozen=True)
class AskPlanQuestions:
    """Ask the person. The result is the answers, with an answer to at least one of the questions."""

    questions: tuple[OpenQuestion, ...]
    decision: PlanDecision
    progress: PlanProgress


@serializable("plan_gate.ask_plan_audit")
@dataclass(frozen=True)
class AskPlanAudit:
    """Ask for the closing audit. The result is a reply with a PlanAuditOutput, or a failure."""

    verdict: str
    snapshot: DiscussionSnapshot


@serializable("plan_gate.record_iteration")
@dataclass(frozen=True)
class RecordIteration:
    """Record that an iteration ended, and show it to the observer. The result is an acknowledgement."""

    state: IterationState
    challenges: tuple[Challenge, ...]
    events: tuple[PlanEvent, ...]
    """The events of this iteration."""


AskPlanAgent = AskChallenges | AskPlanResearch | AskSynthesis | AskPlanAudit
PlanEffect = AskPlanAgent | AskPlanQuestions | RecordIteration


@serializable("plan_gate.agent_reply")
@dataclass(frozen=True)
class PlanAgentReply:
    """The answer of an agent."""

    output: AnyModel
    lookups: tuple[LookupResult, ...] = ()
    """What Proofstone found out about every claim in the answer."""
    refusals: tuple[str, ...] = ()
    """Tool calls beyond the budget."""


@serializable("plan_gate.agent_failure")
@dataclass(frozen=True)
class PlanAgentFailure:
    """An agent gave no usable answer."""

    reason: str
    is_unreadable: bool = False
    """There was an answer, but it does not follow the schema."""


@serializable("plan_gate.answers")
@dataclass(frozen=True)
class PlanAnswers:
    """The person's answers."""

    answers: Mapping[str, str]
    """By challenge."""


PlanEffectResult = PlanAgentReply | PlanAgentFailure | PlanAnswers | EffectDone
DiscussionStep = Generator[tuple[PlanEffect, ...], tuple[PlanEffectResult, ...], None]


@dataclass(frozen=True)
class PlanProgress:
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
    against: tuple[FalseClaim, ...]
    events: tuple[PlanEvent, ...]
    answers: tuple[UserAnswer, ...]


@dataclass(frozen=True)
class PlanLoopResult:
    """The result of the loop."""

    decision: PlanDecision
    progress: PlanProgress


PlanWorkflow = Generator[tuple[PlanEffect, ...], tuple[PlanEffectResult, ...], PlanLoopResult]
