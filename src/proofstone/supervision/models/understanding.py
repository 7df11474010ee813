"""The understanding gate: an impact analysis before the work, and what comes of it.

An analysis is said in six sections; ten items (RC) are what it is held to. Which of them hold for whom is in
`supervision.rules.understanding`.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from proofstone.agents.roles.models.payload import Part
from proofstone.common.models import Contract, Verdict
from proofstone.supervision.models.context import Name, Prose, Sentence


class Tier(IntEnum):
    EXEMPT = 0
    """Reviewers, a devil's advocate, whoever reads and answers once."""
    IMPLEMENTER = 1
    ARCHITECT = 2
    """Whoever plans or designs."""
    RESEARCHER = 3


class Item(StrEnum):
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


class Cited(Part):
    """Something that was there before, and that the work rests on."""

    artifact: Name = Field(description="Its path or its id.")
    says: Sentence = Field(description="What of it matters here.")


class ImpactedFile(Part):
    path: Name
    new: bool = Field(default=False, description="It is not there yet.")
    functions: tuple[Name, ...] = Field(default=(), description="Those in it that change.")


class Interface(Part):
    path: Name
    symbol: Name = Field(description="As it is called there: `Store.get`.")
    signature: Sentence = Field(description="As it stands in the file now; of a new one, as it is to be.")
    new: bool = False


class ImpactAnalysis(Part):
    """What an agent says of its task before it begins."""

    task_understanding: Prose = Field(
        min_length=1, description="The task in your own words, and where in the whole it stands."
    )
    upstream: tuple[Cited, ...] = Field(default=(), description="What your work rests on.")
    files: tuple[ImpactedFile, ...] = Field(default=(), description="Every file that you will change, with functions.")
    interfaces: tuple[Interface, ...] = Field(default=(), description="Those that you change or rely on.")
    cross_agent_impact: Prose = Field(
        default="", description="What other agents must know, and the chain of consequences after your work."
    )
    risk: Prose = Field(default="", description="What may break, and for whom.")


class ItemVerdict(Contract):
    """What was found about one item: by the engine, or by whoever judges."""

    item: Item
    verdict: Verdict
    detail: str = ""
    """What is wrong, or why it cannot be told."""


class Outcome(StrEnum):
    """Of one impact analysis."""

    VERIFIED = "VERIFIED"
    QUESTION = "QUESTION"
    REJECTED = "REJECTED"


class Verified(Contract):
    kind: Literal["verified"] = "verified"
    unverifiable: tuple[Item, ...] = ()
    """Items about which nobody could say anything: they cap the confidence at Medium."""

    @property
    def caps(self) -> bool:
        return bool(self.unverifiable)


class Questioned(Contract):
    """One or two items did not hold: it is asked about them before it is judged again."""

    kind: Literal["questioned"] = "questioned"
    items: tuple[ItemVerdict, ...] = Field(min_length=1, max_length=2)
    """Those that must be answered come first."""


class SentBack(Contract):
    """Another impact analysis is wanted."""

    kind: Literal["sent_back"] = "sent_back"
    attempt: int
    """The one that comes."""
    of: int
    reasons: tuple[ItemVerdict, ...]


class GaveUp(Contract):
    """No attempts are left: another agent begins anew, with another approach."""

    kind: Literal["gave_up"] = "gave_up"
    reasons: tuple[ItemVerdict, ...]


class NotApplicable(Contract):
    kind: Literal["not_applicable"] = "not_applicable"
    why: str


GateDecision = Annotated[Verified | Questioned | SentBack | GaveUp | NotApplicable, Field(discriminator="kind")]


class Attempts(Contract):
    """Where an agent stands at the understanding gate."""

    tier: Tier
    attempt: int = Field(default=1, ge=1)
    asked: tuple[Item, ...] = ()
    """The items that it was asked about; empty: an impact analysis is waited for."""
    unverifiable: tuple[Item, ...] = ()
    """Of the analysis that the questions are about."""
    over: bool = False

    @model_validator(mode="after")
    def _somebody_who_is_asked(self) -> Attempts:
        if self.tier is Tier.EXEMPT:
            raise ValueError("an agent of tier 0 is exempt: nobody asks it for an impact analysis")
        return self
