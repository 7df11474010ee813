"""The bracketed messages between the engine and an agent. `supervision.rules.wire` writes and reads them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from proofstone.common.models import FrozenModel
from proofstone.supervision.models.context import Ack, ContextUpdate, Name, PhaseNumber, Phrase, Prose, Sentence
from proofstone.supervision.models.ladder import Category, MiniAnalysis, ReverifyLevel, SelfLocate
from proofstone.supervision.models.understanding import ImpactAnalysis


class ReverifyRequest(FrozenModel):
    """`[REVERIFY]`: a request to re-verify the agent."""

    phase: PhaseNumber
    level: ReverifyLevel
    target: Phrase
    reason: Phrase
    question: Sentence | None = None

    @model_validator(mode="after")
    def _require_question_at_level_two(self) -> ReverifyRequest:
        if (self.question is not None) != (self.level is ReverifyLevel.QUESTION):
            raise ValueError("level 2 has a question, and no other level has one")
        return self


class ReverifyResponse(FrozenModel):
    """`[REVERIFY-RESPONSE]` in free text."""

    phase: PhaseNumber
    level: ReverifyLevel
    content: Prose = Field(min_length=1)


class ReverifyAnalysis(FrozenModel):
    """`[REVERIFY-RESPONSE]` at level 3."""

    phase: PhaseNumber
    analysis: MiniAnalysis


class ImpactMessage(FrozenModel):
    """`[IMPACT-ANALYSIS]`"""

    phase: PhaseNumber
    attempt: int = Field(ge=1, le=99)
    of: int = Field(ge=1, le=99)
    analysis: ImpactAnalysis


class ImpactVerified(FrozenModel):
    """`[IMPACT_VERIFIED]`"""

    phase: PhaseNumber | None = None


class ImpactRejected(FrozenModel):
    """`[IMPACT_REJECTED]`"""

    phase: PhaseNumber | None = None
    reason: Sentence | None = None


class ImpactChallenge(FrozenModel):
    """`[CHALLENGE]`: a question about an item of the impact analysis that failed."""

    phase: PhaseNumber
    category: Category
    question: Sentence


class ImpactChallengeResponse(FrozenModel):
    """`[CHALLENGE-RESPONSE]`"""

    phase: PhaseNumber
    content: Prose = Field(min_length=1)


class WorkPlan(FrozenModel):
    """`[PLAN]`: how the agent intends to do its task."""

    phase: PhaseNumber
    files: tuple[Name, ...] = Field(min_length=1)
    changes: Phrase
    risk: Literal["🟢", "🟡", "🔴"]
    interface_impact: Sentence


class PlanApproved(FrozenModel):
    """`[APPROVED]`"""

    phase: PhaseNumber | None = None


class PlanRejected(FrozenModel):
    """`[REJECTED]`"""

    phase: PhaseNumber | None = None
    reason: Sentence | None = None


ProtocolMessage = (
    ReverifyRequest
    | ReverifyResponse
    | ReverifyAnalysis
    | SelfLocate
    | ContextUpdate
    | Ack
    | ImpactMessage
    | ImpactVerified
    | ImpactRejected
    | ImpactChallenge
    | ImpactChallengeResponse
    | WorkPlan
    | PlanApproved
    | PlanRejected
)


class UnreadableMessage(FrozenModel):
    """A line that starts like a message but cannot be read as one."""

    tag: str
    why: str
    """What is wrong, and the expected form."""
