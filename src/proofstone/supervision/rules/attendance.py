"""Everything that is remembered of one supervised agent, and the forms of its answers. Pure."""

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
"""How many plans an agent may submit before it is replaced."""
PHASES: Final[Mapping[str, int]] = MappingProxyType({"researcher": 2, "designer": 3, "planner": 4, "executor": 6})
"""The phase number of each role, as agents are told."""
CALLED: Final[Mapping[str, str]] = MappingProxyType({"executor": "implementer"})
"""Roles that have another name in messages to agents."""


class Wanted(StrEnum):
    """The kinds of request that an agent may receive during its work."""

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
    """An answer in free text."""

    content: Prose = Field(min_length=1)


class PlanSaid(Part):
    """How an agent intends to do its task."""

    files: tuple[Name, ...] = Field(min_length=1, description="Every file that you will change or add.")
    changes: Phrase = Field(description="What you will change, in a sentence or two.")
    risk: Literal["🟢", "🟡", "🔴"] = Field(
        description="The risk of the riskiest file: 🟢 for tests and documents, 🟡 for logic."
    )
    interface_impact: Sentence = Field(description="Which signatures change, and how; `none` if none does.")


class Located(Part):
    """The position of an agent."""

    step: Phrase = Field(description="Your current step, in at most ten words.")
    progress: int = Field(ge=0, le=100, description="The percentage of all criteria that are met.")
    docs: Docs = Field(default=Docs.MISSING, description="Whether your report for others is up to date with your work.")
    phase: int | None = Field(default=None, ge=0, le=10_000)
    task: int | None = Field(default=None, ge=0, le=10_000, description="The number of your task.")
    total: int | None = Field(default=None, ge=0, le=10_000)
    tool_calls: int | None = Field(
        default=None, ge=0, le=1_000_000, description="The tool calls that you have made so far."
    )

    def line(self, seen: Standing) -> SelfLocate:
        """Return the position as a message. Missing values are taken from what the engine observed."""

        def either(reported: int | None, observed: int) -> int:
            return observed if reported is None else reported

        return SelfLocate(
            phase=either(self.phase, seen.phase),
            task=either(self.task, seen.number),
            total=either(self.total, seen.total),
            step=self.step,
            progress=self.progress,
            tool_calls=either(self.tool_calls, seen.tool_calls),
            docs=self.docs,
        )


class Acknowledged(Part):
    """An agent's answer to a context update."""

    applied: int = Field(ge=0, description="The number of items that you have applied.")
    total: int = Field(ge=0, description="The number of items in the update.")
    impact: Clause = Field(description="What the update means for your work.")
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
"""The model of each answer, for agents that answer in the JSON form of their runtime instead of in brackets."""


class Attendance(Contract):
    """Everything that is known of one agent. Recorded at every boundary, and restored after a crash."""

    monitor: Monitor
    standing: Standing
    reader: Reader
    gate: Attempts | None = None
    """None if the agent need not show that it understands, or has done so."""
    asked: Wanted | None = None
    question: Question | None = None
    """The open question of level 2."""
    analysis: ImpactAnalysis | None = None
    """The last impact analysis that was submitted."""
    challenged: str = ""
    """The challenge about that analysis."""
    plan: PlanSaid | None = None
    """The approved plan."""
    plans: int = 0
    """Plans submitted since one was last approved."""
    declared: tuple[str, ...] = ()
    """Files that the agent may change now."""
    touched: tuple[str, ...] = ()
    """Files that the agent was observed to change."""
    unseen: bool = False
    """Whether files may have changed since they were last examined."""
    passing: tuple[str, ...] = ()
    """Verify commands that the agent was observed to run, and that passed the last time."""
    caps: tuple[str, ...] = ()
    """Why the confidence is at most Medium."""
    findings: tuple[Finding, ...] = ()
    amended: tuple[str, ...] = ()
    """Files that were added to its task because it announced them."""
    answer: str = ""
    """The last answer to a question."""
    announced: tuple[str, ...] = ()
    """Undeclared files that this answer names."""
    reverify: bool = False
    """Whether the agent is to be questioned about the update once it has acknowledged it."""
    paused: bool = False
    """Whether the agent said that it waits for an answer about the update."""
    delta: tuple[DeltaLine, ...] = ()
    """The lines of the last context update."""
    affected: tuple[str, ...] = ()
    """The files that this update concerns."""
    told: tuple[int, ...] = ()
    """Added requirements that the agent was told about and has not yet planned."""
    judged: int = 0
    """How many times a judgement was requested."""
