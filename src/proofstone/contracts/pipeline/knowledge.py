"""Knowledge: what the next run should know. Evidence and figures are the engine's own and no part of the answer's
weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from proofstone.contracts.agent import Output
from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.part import Line, Part, Text


class KnowledgeRequest(Contract):
    """What the keeper of knowledge is given."""

    request: str = Field(description="What the person wanted, in their words.")
    outcome: str = Field(description="How the run ended.")
    events: tuple[str, ...] = Field(default=(), description="What happened, from the ledger, in order.")
    findings: tuple[str, ...] = Field(default=(), description="What checks and reviewers found.")
    change: str = Field(default="", description="What the run changed. `[...]` stands for what was left out.")


class Lesson(Part):
    kind: Literal["memory", "instructions"] = Field(
        description="memory: for the agents of later runs; instructions: a change to a file that agents are told by, "
        "which a person must approve."
    )
    path: str = Field(default="", max_length=300, description="Of the instruction file; empty for memory.")
    content: Text
    reason: Text = Field(description="What of this run shows it.")
    tags: tuple[Line, ...] = Field(default=(), max_length=10)


class LoggedDecision(Part):
    title: Line
    decision: Text
    rationale: Text


class KnowledgeOutput(Output):
    """What the keeper of knowledge answers."""

    updates: tuple[Lesson, ...] = Field(default=(), max_length=20)
    decision_log_entries: tuple[LoggedDecision, ...] = Field(default=(), max_length=20)
    evidence_bundle: str = Field(default="", description="Leave it out: it is made from the ledger.")
    telemetry: Mapping[str, JsonValue] = Field(default={}, description="Leave it out: it is made from the ledger.")
