"""The understanding gate: an impact analysis before the work, and its outcome.

An analysis has six sections and is checked against ten items (RC-01 to RC-10). `supervision.rules.understanding` says
which items apply to which tier.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from proofstone.agents.roles.models.payload import AnswerPart
from proofstone.common.models import FrozenModel, Verdict
from proofstone.supervision.models.context import Name, Prose, Sentence


class SupervisionTier(IntEnum):
    EXEMPT = 0
    """Agents that read and answer once: reviewers and the devil's advocate."""
    IMPLEMENTER = 1
    ARCHITECT = 2
    """Agents that plan or design."""
    RESEARCHER = 3


class AnalysisItem(StrEnum):
    TASK = "RC-01"
    POSITION = "RC-02"
    UPSTREAM = "RC-03"
    FILES = "RC-04"
    INTERFACES = "RC-05"
    OTHER_AGENTS = "RC-06"
    DOWNSTREAM = "RC-07"
    BREAKING = "RC-08"
    FACTS = "RC-09"
    OMISSIONS = "RC-10"


class ArtifactCitation(AnswerPart):
    """An existing artifact that the work depends on."""

    artifact: Name = Field(description="The path or id of the artifact, or the name of a task.")
    says: Sentence = Field(description="The part of it that matters for your task.")

    @model_validator(mode="before")
    @classmethod
    def _split_at_colon(cls, value: object) -> object:
        """Split a name with a colon, such as `Task 2: Create it`, as the line of an analysis is split."""
        if not isinstance(value, Mapping) or not isinstance(value.get("artifact"), str):
            return value
        head, colon, rest = value["artifact"].strip("` ").partition(": ")
        return {**value, "artifact": head, "says": f"{rest}: {value.get('says', '')}"} if colon else value


class FileImpact(AnswerPart):
    path: Name
    new: bool = Field(default=False, description="True if the file does not exist yet.")
    functions: tuple[Name, ...] = Field(default=(), description="The functions in it that you will change.")


class InterfaceClaim(AnswerPart):
    path: Name
    symbol: Name = Field(description="Its qualified name in the file, for example `Store.get`.")
    signature: Sentence = Field(description="Its current signature in the file, or the planned one if it is new.")
    new: bool = False


class ImpactAnalysis(AnswerPart):
    """What an agent says about its task before it starts."""

    task_understanding: Prose = Field(
        min_length=1, description="The task in your own words, and its place in the whole plan."
    )
    upstream: tuple[ArtifactCitation, ...] = Field(default=(), description="What your work depends on.")
    files: tuple[FileImpact, ...] = Field(
        default=(), description="Every file that you will change, with its functions."
    )
    interfaces: tuple[InterfaceClaim, ...] = Field(default=(), description="The interfaces that you change or rely on.")
    cross_agent_impact: Prose = Field(
        default="", description="What other agents must know, and what follows from your work."
    )
    risk: Prose = Field(default="", description="What may break, and for whom.")


class ItemVerdict(FrozenModel):
    """The verdict on one item, given by the engine or by the judge."""

    item: AnalysisItem
    verdict: Verdict
    detail: str = ""
    """What is wrong, or why nobody can say."""


class AnalysisOutcome(StrEnum):
    """The outcome of one impact analysis."""

    VERIFIED = "VERIFIED"
    QUESTION = "QUESTION"
    REJECTED = "REJECTED"


class VerifyDecision(FrozenModel):
    kind: Literal["verified"] = "verified"
    unverifiable: tuple[AnalysisItem, ...] = ()
    """Items that nobody could verify. They cap the confidence at Medium."""


class QuestionDecision(FrozenModel):
    """One or two items failed: the agent is asked about them before it is judged again."""

    kind: Literal["questioned"] = "questioned"
    items: tuple[ItemVerdict, ...] = Field(min_length=1, max_length=2)
    """The mandatory items come first."""


class RetryDecision(FrozenModel):
    """The agent must submit another impact analysis."""

    kind: Literal["sent_back"] = "sent_back"
    attempt: int
    """The number of the next attempt."""
    of: int
    reasons: tuple[ItemVerdict, ...]


class GiveUpDecision(FrozenModel):
    """No attempts are left: another agent starts over with another approach."""

    kind: Literal["gave_up"] = "gave_up"
    reasons: tuple[ItemVerdict, ...]


class ExemptDecision(FrozenModel):
    kind: Literal["not_applicable"] = "not_applicable"
    why: str


UnderstandingDecision = Annotated[
    VerifyDecision | QuestionDecision | RetryDecision | GiveUpDecision | ExemptDecision, Field(discriminator="kind")
]


class GateAttempts(FrozenModel):
    """The state of an agent at the understanding gate."""

    tier: SupervisionTier
    attempt: int = Field(default=1, ge=1)
    asked: tuple[AnalysisItem, ...] = ()
    """The items that the agent was asked about. Empty if an impact analysis is awaited."""
    unverifiable: tuple[AnalysisItem, ...] = ()
    """The unverifiable items of the analysis that the questions are about."""
    over: bool = False

    @model_validator(mode="after")
    def _refuse_exempt_tier(self) -> GateAttempts:
        if self.tier is SupervisionTier.EXEMPT:
            raise ValueError("an agent of tier 0 is exempt: it never submits an impact analysis")
        return self
