"""The state of a monitor: the supervised agent, its limits, its open questions, and the triggers of re-verification.

The state is recorded in the ledger, so that a run can be resumed. Whether an agent is questioned at all depends on its
tier, on whether its backend can be questioned, and on the lane:

| first match                                              | questioned                                  |
|----------------------------------------------------------|---------------------------------------------|
| the lane is short (documentation, one small fix)         | no                                          |
| the role has tier 0                                      | no                                          |
| the backend is `cmd:` or `human`                         | no: not applicable                          |
| a program that takes no further prompt                   | no: not applicable                          |
| otherwise                                                | yes                                         |

Only events that the agent causes itself show that it is alive; events of the engine do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from pydantic import Field

from proofstone.agents.rules.routes import role_of
from proofstone.common.models import SHORT, Contract, Lane
from proofstone.supervision.models.events import (
    ApproachDiffers,
    CheckFailed,
    ContextChanged,
    CriteriaSeen,
    Event,
    GateEntered,
    GatePassed,
    QuestionClosed,
    QuestionOpened,
    Restarted,
    TaskBegan,
    TimePassed,
    TurnStarted,
)
from proofstone.supervision.models.ladder import Asked, Cause, Level, Trigger, Work
from proofstone.supervision.models.understanding import Tier

TIERS: Final[Mapping[str, Tier]] = MappingProxyType(
    {
        "executor": Tier.IMPLEMENTER,
        "planner": Tier.ARCHITECT,
        "designer": Tier.ARCHITECT,
        "researcher": Tier.RESEARCHER,
    }
)
"""Every other role has tier 0: it reads, answers once and ends."""

WORK: Final[Mapping[str, Work]] = MappingProxyType(
    {
        "executor": Work.IMPLEMENTATION,
        "planner": Work.PLANNING,
        "designer": Work.DESIGN,
        "researcher": Work.RESEARCH,
    }
)

ASKABLE: Final[Mapping[str, bool | None]] = MappingProxyType(
    {"api": True, "acp": True, "script": True, "cli": None, "cmd": False, "human": False}
)
"""Whether a kind of backend can be questioned. None: it depends on the program."""


class Watched(Contract):
    """An agent at work."""

    agent: str
    """Its name in messages, for example `implementer-1`."""
    role: str
    phase: int = 0
    own_tools: bool = False
    """A program with its own tools: its lookups cannot be counted."""
    exempt: str = ""
    """Why the agent is never questioned. Empty if it is."""

    @property
    def work(self) -> Work | None:
        return WORK.get(role_of(self.role))


def tier_of(role: str) -> Tier:
    return TIERS.get(role_of(role), Tier.EXEMPT)


def why_exempt(role: str, backend: str, *, lane: Lane | None = None, takes_prompts: bool = False) -> str:
    """Return why an agent is questioned neither before nor during its work, or an empty string. `backend` is the
    kind of its backend; `takes_prompts` says whether a program accepts further prompts.
    """
    if lane in SHORT:
        return f"the {lane} lane is too short for supervision"
    if tier_of(role) is Tier.EXEMPT:
        return f"tier {Tier.EXEMPT:d}: {role_of(role)} reads and answers once"
    askable = ASKABLE.get(backend, False)
    if askable is None:
        return "" if takes_prompts else f"not applicable: this {backend} program takes no further prompt"
    return "" if askable else f"not applicable: {backend} cannot be asked"


_START_EVENTS: Final = (TaskBegan, GateEntered, GatePassed, TurnStarted, Restarted)
_ENGINE_EVENTS: Final = (
    *_START_EVENTS,
    ApproachDiffers,
    CheckFailed,
    ContextChanged,
    CriteriaSeen,
    QuestionClosed,
    QuestionOpened,
    TimePassed,
)


def shows_life(event: Event) -> bool:
    return not isinstance(event, _ENGINE_EVENTS)


def ends_quiet(event: Event) -> bool:
    """Return whether silence is counted from this event on: the agent was active, or something starts for it."""
    return shows_life(event) or isinstance(event, _START_EVENTS)


MINUTE: Final = 60.0


class Limits(Contract):
    silence_seconds: float = Field(default=15 * MINUTE, gt=0, le=24 * 60 * MINUTE)
    """Silence after which the agent is pinged."""
    question_apart_seconds: float = Field(default=30 * MINUTE, ge=0, le=24 * 60 * MINUTE)
    """Minimum time between two questions of level 2 to one agent. An earlier question waits."""
    pings: int = Field(default=3, ge=1, le=10)
    """Unanswered pings in a row after which the agent is replaced."""
    submissions: int = Field(default=3, ge=1, le=10)
    """Submissions of an abbreviated analysis after which the agent is replaced. A task has one analysis."""
    patience_turns: int = Field(default=10, ge=1, le=100)
    """Turns with only tool calls after which an open question counts as unanswered."""
    stale_in_a_row: int = Field(default=2, ge=1, le=10)
    """Position reports in a row with stale documents after which the agent is pinged about them."""
    milestones: bool = False
    """Whether an agent is questioned when it moves to the next task."""


WINDOW_SHARE: Final = 0.8
"""Share of the context window beyond which the first instructions are at risk."""
HALF: Final = 0.5
"""Share of the criteria by which an agent must have looked something up."""
LARGE_DELTA: Final = 0.5
"""Share of a context beyond which a change is sent as the whole context."""


class Monitor(Contract):
    watched: Watched
    limits: Limits = Limits()
    now: float = 0.0
    heard_at: float = 0.0
    """When a turn last started or the agent was last active."""
    pinged_at: float = 0.0
    asked_at: float | None = None
    """When the agent was last asked a question of level 2."""
    in_turn: bool = False
    in_gate: bool = False
    task: str | None = None
    declared: tuple[str, ...] | None = None
    analysed: bool = False
    """Whether the task's one question of level 3 was asked."""
    research: int = 0
    low_use_seen: bool = False
    reported: bool = False
    unreported: bool = False
    """Source has changed since the report was updated."""
    stale: int = 0
    causes: int = 0
    """The number of causes noticed so far."""
    waiting: tuple[Cause, ...] = ()
    again: Asked | None = None
    """The question to repeat at the next boundary."""
    open: Asked | None = None
    silent: Asked | None = None
    """The pings for silence, which are independent of other questions."""
    over: str = ""
    """Why monitoring has ended. Empty while it continues."""

    @property
    def unsettled(self) -> tuple[Cause, ...]:
        """Causes that are not settled yet."""
        questions = (question for question in (self.open, self.again, self.silent) if question is not None)
        return (*self.waiting, *(cause for question in questions for cause in question.causes))

    @property
    def analysing(self) -> bool:
        """Whether a question of level 3 is due or open. It covers every further cause for one."""
        levels = (
            *(pending.level for pending in self.waiting),
            *(pending.level for pending in (self.open, self.again) if pending),
        )
        return Level.ANALYSIS in levels

    @property
    def may_question(self) -> bool:
        return self.asked_at is None or self.now >= self.question_from

    @property
    def question_from(self) -> float:
        """When the next question of level 2 may be asked."""
        return 0.0 if self.asked_at is None else self.asked_at + self.limits.question_apart_seconds


class Row(NamedTuple):
    title: str
    level: Level
    when: str


TRIGGERS: Final[Mapping[Trigger, Row]] = MappingProxyType(
    {
        Trigger.SILENCE: Row("silence", Level.PING, "the agent was silent for more than 15 minutes"),
        Trigger.STALE_DOCS: Row("stale documents", Level.PING, "the agent's documents were stale twice in a row"),
        Trigger.SCOPE_CHANGE: Row(
            "scope change", Level.QUESTION, "a context update affects the agent's files or criteria"
        ),
        Trigger.MILESTONE: Row("milestone", Level.QUESTION, "the agent moves to its next task, if that is configured"),
        Trigger.LOW_TOOL_USE: Row(
            "low tool use", Level.QUESTION, "more than half of the task is done without a lookup, where one is required"
        ),
        Trigger.DEVIATION: Row(
            "deviation", Level.ANALYSIS, "the agent changes undeclared files, or its approach differs from the plan"
        ),
        Trigger.RECOVERY: Row(
            "recovery", Level.PING, "the engine was restarted; a higher level follows if the answers do not fit"
        ),
    }
)
