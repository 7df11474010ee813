"""Where an agent stands: a row of the position table, and what an agent says of it itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from proofstone.contracts.base import Contract
from proofstone.contracts.reverify.text import PhaseNumber, Phrase

STEP_WORDS = 10


def _brief(value: object) -> object:
    return " ".join(value.split()[:STEP_WORDS]) if isinstance(value, str) else value


class PositionStatus(StrEnum):
    ON_TRACK = "ON_TRACK"
    ATTENTION = "ATTENTION"
    BLOCKED = "BLOCKED"
    REVERIFY = "REVERIFY"
    COMPLETING = "COMPLETING"
    COMPACT_RISK = "COMPACT_RISK"
    """What it was told first is about to be pushed out of what it can see."""


class Docs(StrEnum):
    CURRENT = "current"
    STALE = "stale"
    """Source has changed since the report was last updated."""
    MISSING = "missing"


class ToolUse(StrEnum):
    """Whether an agent looks before it decides."""

    ACTIVE = "ACTIVE"
    LOW = "LOW"
    MISSING = "MISSING"
    EXEMPT = "EXEMPT"


class Work(StrEnum):
    """What kind of work a phase is, as far as it asks for looking things up."""

    RESEARCH = "research"
    DESIGN = "design"
    PLANNING = "planning"
    IMPLEMENTATION = "implementation"


class SelfLocate(Contract):
    """Where an agent says it is."""

    phase: PhaseNumber
    task: int = Field(ge=0, le=10_000)
    total: int = Field(ge=0, le=10_000)
    step: Annotated[Phrase, BeforeValidator(_brief)]
    progress: int = Field(ge=0, le=100)
    tool_calls: int = Field(ge=0, le=1_000_000)
    docs: Docs


class Position(Contract):
    """A row of the table, for one moment."""

    agent: str
    task: str
    number: int = 0
    total: int = 0
    """`Task 2/3`."""
    step: str
    progress: int | None
    """Criteria met of all, in percent; None: nobody knows how many there are."""
    last_self_locate: float | None
    docs: Docs
    tool_calls: int
    tool_use: ToolUse
    turns: int
    files: tuple[str, ...] = ()
    tokens: int = 0
    quiet_seconds: float
    status: PositionStatus
    notes: tuple[str, ...] = ()


class AgentSeen(Contract):
    """Where an agent of a run stands, or stood when it was last seen."""

    part: str = ""
    """Of which part of the run: `gate 2`; empty: of the run itself."""
    at_work: bool
    """It has not ended, and somebody is at work on the run."""
    position: Position
