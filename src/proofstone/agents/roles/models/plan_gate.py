"""What the agents of the plan gate answer. They number nothing: ids, status and origin are the engine's.

Where an answer speaks of a challenge it names the id that it was shown.

What the agents of the plan gate are asked. The descriptions are written for them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from proofstone.agents.models import Output
from proofstone.agents.roles.models.payload import Line, Part, Text
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeConfidence,
    PlanQuality,
    PlanSeverity,
    ProbedRisk,
    RepositoryClaim,
    SurfacedContext,
    SurfacedImpact,
    SurfacedSource,
    Unknown,
    UnknownResolution,
    UnknownType,
)
from proofstone.common.models import Contract

MOST_DRAFTS = 12
Shown = Annotated[str, Field(pattern=r"^C[1-9][0-9]*$", description="The id of a challenge that you were shown: `C3`.")]
Evidence = Annotated[
    tuple[RepositoryClaim, ...],
    Field(max_length=10, description="What it rests on, as claims to be looked up. A false one is held against you."),
]


class Mode(StrEnum):
    """Of a researcher at the plan gate."""

    RESOLVE = "resolve"
    """Settles open challenges."""
    SURFACE = "surface"
    """Looks for what was missed."""
    PROBE = "probe"
    """Looks for what could go wrong."""


class ChallengeDraft(Part):
    """A challenge, before the engine has taken it."""

    claim: Line = Field(description="What the plan assumes: `The plan assumes X`.")
    concern: Text = Field(description="When that fails, and why.")
    failure_scenario: Text = Field(description="Concretely: if this happens, that breaks, with this consequence.")
    alternative: Text = Field(description="What to do instead, and how that avoids it.")
    severity: PlanSeverity
    confidence: ChallengeConfidence
    mitigation: str = Field(default="", max_length=2000, description="What, taken into the plan, would answer it.")
    evidence: Evidence = ()


class Withdrawal(Part):
    challenge: Shown
    why: Text


class ChallengesOutput(Output):
    """What a challenger, a domain expert or a devil's advocate answers."""

    challenges: tuple[ChallengeDraft, ...] = Field(max_length=MOST_DRAFTS)
    withdrawals: tuple[Withdrawal, ...] = Field(
        default=(), max_length=MOST_DRAFTS, description="Challenges of your own that have turned out to be mistaken."
    )


class UnknownDraft(Part):
    description: Text = Field(description="What was not known and had to be.")
    type: UnknownType
    affects_challenge: Shown
    suggested_query: Line = Field(description="What you searched for, or would.")
    resolution: UnknownResolution
    source: Line = Field(description="Where it is seen: a path, a symbol, a commit, a URL.")
    finding: Text = Field(description="What was found.")
    impact: Line = Field(description="What that means for the challenge.")
    evidence: Evidence = ()


class ResolveOutput(Output):
    """What a researcher answers who settles open challenges."""

    unknowns: tuple[UnknownDraft, ...] = Field(max_length=16)


class SurfacedDraft(Part):
    source: SurfacedSource
    location: Line = Field(description="The exact path, key or commit.")
    relevance: Text = Field(description="Why it matters to this plan.")
    impact: SurfacedImpact
    challenge: ChallengeDraft | None = Field(
        default=None, description="The challenge that follows from it; always where it contradicts the plan."
    )
    evidence: Evidence = ()


class SurfaceOutput(Output):
    """What a researcher answers who looks for what was missed."""

    surfaced: tuple[SurfacedDraft, ...] = Field(max_length=MOST_DRAFTS)


class RiskDraft(Part):
    risk: Text
    trigger: Text = Field(description="The condition that sets it off.")
    cascade: Text = Field(description="What follows from it.")
    probability: Literal["LOW", "MED"]
    severity: PlanSeverity
    challenge: ChallengeDraft | None = Field(
        default=None, description="The challenge that follows from it; always if it is at least SIGNIFICANT."
    )
    evidence: Evidence = ()


class ProbeOutput(Output):
    """What a researcher answers who looks for what could go wrong."""

    risks: tuple[RiskDraft, ...] = Field(max_length=MOST_DRAFTS)


class Ruling(Part):
    """What becomes of one challenge. Code decides whether it may."""

    challenge: Shown
    status: Literal["OPEN", "RESOLVED", "UNRESOLVED", "DEFERRED", "WITHDRAWN"]
    resolution: str = Field(default="", max_length=4000, description="How it was settled, or why it is not.")
    mitigation: str = Field(default="", max_length=2000, description="What is to be taken into the plan.")
    evidence: tuple[str, ...] = Field(
        default=(),
        max_length=20,
        description="Ids of what speaks against it: `U2`, `S1`, or `person` for their answer.",
    )


class DirectiveKind(StrEnum):
    RE_SWEEP = "RE-SWEEP"
    RE_PROBE = "RE-PROBE"
    RAISE_BUDGET = "RAISE-BUDGET"
    NOTE = "NOTE"


