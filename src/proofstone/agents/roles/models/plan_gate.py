"""Requests and answers of the agents at the plan gate.

The engine assigns ids, status and origin; agents do not. An answer refers to a challenge by the id in the request. The
descriptions of fields are written for the agents.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from proofstone.agents.models import RoleOutput
from proofstone.agents.roles.models.payload import AnswerPart, LongText, ShortText
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
from proofstone.common.models import FrozenModel

MAX_DRAFTS = 12
ChallengeRef = Annotated[
    str, Field(pattern=r"^C[1-9][0-9]*$", description="The id of a challenge in your request, such as `C3`.")
]
ClaimEvidence = Annotated[
    tuple[RepositoryClaim, ...],
    Field(
        max_length=10,
        description="The claims that this rests on. The engine looks them up; a false claim is reported against you.",
    ),
]


class ResearchMode(StrEnum):
    """The mode of a researcher at the plan gate."""

    RESOLVE = "resolve"
    """Settle open challenges."""
    SURFACE = "surface"
    """Look for what the plan missed."""
    PROBE = "probe"
    """Look for what could go wrong."""


class ChallengeDraft(AnswerPart):
    """A challenge that the engine has not accepted yet."""

    claim: ShortText = Field(description="What the plan assumes: `The plan assumes X`.")
    concern: LongText = Field(description="When that assumption fails, and why.")
    failure_scenario: LongText = Field(description="Concretely: if this happens, that breaks, with this consequence.")
    alternative: LongText = Field(description="What to do instead, and how that avoids the failure.")
    severity: PlanSeverity
    confidence: ChallengeConfidence
    mitigation: str = Field(default="", max_length=2000, description="The addition to the plan that would answer it.")
    evidence: ClaimEvidence = ()


class Withdrawal(AnswerPart):
    challenge: ChallengeRef
    why: LongText
    evidence: tuple[str, ...] = Field(
        default=(),
        max_length=20,
        description="Ids of the evidence against it: `U2`. Required unless the challenge is MINOR.",
    )


class ChallengesOutput(RoleOutput):
    """The answer of a challenger, a domain expert or a devil's advocate."""

    challenges: tuple[ChallengeDraft, ...] = Field(max_length=MAX_DRAFTS)
    withdrawals: tuple[Withdrawal, ...] = Field(
        default=(), max_length=MAX_DRAFTS, description="Challenges of your own that have turned out to be mistaken."
    )


class UnknownDraft(AnswerPart):
    description: LongText = Field(description="What was not known and had to be found out.")
    type: UnknownType
    affects_challenge: ChallengeRef
    suggested_query: ShortText = Field(description="What you searched for, or would search for.")
    resolution: UnknownResolution
    source: ShortText = Field(description="Where it can be seen: a path, a symbol, a commit, a URL.")
    finding: LongText = Field(description="What was found.")
    impact: ShortText = Field(description="What that means for the challenge.")
    evidence: ClaimEvidence = ()


class ResolveOutput(RoleOutput):
    """The answer of a researcher that settles open challenges."""

    unknowns: tuple[UnknownDraft, ...] = Field(max_length=16)


class SurfacedDraft(AnswerPart):
    source: SurfacedSource
    location: ShortText = Field(description="The exact path, key or commit.")
    relevance: LongText = Field(description="Why it matters to this plan.")
    impact: SurfacedImpact
    challenge: ChallengeDraft | None = Field(
        default=None, description="The challenge that follows from it; required if it contradicts the plan."
    )
    evidence: ClaimEvidence = ()


class SurfaceOutput(RoleOutput):
    """The answer of a researcher that looks for what the plan missed."""

    surfaced: tuple[SurfacedDraft, ...] = Field(max_length=MAX_DRAFTS)


class RiskDraft(AnswerPart):
    risk: LongText
    trigger: LongText = Field(description="The condition that sets it off.")
    cascade: LongText = Field(description="What follows from it.")
    probability: Literal["LOW", "MED"]
    severity: PlanSeverity
    challenge: ChallengeDraft | None = Field(
        default=None, description="The challenge that follows from it; required if the risk is at least SIGNIFICANT."
    )
    evidence: ClaimEvidence = ()


class ProbeOutput(RoleOutput):
    """The answer of a researcher that looks for what could go wrong."""

    risks: tuple[RiskDraft, ...] = Field(max_length=MAX_DRAFTS)


class ChallengeRuling(AnswerPart):
    """The synthesizer's decision on one challenge. Code decides whether the ruling is allowed."""

    challenge: ChallengeRef
    status: Literal["OPEN", "RESOLVED", "UNRESOLVED", "DEFERRED", "WITHDRAWN"]
    resolution: str = Field(default="", max_length=4000, description="How it was settled, or why it was not.")
    mitigation: str = Field(default="", max_length=2000, description="What to add to the plan.")
    evidence: tuple[str, ...] = Field(
        default=(),
        max_length=20,
        description="Ids of the evidence against the challenge: `U2`, `S1`, or `person` for the person's answer.",
    )


class DirectiveKind(StrEnum):
    RE_SWEEP = "RE-SWEEP"
    RE_PROBE = "RE-PROBE"
    RAISE_BUDGET = "RAISE-BUDGET"
    NOTE = "NOTE"


