"""What the engine sees of an agent, one thing after another. The monitor and the position table both live on these.

What the monitor decides. Everything that was noticed ends in one of `Resume`, `UpdateContext` and `Respawn`, with or
without corrections before that.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofstone.common.models import Contract, Finding
from proofstone.supervision.models.ladder import Asked, Cause, Grade, Impact, Level, Score, SelfLocate


class TaskBegan(Contract):
    kind: Literal["task_began"] = "task_began"
    task: str
    number: int = 1
    total: int = 1
    files: tuple[str, ...] | None = None
    """What it may change; None: nobody has said."""
    criteria: int = 0


class GateEntered(Contract):
    """The understanding gate begins."""

    kind: Literal["gate_entered"] = "gate_entered"


class GatePassed(Contract):
    """The understanding gate is behind it: the work begins."""

    kind: Literal["gate_passed"] = "gate_passed"


class TurnStarted(Contract):
    kind: Literal["turn_started"] = "turn_started"


class TurnEnded(Contract):
    """A turn boundary: the agent can be spoken to."""

    kind: Literal["turn_ended"] = "turn_ended"
    calls: int = Field(default=0, ge=0)
    """Tools that it called. None: it has said what it had to say."""


class ToolUsed(Contract):
    kind: Literal["tool_used"] = "tool_used"
    name: str


class FileChanged(Contract):
    kind: Literal["file_changed"] = "file_changed"
    path: str


class ReportUpdated(Contract):
    """What the agent keeps for others to read is as new as its work."""

    kind: Literal["report_updated"] = "report_updated"


class TokensUsed(Contract):
    """How much of what the model can see is taken."""

    kind: Literal["tokens_used"] = "tokens_used"
    tokens: int = Field(ge=0)
    window: int | None = Field(default=None, gt=0)


class CriteriaSeen(Contract):
    """How many criteria the engine has seen to be met."""

    kind: Literal["criteria_seen"] = "criteria_seen"
    met: int = Field(ge=0)
    total: int = Field(ge=0)


class CheckFailed(Contract):
    kind: Literal["check_failed"] = "check_failed"
    check: str


class Claimed(Contract):
    """What the agent says it has done."""

    kind: Literal["claimed"] = "claimed"
    status: Literal["success", "failure", "blocked"]
    files: tuple[str, ...] = ()
    error: str = ""


class ApproachDiffers(Contract):
    """Whoever compares it with the plan finds that it goes about it otherwise."""

    kind: Literal["approach_differs"] = "approach_differs"
    why: str


class ContextChanged(Contract):
    """A context update was sent that affects this agent's files or criteria."""

    kind: Literal["context_changed"] = "context_changed"
    version: int
    what: str


class SelfLocated(Contract):
    """The agent said where it is."""

    kind: Literal["self_located"] = "self_located"
    located: SelfLocate
    anomalies: tuple[str, ...] = ()
    """What of it is not as the engine sees it."""


class QuestionAnswered(Contract):
    kind: Literal["question_answered"] = "question_answered"
    grade: Grade


class AnalysisSubmitted(Contract):
    kind: Literal["analysis_submitted"] = "analysis_submitted"
    score: Score


class AnswerUnreadable(Contract):
    """It answered, but nothing that can be read as an answer to what was asked."""

    kind: Literal["answer_unreadable"] = "answer_unreadable"
    why: str


class QuestionOpened(Contract):
    """For the position table: the agent is being asked."""

    kind: Literal["question_opened"] = "question_opened"
    level: Level


class QuestionClosed(Contract):
    kind: Literal["question_closed"] = "question_closed"


class TimePassed(Contract):
    """Nothing happened, and the clock was looked at."""

    kind: Literal["time_passed"] = "time_passed"


class Restarted(Contract):
    """The engine has come back after an interruption."""

    kind: Literal["restarted"] = "restarted"


class AttemptEnded(Contract):
    """Its work is handed over: what comes now are checks."""

    kind: Literal["attempt_ended"] = "attempt_ended"


Event = Annotated[
    TaskBegan
    | GateEntered
    | GatePassed
    | TurnStarted
    | TurnEnded
    | ToolUsed
    | FileChanged
    | ReportUpdated
    | TokensUsed
    | CriteriaSeen
    | CheckFailed
    | Claimed
    | ApproachDiffers
    | ContextChanged
    | SelfLocated
    | QuestionAnswered
    | AnalysisSubmitted
    | AnswerUnreadable
    | QuestionOpened
    | QuestionClosed
    | TimePassed
    | Restarted
    | AttemptEnded,
    Field(discriminator="kind"),
]


class Observed(Contract):
    """An event, and whose it is."""

    agent: str
    at: float
    """Seconds, by whatever clock the engine goes by."""
    event: Event


class Noticed(Contract):
    kind: Literal["noticed"] = "noticed"
    cause: Cause


class Held(Contract):
    """It is to be asked, but was asked a short while ago: the question waits, and the agent goes on."""

    kind: Literal["held"] = "held"
    causes: tuple[Cause, ...]
    until: float


class Ask(Contract):
    kind: Literal["ask"] = "ask"
    asked: Asked
    at_once: bool = False
    """Nothing is heard of the agent: there is no turn boundary to wait for."""


class Escalate(Contract):
    kind: Literal["escalate"] = "escalate"
    causes: tuple[Cause, ...]
    """At the level that they are at now."""
    to: Level
    why: str


class Resume(Contract):
    kind: Literal["resume"] = "resume"
    causes: tuple[Cause, ...]
    why: str
    caps: bool = False
    """Something could not be verified: the confidence is at most Medium."""
    plan_first: bool = False
    """Its approach has changed: its plan is to be approved again before it goes on."""


class UpdateContext(Contract):
    """It deviates, and said so: plan and ownership are amended, and it goes on."""

    kind: Literal["update_context"] = "update_context"
    causes: tuple[Cause, ...]
    impact: Impact
    files: tuple[str, ...]
    """To be declared as well."""
    why: str
    caps: bool = False


class Correct(Contract):
    """It is told what is wrong, and submits again."""

    kind: Literal["correct"] = "correct"
    causes: tuple[Cause, ...]
    why: str
    submission: int
    """The one that was refused."""
    finding: Finding | None = None


class Respawn(Contract):
    """The agent is stopped, and another one begins with another approach."""

    kind: Literal["respawn"] = "respawn"
    causes: tuple[Cause, ...]
    why: str
    finding: Finding | None = None


Decision = Annotated[
    Noticed | Held | Ask | Escalate | Resume | UpdateContext | Correct | Respawn, Field(discriminator="kind")
]
Ending = Resume | UpdateContext | Respawn
