"""One agent that is attended to: what it is asked for, what it is told, and all that must be remembered of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field

from proofstone.agents.roles.models.payload import Part
from proofstone.common.models import Contract, Finding
from proofstone.supervision.models.context import Action, Clause, DeltaLine, Name, Phrase, Prose, Reader, Sentence
from proofstone.supervision.models.ladder import Docs, Level, MiniAnalysis, Question, SelfLocate
from proofstone.supervision.models.understanding import Attempts, ImpactAnalysis
from proofstone.supervision.rules.monitor_state import Monitor
from proofstone.supervision.rules.position import Standing

PLANS: Final = 3
"""How often an agent may submit how it means to work, before another one begins."""
PHASES: Final[Mapping[str, int]] = MappingProxyType({"researcher": 2, "designer": 3, "planner": 4, "executor": 6})
"""As the agents are told."""
CALLED: Final[Mapping[str, str]] = MappingProxyType({"executor": "implementer"})
"""Roles that have another name among agents."""


class Wanted(StrEnum):
    """What an agent can be asked for in the middle of its work."""

    IMPACT = "impact"
    CHALLENGE = "challenge"
    PLAN = "plan"
    ACK = "ack"
    PING = "RV-1"
    QUESTION = "RV-2"
    ANALYSIS = "RV-3"


LEVELS: Final[Mapping[Level, Wanted]] = MappingProxyType(
    {Level.PING: Wanted.PING, Level.QUESTION: Wanted.QUESTION, Level.ANALYSIS: Wanted.ANALYSIS}
)


class Words(Part):
    """An answer in free words."""

    content: Prose = Field(min_length=1)


class PlanSaid(Part):
    """How an agent means to do its task."""

    files: tuple[Name, ...] = Field(min_length=1, description="Every file that you will change or add.")
    changes: Phrase = Field(description="What you will change, in a sentence or two.")
    risk: Literal["🟢", "🟡", "🔴"] = Field(description="Of the riskiest file: tests and documents 🟢, logic 🟡.")
    interface_impact: Sentence = Field(description="Which signatures change, and how; `none` if none does.")


class Located(Part):
    """Where an agent is."""

    step: Phrase = Field(description="At most ten words.")
    progress: int = Field(ge=0, le=100, description="Criteria that are met, of all, in percent.")
    docs: Docs = Field(default=Docs.MISSING, description="Whether what you keep for others is as new as your work.")
    phase: int | None = Field(default=None, ge=0, le=10_000)
    task: int | None = Field(default=None, ge=0, le=10_000, description="Its number, of all.")
    total: int | None = Field(default=None, ge=0, le=10_000)
    tool_calls: int | None = Field(default=None, ge=0, le=1_000_000, description="That you have made so far.")

    def line(self, seen: Standing) -> SelfLocate:
        """As a line; what it does not say is as it was seen."""

        def said(mine: int | None, theirs: int) -> int:
            return theirs if mine is None else mine

        return SelfLocate(
            phase=said(self.phase, seen.phase),
            task=said(self.task, seen.number),
            total=said(self.total, seen.total),
            step=self.step,
            progress=self.progress,
            tool_calls=said(self.tool_calls, seen.tool_calls),
            docs=self.docs,
        )


class Acknowledged(Part):
    """What an agent says to an update of the context."""

    applied: int = Field(ge=0, description="Items that you have taken in.")
    total: int = Field(ge=0, description="Items of the update.")
    impact: Clause = Field(description="What it means for your work.")
    action: Action


CONTRACTS: Final[Mapping[Wanted, type[Part]]] = MappingProxyType(
    {
        Wanted.IMPACT: ImpactAnalysis,
        Wanted.CHALLENGE: Words,
        Wanted.PLAN: PlanSaid,
        Wanted.ACK: Acknowledged,
        Wanted.PING: Located,
        Wanted.QUESTION: Words,
        Wanted.ANALYSIS: MiniAnalysis,
    }
)
"""What is answered, for whoever answers in a form of the runtime's instead of on a line between brackets."""


class Attendance(Contract):
    """All that is known of one agent: kept with every boundary, and taken from there after a crash."""

    monitor: Monitor
    standing: Standing
    reader: Reader
    gate: Attempts | None = None
    """None: it need not, or no longer, show that it understands."""
    asked: Wanted | None = None
    question: Question | None = None
    """Of level 2, while it is open."""
    analysis: ImpactAnalysis | None = None
    """The last that was submitted."""
    challenged: str = ""
    """What was asked about it."""
    plan: PlanSaid | None = None
    """That was approved."""
    plans: int = 0
    """Submitted, since one was last approved."""
    declared: tuple[str, ...] = ()
    """What it may change now."""
    touched: tuple[str, ...] = ()
    """Files that it has been seen to change."""
    unseen: bool = False
    """It may have changed files since they were last looked at."""
    passing: tuple[str, ...] = ()
    """Verify commands that it was seen to run, and that passed the last time."""
    caps: tuple[str, ...] = ()
    """Why the confidence is at most Medium."""
    findings: tuple[Finding, ...] = ()
    amended: tuple[str, ...] = ()
    """Files that were added to its task because it announced them."""
    answer: str = ""
    """The last that it gave to a question."""
    announced: tuple[str, ...] = ()
    """Files that it named there, beyond its own."""
    reverify: bool = False
    """It is to be asked about what has changed, once it has acknowledged it."""
    paused: bool = False
    """It has said that it waits for a word about what was changed."""
    delta: tuple[DeltaLine, ...] = ()
    """Of the context, as it was last told."""
    affected: tuple[str, ...] = ()
    """The files that this is about."""
    told: tuple[int, ...] = ()
    """Requirements that were added and that it was told of, but has not taken in."""
    judged: int = 0
    """So many times somebody was asked to judge."""