class DirectiveReason(StrEnum):
    """When a sweep or a probe may be done again."""

    NEW_BLOCKING_CONTRADICTS_CONTEXT = "new-blocking-contradicts-context"
    RESPONSE_CHANGES_SCOPE = "response-changes-scope"
    NEW_DEPENDENCY_CHAIN = "new-dependency-chain"
    CASCADE_NOT_EXPLORED = "cascade-not-explored"


class Directive(Part):
    """What the next iteration is told."""

    kind: DirectiveKind
    reason: DirectiveReason | None = Field(default=None, description="Of RE-SWEEP and RE-PROBE: which condition holds.")
    text: Line = Field(description="What exactly is to be looked at.")
    mode: Mode | None = Field(default=None, description="Of RAISE-BUDGET: whose.")
    tool: str = Field(default="", max_length=40, description="Of RAISE-BUDGET: of which tool, as in the budgets shown.")
    by: int = Field(default=0, ge=0, le=8, description="Of RAISE-BUDGET: how many calls more.")


class QuestionDraft(Part):
    """What only the person can answer."""

    challenge: Shown
    question: Text
    options: tuple[Line, ...] = Field(default=(), max_length=5)


class Dimension(StrEnum):
    APPROACH = "approach"
    RISK = "risk"
    ASSUMPTIONS = "assumptions"
    INTEGRATION = "integration"
    UNKNOWNS = "unknowns"
    CONSTRAINTS = "constraints"


class DimensionScore(Part):
    dimension: Dimension
    score: int = Field(ge=1, le=10)
    evidence: Line


class Dispute(Part):
    """Where those who were asked do not agree."""

    challenge: Shown
    text: Text


class SynthesisOutput(Output):
    """What a synthesizer answers."""

    rulings: tuple[Ruling, ...] = Field(max_length=60)
    directives: tuple[Directive, ...] = Field(default=(), max_length=10)
    questions: tuple[QuestionDraft, ...] = Field(
        default=(), max_length=10, description="One for each BLOCKING challenge that you call UNRESOLVED."
    )
    scores: tuple[DimensionScore, ...] = Field(default=(), max_length=6, description="Of the plan, one per dimension.")
    disputes: tuple[Dispute, ...] = Field(default=(), max_length=20)


class PlanAuditOutput(Output):
    """What the challenger says at the close."""

    scores: tuple[DimensionScore, ...] = Field(default=(), max_length=6)
    disputes: tuple[Dispute, ...] = Field(
        default=(), max_length=20, description="Challenges that you think were settled wrongly, and why."
    )
    summary: Text


_PLAN = Field(description="The plan, with the number of each line before it.")
_CHALLENGES = Field(default=(), description="What has been brought against the plan so far, and what became of it.")


class Discussed(Contract):
    """What every agent of the plan gate is shown."""

    plan_path: str
    plan: str = _PLAN
    plan_quality: PlanQuality
    iteration: int = Field(ge=1, le=3, description="Of at most 3.")
    challenges: tuple[Challenge, ...] = _CHALLENGES
    responses: tuple[str, ...] = Field(default=(), description="What the person has answered.")


class ChallengeRequest(Discussed):
    at_most: int = Field(ge=0, description="So many new challenges are taken; of more, the weakest are left out.")
    directives: tuple[str, ...] = Field(default=(), description="What you are asked to mind, and why.")
    findings: tuple[Unknown, ...] = Field(default=(), description="What was found out so far.")


class ResearchPlanRequest(Discussed):
    """Of a researcher, in each of the three modes."""

    targets: tuple[str, ...] = Field(default=(), description="The challenges that are still open: settle these.")
    findings: tuple[Unknown, ...] = Field(default=(), description="What was found out so far.")
    surfaced: tuple[SurfacedContext, ...] = Field(default=(), description="What was surfaced so far.")
    risks: tuple[ProbedRisk, ...] = Field(default=(), description="What was probed so far.")
    directives: tuple[str, ...] = Field(default=(), description="What you are asked to look at again, and why.")
    tool_budget: tuple[str, ...] = Field(default=(), description="How often you may use each tool; more is refused.")


class SynthesisRequest(Discussed):
    last: bool = Field(default=False, description="Whether there is no iteration after this one.")
    findings: tuple[Unknown, ...] = Field(
        default=(), description="`[VERIFIED: …]` was seen by the engine itself; `[UNVERIFIED: …]` is an agent's word."
    )
    surfaced: tuple[SurfacedContext, ...] = ()
    risks: tuple[ProbedRisk, ...] = ()
    directives: tuple[str, ...] = Field(default=(), description="What you have directed so far.")
    notes: tuple[str, ...] = Field(default=(), description="What the engine has seen: failures, false claims, caps.")
    tool_budgets: tuple[str, ...] = Field(default=(), description="By mode and tool; only RAISE-BUDGET raises one.")


class PlanAuditRequest(Discussed):
    findings: tuple[Unknown, ...] = ()
    verdict: str = Field(description="What the table of the runtime has decided.")
