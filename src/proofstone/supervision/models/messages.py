"""The bracketed messages between the engine and an agent. `supervision.rules.wire` writes and reads them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from proofstone.common.models import Contract
from proofstone.supervision.models.context import Ack, ContextUpdate, Name, PhaseNumber, Phrase, Prose, Sentence
from proofstone.supervision.models.ladder import Category, Level, MiniAnalysis, SelfLocate
from proofstone.supervision.models.understanding import ImpactAnalysis


class Reverify(Contract):
    """`[REVERIFY]`: a request to re-verify the agent."""

    phase: PhaseNumber
    level: Level
    target: Phrase
    reason: Phrase
    question: Sentence | None = None

    @model_validator(mode="after")
    def _require_question_at_level_two(self) -> Reverify:
        if (self.question is not None) != (self.level is Level.QUESTION):
            raise ValueError("level 2 has a question, and no other level has one")
        return self


class Response(Contract):
    """`[REVERIFY-RESPONSE]` in free text."""

    phase: PhaseNumber
    level: Level
    content: Prose = Field(min_length=1)


class AnalysisResponse(Contract):
    """`[REVERIFY-RESPONSE]` at level 3."""

    phase: PhaseNumber
    analysis: MiniAnalysis


class ImpactMessage(Contract):
    """`[IMPACT-ANALYSIS]`"""

    phase: PhaseNumber
    attempt: int = Field(ge=1, le=99)
    of: int = Field(ge=1, le=99)
    analysis: ImpactAnalysis


class ImpactVerified(Contract):
    """`[IMPACT_VERIFIED]`"""

    phase: PhaseNumber | None = None


class ImpactRejected(Contract):
    """`[IMPACT_REJECTED]`"""

    phase: PhaseNumber | None = None
    reason: Sentence | None = None


class Challenge(Contract):
    """`[CHALLENGE]`: a question about an item of the impact analysis that failed."""

    phase: PhaseNumber
    category: Category
    question: Sentence


class ChallengeResponse(Contract):
    """`[CHALLENGE-RESPONSE]`"""

    phase: PhaseNumber
    content: Prose = Field(min_length=1)


class WorkPlan(Contract):
    """`[PLAN]`: how the agent intends to do its task."""

    phase: PhaseNumber
    files: tuple[Name, ...] = Field(min_length=1)
    changes: Phrase
    risk: Literal["🟢", "🟡", "🔴"]
    interface_impact: Sentence


class PlanApproved(Contract):
    """`[APPROVED]`"""

    phase: PhaseNumber | None = None


class Rejected(Contract):
    """`[REJECTED]`"""

    phase: PhaseNumber | None = None
    reason: Sentence | None = None


Message = (
    Reverify
    | Response
    | AnalysisResponse
    | SelfLocate
    | ContextUpdate
    | Ack
    | ImpactMessage
    | ImpactVerified
    | ImpactRejected
    | Challenge
    | ChallengeResponse
    | WorkPlan
    | PlanApproved
    | Rejected
)


class Unreadable(Contract):
    """A line that starts like a message but cannot be read as one."""

    tag: str
    why: str
    """What is wrong, and the expected form."""