class DirectiveReason(StrEnum):
    """The conditions under which a sweep or a probe may be repeated."""

    NEW_BLOCKING_CONTRADICTS_CONTEXT = "new-blocking-contradicts-context"
    RESPONSE_CHANGES_SCOPE = "response-changes-scope"
    NEW_DEPENDENCY_CHAIN = "new-dependency-chain"
    CASCADE_NOT_EXPLORED = "cascade-not-explored"


class Directive(AnswerPart):
    """An instruction for the next iteration."""

    kind: DirectiveKind
    reason: DirectiveReason | None = Field(
        default=None, description="For RE-SWEEP and RE-PROBE: the condition that holds."
    )
    text: ShortText = Field(description="What exactly to look at.")
    challenge: ChallengeRef | None = Field(
        default=None, description="For `new-blocking-contradicts-context`: the new BLOCKING challenge."
    )
    contradicts: str | None = Field(
        default=None,
        pattern=r"^S[1-9][0-9]*$",
        description="For `new-blocking-contradicts-context`: the surfaced context that the challenge contradicts.",
    )
    mode: ResearchMode | None = Field(default=None, description="For RAISE-BUDGET: the mode.")
    tool: str = Field(default="", max_length=40, description="For RAISE-BUDGET: the tool, as named in the budgets.")
    by: int = Field(default=0, ge=0, le=8, description="For RAISE-BUDGET: how many more calls.")


class QuestionDraft(AnswerPart):
    """A question that only the person can answer."""

    challenge: ChallengeRef
    question: LongText
    options: tuple[ShortText, ...] = Field(default=(), max_length=5)


class Dimension(StrEnum):
    APPROACH = "approach"
    RISK = "risk"
    ASSUMPTIONS = "assumptions"
    INTEGRATION = "integration"
    UNKNOWNS = "unknowns"
    CONSTRAINTS = "constraints"


class DimensionScore(AnswerPart):
    dimension: Dimension
    score: int = Field(ge=1, le=10)
    evidence: ShortText


class Dispute(AnswerPart):
    """A challenge on which agents disagree."""

    challenge: ChallengeRef
    text: LongText


class SynthesisOutput(RoleOutput):
    """The answer of a synthesizer."""

    rulings: tuple[ChallengeRuling, ...] = Field(max_length=60)
    directives: tuple[Directive, ...] = Field(default=(), max_length=10)
    questions: tuple[QuestionDraft, ...] = Field(
        default=(), max_length=10, description="One for each BLOCKING challenge that you call UNRESOLVED."
    )
    scores: tuple[DimensionScore, ...] = Field(
        default=(), max_length=6, description="Scores of the plan, one for each dimension."
    )
    disputes: tuple[Dispute, ...] = Field(default=(), max_length=20)


class PlanAuditOutput(RoleOutput):
    """The answer of the challenger at the end of the plan gate."""

    scores: tuple[DimensionScore, ...] = Field(default=(), max_length=6)
    disputes: tuple[Dispute, ...] = Field(
        default=(), max_length=20, description="Challenges that you think were settled wrongly, and why."
    )
    summary: LongText


_PLAN = Field(description="The plan, with line numbers.")
_CHALLENGES = Field(default=(), description="The challenges so far, and how each was settled.")


class PlanDiscussion(FrozenModel):
    """The fields that every request at the plan gate has."""

    plan_path: str
    plan: str = _PLAN
    plan_quality: PlanQuality
    iteration: int = Field(ge=1, le=3, description="The number of this iteration, of at most 3.")
    challenges: tuple[Challenge, ...] = _CHALLENGES
    responses: tuple[str, ...] = Field(default=(), description="What the person has answered.")


class ChallengeRequest(PlanDiscussion):
    at_most: int = Field(
        ge=0, description="How many new challenges you may bring. If you bring more, the weakest are dropped."
    )
    directives: tuple[str, ...] = Field(default=(), description="What to pay attention to, and why.")
    findings: tuple[Unknown, ...] = Field(default=(), description="What was found out so far.")


class ResearchPlanRequest(PlanDiscussion):
    """The request for a researcher, in each of the three modes."""

    targets: tuple[str, ...] = Field(default=(), description="The ids of the open challenges: settle these.")
    findings: tuple[Unknown, ...] = Field(default=(), description="What was found out so far.")
    surfaced: tuple[SurfacedContext, ...] = Field(default=(), description="What was surfaced so far.")
    risks: tuple[ProbedRisk, ...] = Field(default=(), description="What was probed so far.")
    directives: tuple[str, ...] = Field(default=(), description="What to look at again, and why.")
    tool_budget: tuple[str, ...] = Field(
        default=(), description="How often you may use each tool. Further calls are refused."
    )


class SynthesisRequest(PlanDiscussion):
    last: bool = Field(default=False, description="Whether this is the last iteration.")
    findings: tuple[Unknown, ...] = Field(
        default=(),
        description="`[VERIFIED: …]` was checked by the engine; `[UNVERIFIED: …]` is only an agent's statement.",
    )
    surfaced: tuple[SurfacedContext, ...] = ()
    risks: tuple[ProbedRisk, ...] = ()
    directives: tuple[str, ...] = Field(default=(), description="Your directives so far.")
    notes: tuple[str, ...] = Field(
        default=(), description="What the engine has observed: failures, false claims, limits."
    )
    tool_budgets: tuple[str, ...] = Field(
        default=(), description="The budgets by mode and tool. Only RAISE-BUDGET raises one."
    )


class PlanAuditRequest(PlanDiscussion):
    findings: tuple[Unknown, ...] = ()
    verdict: str = Field(description="The verdict that the table of the runtime has decided.")
