"""Everything that is remembered of one supervised agent, and the forms of its answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field

from proofstone.agents.roles.models.payload import AnswerPart
from proofstone.common.models import Finding, FrozenModel
from proofstone.supervision.models.context import (
    AckAction,
    Clause,
    ContextReader,
    DeltaLine,
    Name,
    Phrase,
    Prose,
    Sentence,
)
from proofstone.supervision.models.ladder import DocsStatus, MiniAnalysis, ReverifyLevel, ReverifyQuestion, SelfLocate
from proofstone.supervision.models.understanding import GateAttempts, ImpactAnalysis
from proofstone.supervision.rules.monitor_state import AgentMonitor
from proofstone.supervision.rules.position import PositionState

MAX_PLANS: Final = 3
"""How many plans an agent may submit before it is replaced."""
PHASE_BY_ROLE: Final[Mapping[str, int]] = MappingProxyType(
    {"researcher": 2, "designer": 3, "planner": 4, "executor": 6}
)
"""The phase number of each role, as agents are told."""
AGENT_NAME_BY_ROLE: Final[Mapping[str, str]] = MappingProxyType({"executor": "implementer"})
"""Roles that have another name in messages to agents."""


class RequestKind(StrEnum):
    """The kinds of request that an agent may receive during its work."""

    IMPACT = "impact"
    CHALLENGE = "challenge"
    PLAN = "plan"
    ACK = "ack"
    PING = "RV-1"
    QUESTION = "RV-2"
    ANALYSIS = "RV-3"


REQUEST_BY_LEVEL: Final[Mapping[ReverifyLevel, RequestKind]] = MappingProxyType(
    {
        ReverifyLevel.PING: RequestKind.PING,
        ReverifyLevel.QUESTION: RequestKind.QUESTION,
        ReverifyLevel.ANALYSIS: RequestKind.ANALYSIS,
    }
)


class FreeTextReply(AnswerPart):
    """An answer in free text."""

    content: Prose = Field(min_length=1)


class PlanReply(AnswerPart):
    """How an agent intends to do its task."""

    files: tuple[Name, ...] = Field(min_length=1, description="Every file that you will change or add.")
    changes: Phrase = Field(description="What you will change, in a sentence or two.")
    risk: Literal["🟢", "🟡", "🔴"] = Field(
        description="The risk of the riskiest file: 🟢 for tests and documents, 🟡 for logic."
    )
    interface_impact: Sentence = Field(description="Which signatures change, and how; `none` if none does.")


class PositionReply(AnswerPart):
    """The position of an agent."""

    step: Phrase = Field(description="Your current step, in at most ten words.")
    progress: int = Field(ge=0, le=100, description="The percentage of all criteria that are met.")
    docs: DocsStatus = Field(
        default=DocsStatus.MISSING, description="Whether your report for others is up to date with your work."
    )
    phase: int | None = Field(default=None, ge=0, le=10_000)
    task: int | None = Field(default=None, ge=0, le=10_000, description="The number of your task.")
    total: int | None = Field(default=None, ge=0, le=10_000)
    tool_calls: int | None = Field(
        default=None, ge=0, le=1_000_000, description="The tool calls that you have made so far."
    )

    def to_self_locate(self, seen: PositionState) -> SelfLocate:
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


class AckReply(AnswerPart):
    """An agent's answer to a context update."""

    applied: int = Field(ge=0, description="The number of items that you have applied.")
    total: int = Field(ge=0, description="The number of items in the update.")
    impact: Clause = Field(description="What the update means for your work.")
    action: AckAction


REPLY_MODELS: Final[Mapping[RequestKind, type[AnswerPart]]] = MappingProxyType(
    {
        RequestKind.IMPACT: ImpactAnalysis,
        RequestKind.CHALLENGE: FreeTextReply,
        RequestKind.PLAN: PlanReply,
        RequestKind.ACK: AckReply,
        RequestKind.PING: PositionReply,
        RequestKind.QUESTION: FreeTextReply,
        RequestKind.ANALYSIS: MiniAnalysis,
    }
)
"""The model of each answer, for agents that answer in the JSON form of their runtime instead of in brackets."""


class SupervisionState(FrozenModel):
    """Everything that is known of one agent. Recorded at every boundary, and restored after a crash."""

    monitor: AgentMonitor
    standing: PositionState
    reader: ContextReader
    gate: GateAttempts | None = None
    """None if the agent need not show that it understands, or has done so."""
    asked: RequestKind | None = None
    question: ReverifyQuestion | None = None
    """The open question of level 2."""
    analysis: ImpactAnalysis | None = None
    """The last impact analysis that was submitted."""
    challenged: str = ""
    """The challenge about that analysis."""
    plan: PlanReply | None = None
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
    deviation: str = ""
    """A significant deviation that the agent admitted. Only a person or a new plan can allow it."""
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
