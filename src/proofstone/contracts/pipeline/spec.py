"""Specification: what is wanted, said so that it can be tested."""

from __future__ import annotations

from pydantic import Field, model_validator

from proofstone.contracts.agent import Output
from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.part import Line, LocalId, Part, Text, repeated
from proofstone.contracts.pipeline.research import ResearchOutput
from proofstone.contracts.verdict import Severity


class SpecRequest(Contract):
    """What a specifier is given."""

    request: str = Field(description="What the person wants, in their words.")
    research: tuple[ResearchOutput, ...] = Field(default=(), description="What the researchers found.")
    answers: tuple[str, ...] = Field(default=(), description="What the person said to earlier concerns.")


class Requirement(Part):
    id: LocalId
    text: Text


class AcceptanceCriterion(Part):
    id: LocalId
    text: Text = Field(description="One thing that can be observed and is true or false.")
    test_method: Text = Field(description="How to observe it: a command, a test to write, or what to look at.")


class Concern(Part):
    """A reason to think again before anything is built."""

    severity: Severity
    concern: Text
    suggestion: str = Field(default="", max_length=2_000, description="What you would do instead.")


class SpecOutput(Output):
    """What a specifier answers."""

    requirements: tuple[Requirement, ...] = Field(min_length=1, max_length=60)
    acceptance_criteria: tuple[AcceptanceCriterion, ...] = Field(min_length=1, max_length=80)
    edge_cases: tuple[Line, ...] = ()
    constraints: tuple[Line, ...] = Field(default=(), description="What must not change, and limits to keep to.")
    pushback: tuple[Concern, ...] = Field(default=(), description="Concerns about the request itself. None is fine.")

    @model_validator(mode="after")
    def _ids_are_unique(self) -> SpecOutput:
        criteria = tuple(one.id for one in self.acceptance_criteria)
        if twice := repeated((*(one.id for one in self.requirements), *criteria)):
            raise ValueError(f"the id {twice[0]} is there more than once; requirements and criteria share their ids")
        return self
