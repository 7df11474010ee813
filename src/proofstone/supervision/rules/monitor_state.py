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

from proofstone.agents.rules.routes import get_role
from proofstone.common.models import SHORT_LANES, FrozenModel, Lane
from proofstone.supervision.models.events import (
    AgentEvent,
    ApproachDiffers,
    CheckFailed,
    ContextChanged,
    CriteriaChecked,
    EngineRestarted,
    GateEntered,
    GatePassed,
    QuestionClosed,
    QuestionOpened,
    TaskStarted,
    TimePassed,
    TurnStarted,
)
from proofstone.supervision.models.ladder import DueQuestion, ReverifyCause, ReverifyLevel, ReverifyTrigger, WorkKind
from proofstone.supervision.models.understanding import SupervisionTier

TIER_BY_ROLE: Final[Mapping[str, SupervisionTier]] = MappingProxyType(
    {
        "executor": SupervisionTier.IMPLEMENTER,
        "planner": SupervisionTier.ARCHITECT,
        "designer": SupervisionTier.ARCHITECT,
        "researcher": SupervisionTier.RESEARCHER,
    }
)
"""Every other role has tier 0: it reads, answers once and ends."""

WORK_BY_ROLE: Final[Mapping[str, WorkKind]] = MappingProxyType(
    {
        "executor": WorkKind.IMPLEMENTATION,
        "planner": WorkKind.PLANNING,
        "designer": WorkKind.DESIGN,
        "researcher": WorkKind.RESEARCH,
    }
)

CAN_QUESTION_BACKEND: Final[Mapping[str, bool | None]] = MappingProxyType(
    {"api": True, "acp": True, "script": True, "cli": None, "cmd": False, "human": False}
)
"""Whether a kind of backend can be questioned. None: it depends on the program."""


class AgentProfile(FrozenModel):
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
    def work(self) -> WorkKind | None:
        return WORK_BY_ROLE.get(get_role(self.role))


def find_tier(role: str) -> SupervisionTier:
    return TIER_BY_ROLE.get(get_role(role), SupervisionTier.EXEMPT)


def explain_exemption(role: str, backend: str, *, lane: Lane | None = None, takes_prompts: bool = False) -> str:
    """Return why an agent is questioned neither before nor during its work, or an empty string. `backend` is the
    kind of its backend; `takes_prompts` says whether a program accepts further prompts.
    """
    if lane in SHORT_LANES:
        return f"the {lane} lane is too short for supervision"
    if find_tier(role) is SupervisionTier.EXEMPT:
        return f"tier {SupervisionTier.EXEMPT:d}: {get_role(role)} reads and answers once"
    askable = CAN_QUESTION_BACKEND.get(backend, False)
    if askable is None:
        return "" if takes_prompts else f"not applicable: this {backend} program takes no further prompt"
    return "" if askable else f"not applicable: {backend} cannot be asked"


_START_EVENTS: Final = (TaskStarted, GateEntered, GatePassed, TurnStarted, EngineRestarted)
_ENGINE_EVENTS: Final = (
    *_START_EVENTS,
    ApproachDiffers,
    CheckFailed,
    ContextChanged,
    CriteriaChecked,
    QuestionClosed,
    QuestionOpened,
    TimePassed,
)


def is_sign_of_life(event: AgentEvent) -> bool:
    return not isinstance(event, _ENGINE_EVENTS)


def ends_silence(event: AgentEvent) -> bool:
    """Return whether silence is counted from this event on: the agent was active, or something starts for it."""
    return is_sign_of_life(event) or isinstance(event, _START_EVENTS)


MINUTE: Final = 60.0


class SupervisionLimits(FrozenModel):
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


WINDOW_SHARE: Final = 0.8
"""Share of the context window beyond which the first instructions are at risk."""
HALF: Final = 0.5
"""Share of the criteria by which an agent must have looked something up."""
LARGE_DELTA: Final = 0.5
"""Share of a context beyond which a change is sent as the whole context."""


class AgentMonitor(FrozenModel):
    watched: AgentProfile
    limits: SupervisionLimits = SupervisionLimits()
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
    waiting: tuple[ReverifyCause, ...] = ()
    again: DueQuestion | None = None
    """The question to repeat at the next boundary."""
    open: DueQuestion | None = None
    silent: DueQuestion | None = None
    """The pings for silence, which are independent of other questions."""
    over: str = ""
    """Why monitoring has ended. Empty while it continues."""

    @property
    def open_causes(self) -> tuple[ReverifyCause, ...]:
        """Causes that are not settled yet."""
        questions = (question for question in (self.open, self.again, self.silent) if question is not None)
        return (*self.waiting, *(cause for question in questions for cause in question.causes))

    @property
    def is_analysing(self) -> bool:
        """Whether a question of level 3 is due or open. It covers every further cause for one."""
        levels = (
            *(pending.level for pending in self.waiting),
            *(pending.level for pending in (self.open, self.again) if pending),
        )
        return ReverifyLevel.ANALYSIS in levels

    @property
    def can_question(self) -> bool:
        return self.asked_at is None or self.now >= self.next_question_at

    @property
    def next_question_at(self) -> float:
        """When the next question of level 2 may be asked."""
        return 0.0 if self.asked_at is None else self.asked_at + self.limits.question_apart_seconds


class TriggerRow(NamedTuple):
    title: str
    level: ReverifyLevel
    when: str


TRIGGERS: Final[Mapping[ReverifyTrigger, TriggerRow]] = MappingProxyType(
    {
        ReverifyTrigger.SILENCE: TriggerRow(
            "silence", ReverifyLevel.PING, "the agent was silent for more than 15 minutes"
        ),
        ReverifyTrigger.STALE_DOCS: TriggerRow(
            "stale documents", ReverifyLevel.PING, "the agent's documents were stale twice in a row"
        ),
        ReverifyTrigger.SCOPE_CHANGE: TriggerRow(
            "scope change", ReverifyLevel.QUESTION, "a context update affects the agent's files or criteria"
        ),
        ReverifyTrigger.LOW_TOOL_USE: TriggerRow(
            "low tool use",
            ReverifyLevel.QUESTION,
            "more than half of the task is done, or an answer is given, without a lookup where one is required",
        ),
        ReverifyTrigger.DEVIATION: TriggerRow(
            "deviation",
            ReverifyLevel.ANALYSIS,
            "the agent changes undeclared files, or files that its approved plan does not name",
        ),
        ReverifyTrigger.RECOVERY: TriggerRow(
            "recovery", ReverifyLevel.PING, "the engine was restarted; a higher level follows if the answers do not fit"
        ),
    }
)
