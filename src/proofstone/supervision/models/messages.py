"""Everything that has a form of its own on the wire. How it is written and read is in `supervision.rules.wire`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from proofstone.common.models import Contract
from proofstone.supervision.models.context import Ack, ContextUpdate, Name, PhaseNumber, Phrase, Prose, Sentence
from proofstone.supervision.models.ladder import Category, Level, MiniAnalysis, SelfLocate
from proofstone.supervision.models.understanding import ImpactAnalysis


class Reverify(Contract):
    """`[REVERIFY]`"""

    phase: PhaseNumber
    level: Level
    target: Phrase
    reason: Phrase
    question: Sentence | None = None

    @model_validator(mode="after")
    def _a_question_at_level_two(self) -> Reverify:
        if (self.question is not None) != (self.level is Level.QUESTION):
            raise ValueError("level 2 has a question, and no other level has one")
        return self


class Response(Contract):
    """`[REVERIFY-RESPONSE]` in free words."""

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
    """`[CHALLENGE]`: the question about an item of the analysis that does not hold."""

    phase: PhaseNumber
    category: Category
    question: Sentence


class ChallengeResponse(Contract):
    """`[CHALLENGE-RESPONSE]`"""

    phase: PhaseNumber
    content: Prose = Field(min_length=1)


class WorkPlan(Contract):
    """`[PLAN]`: how the agent means to do its task."""

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
    """A line that begins as a message does, and cannot be read as one."""

    tag: str
    why: str
    """What is wrong, and how it is written."""
