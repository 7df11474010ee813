"""Events that the engine observes of an agent, and the decisions of its monitor.

The monitor and the position table are both computed from the events. Every cause that was noticed ends in one of
`ResumeWork`, `UpdateContext` and `RespawnAgent`, possibly after corrections.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofstone.common.models import Finding, FrozenModel
from proofstone.supervision.models.ladder import (
    AnalysisScore,
    AnswerGrade,
    DeviationImpact,
    DueQuestion,
    ReverifyCause,
    ReverifyLevel,
    SelfLocate,
)


class TaskStarted(FrozenModel):
    kind: Literal["task_began"] = "task_began"
    task: str
    number: int = 1
    total: int = 1
    files: tuple[str, ...] | None = None
    """The files that the agent may change. None if nobody has declared them."""
    criteria: int = 0


class GateEntered(FrozenModel):
    """The agent enters the understanding gate."""

    kind: Literal["gate_entered"] = "gate_entered"


class GatePassed(FrozenModel):
    """The agent has passed the understanding gate and starts its work."""

    kind: Literal["gate_passed"] = "gate_passed"


class TurnStarted(FrozenModel):
    kind: Literal["turn_started"] = "turn_started"


class TurnEnded(FrozenModel):
    """A turn boundary: the engine can send a message to the agent."""

    kind: Literal["turn_ended"] = "turn_ended"
    calls: int = Field(default=0, ge=0)
    """The number of tool calls in the turn. 0 if the agent has said all it had to say."""


class ToolUsed(FrozenModel):
    kind: Literal["tool_used"] = "tool_used"
    name: str


class FileChanged(FrozenModel):
    kind: Literal["file_changed"] = "file_changed"
    path: str


class ReportUpdated(FrozenModel):
    """The agent's report is up to date with its work."""

    kind: Literal["report_updated"] = "report_updated"


class TokensUsed(FrozenModel):
    """How much of the model's context window is used."""

    kind: Literal["tokens_used"] = "tokens_used"
    tokens: int = Field(ge=0)
    window: int | None = Field(default=None, gt=0)


class CriteriaChecked(FrozenModel):
    """How many criteria the engine has observed to be met."""

    kind: Literal["criteria_seen"] = "criteria_seen"
    met: int = Field(ge=0)
    total: int = Field(ge=0)


class CheckFailed(FrozenModel):
    kind: Literal["check_failed"] = "check_failed"
    check: str


class ResultClaimed(FrozenModel):
    """What the agent claims to have done."""

    kind: Literal["claimed"] = "claimed"
    status: Literal["success", "failure", "blocked"]
    files: tuple[str, ...] = ()
    error: str = ""


class ApproachDiffers(FrozenModel):
    """A comparison with the plan found that the agent takes another approach."""

    kind: Literal["approach_differs"] = "approach_differs"
    why: str


class ContextChanged(FrozenModel):
    """A context update was sent that affects this agent's files or criteria."""

    kind: Literal["context_changed"] = "context_changed"
    version: int
    what: str


class SelfLocated(FrozenModel):
    """The agent reported its position."""

    kind: Literal["self_located"] = "self_located"
    located: SelfLocate
    anomalies: tuple[str, ...] = ()
    """Where the report differs from what the engine observed."""


class QuestionAnswered(FrozenModel):
    kind: Literal["question_answered"] = "question_answered"
    grade: AnswerGrade


class AnalysisSubmitted(FrozenModel):
    kind: Literal["analysis_submitted"] = "analysis_submitted"
    score: AnalysisScore


class AnswerUnreadable(FrozenModel):
    """The agent replied, but the reply cannot be read as an answer to the question."""

    kind: Literal["answer_unreadable"] = "answer_unreadable"
    why: str


class QuestionOpened(FrozenModel):
    """A question to the agent is open. Used by the position table."""

    kind: Literal["question_opened"] = "question_opened"
    level: ReverifyLevel


class QuestionClosed(FrozenModel):
    kind: Literal["question_closed"] = "question_closed"


class TimePassed(FrozenModel):
    """Nothing happened, and the clock was checked."""

    kind: Literal["time_passed"] = "time_passed"


class EngineRestarted(FrozenModel):
    """The engine was restarted after an interruption."""

    kind: Literal["restarted"] = "restarted"


class AttemptEnded(FrozenModel):
    """The agent has handed over its work; checks follow."""

    kind: Literal["attempt_ended"] = "attempt_ended"


AgentEvent = Annotated[
    TaskStarted
    | GateEntered
    | GatePassed
    | TurnStarted
    | TurnEnded
    | ToolUsed
    | FileChanged
    | ReportUpdated
    | TokensUsed
    | CriteriaChecked
    | CheckFailed
    | ResultClaimed
    | ApproachDiffers
    | ContextChanged
    | SelfLocated
    | QuestionAnswered
    | AnalysisSubmitted
    | AnswerUnreadable
    | QuestionOpened
    | QuestionClosed
    | TimePassed
    | EngineRestarted
    | AttemptEnded,
    Field(discriminator="kind"),
]


class AgentObservation(FrozenModel):
    """An event, its agent and its time."""

    agent: str
    at: float
    """Seconds on the engine's clock."""
    event: AgentEvent


class CauseNoticed(FrozenModel):
    kind: Literal["noticed"] = "noticed"
    cause: ReverifyCause


class QuestionDelayed(FrozenModel):
    """A question is due, but the last one was asked recently: it waits, and the agent continues."""

    kind: Literal["held"] = "held"
    causes: tuple[ReverifyCause, ...]
    until: float


class AskQuestion(FrozenModel):
    kind: Literal["ask"] = "ask"
    asked: DueQuestion
    at_once: bool = False
    """The agent is silent, so there is no turn boundary to wait for."""


class Escalate(FrozenModel):
    kind: Literal["escalate"] = "escalate"
    causes: tuple[ReverifyCause, ...]
    """The causes, at their current level."""
    to: ReverifyLevel
    why: str


class ResumeWork(FrozenModel):
    kind: Literal["resume"] = "resume"
    causes: tuple[ReverifyCause, ...]
    why: str
    caps: bool = False
    """Something could not be verified: the confidence is at most Medium."""
    plan_first: bool = False
    """The agent's approach has changed: its plan must be approved again before it continues."""


class UpdateContext(FrozenModel):
    """The agent deviates and said so: the plan and file ownership are amended, and it continues."""

    kind: Literal["update_context"] = "update_context"
    causes: tuple[ReverifyCause, ...]
    impact: DeviationImpact
    files: tuple[str, ...]
    """Files that are to be declared as well."""
    why: str
    caps: bool = False


class RequestCorrection(FrozenModel):
    """The agent is told what is wrong and submits again."""

    kind: Literal["correct"] = "correct"
    causes: tuple[ReverifyCause, ...]
    why: str
    submission: int
    """The number of the rejected submission."""
    finding: Finding | None = None


class RespawnAgent(FrozenModel):
    """The agent is stopped, and another one starts with another approach."""

    kind: Literal["respawn"] = "respawn"
    causes: tuple[ReverifyCause, ...]
    why: str
    finding: Finding | None = None


MonitorDecision = Annotated[
    CauseNoticed
    | QuestionDelayed
    | AskQuestion
    | Escalate
    | ResumeWork
    | UpdateContext
    | RequestCorrection
    | RespawnAgent,
    Field(discriminator="kind"),
]
