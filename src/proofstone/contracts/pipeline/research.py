"""Research: what the code is like, before anything is decided."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from proofstone.contracts.agent import Output
from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.part import Line, LocalId, Part, Text, repeated


class ResearchFocus(StrEnum):
    ARCHITECTURE = "architecture"
    IMPACT = "impact"
    DEPENDENCIES = "dependencies"
    PATTERNS = "patterns"


class ResearchRequest(Contract):
    """What a researcher is given."""

    request: str = Field(description="What the person wants, in their words.")
    focus: ResearchFocus = Field(description="What to look at. Others look at the rest.")
    questions: tuple[str, ...] = Field(default=(), description="What earlier research left open.")


class ResearchFinding(Part):
    id: LocalId
    title: Line
    category: str = Field(default="", max_length=60, description="One or two words of your choice.")
    detail: Text
    evidence: tuple[Line, ...] = Field(
        min_length=1, description="Where it can be seen: `path:line`, a commit, or a command and what it printed."
    )
    relevance: Literal["high", "medium", "low"] = Field(description="To the request.")


class ResearchOutput(Output):
    """What a researcher answers."""

    focus: ResearchFocus
    findings: tuple[ResearchFinding, ...] = Field(max_length=40)
    summary: Text
    source_files_examined: tuple[str, ...] = Field(description="Paths of files that you have opened, and no others.")

    @model_validator(mode="after")
    def _ids_are_unique(self) -> ResearchOutput:
        if twice := repeated(tuple(one.id for one in self.findings)):
            raise ValueError(f"findings: the id {twice[0]} is there more than once")
        return self
