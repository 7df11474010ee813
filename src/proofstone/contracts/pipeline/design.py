"""Design: how it is to be built, decision by decision, each with what else was possible."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from proofstone.contracts.agent import Output
from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.part import Line, LocalId, Part, RiskMark, Text, repeated
from proofstone.contracts.pipeline.research import ResearchOutput
from proofstone.contracts.pipeline.review import PanelOutput
from proofstone.contracts.pipeline.spec import SpecOutput
from proofstone.contracts.verdict import Confidence


class DesignRequest(Contract):
    """What a designer is given."""

    request: str = Field(description="What the person wants, in their words.")
    spec: SpecOutput = Field(description="What was specified.")
    research: tuple[ResearchOutput, ...] = Field(default=(), description="What the researchers found.")
    reviews: tuple[PanelOutput, ...] = Field(default=(), description="What reviewers said to your earlier design.")


class Alternative(Part):
    id: LocalId
    label: Line
    description: Text
    pros: tuple[Line, ...] = ()
    cons: tuple[Line, ...] = ()


class Decision(Part):
    id: LocalId
    title: Line
    context: Text = Field(description="What made a decision necessary.")
    alternatives: tuple[Alternative, ...] = Field(
        min_length=2, max_length=6, description="All that were weighed, the one that was selected among them."
    )
    selected: str = Field(description="The id of one of the alternatives.")
    rationale: Text
    confidence: Confidence
    confidence_definition: Text = Field(description="What this confidence rests on, and what would change it.")
    risk: RiskMark
    date: str = Field(default="", description="Leave it out: the engine knows it.")
    decided_by: str = Field(default="", description="Leave it out: the engine knows it.")

    @field_validator("confidence", mode="before")
    @classmethod
    def _either_spelling(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _selected_is_an_alternative(self) -> Decision:
        there = tuple(one.id for one in self.alternatives)
        if self.selected not in there:
            raise ValueError(f"selected: {self.selected} is none of the alternatives: {', '.join(there)}")
        return self


class DesignOutput(Output):
    """What a designer answers."""

    architecture: Text = Field(description="The parts, what each is responsible for, and how they talk.")
    decisions: tuple[Decision, ...] = Field(min_length=1, max_length=20)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> DesignOutput:
        if twice := repeated(tuple(one.id for one in self.decisions)):
            raise ValueError(f"decisions: the id {twice[0]} is there more than once")
        return self
