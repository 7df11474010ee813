"""Who is asked at all. Agents by tier, backends by whether they can be asked, lanes by whether it is worth its cost.

| first match                                              | asked                                       |
|----------------------------------------------------------|---------------------------------------------|
| the lane is short (documentation, one small fix)         | no                                          |
| the role is of tier 0                                    | no                                          |
| the backend is `cmd:` or `human`                         | no: not applicable                          |
| a program that takes no further prompt                   | no: not applicable                          |
| otherwise                                                | yes                                         |

Which events are the agent's own, and which are the engine's doing: only the first say that it is alive.

How long, how often, how many. A limit is a setting; these are its values and the range it may have.

All that the monitor knows of one agent. It is kept in the ledger, so that it can be gone on with.

What sets re-verification off, and at which level it begins. One row for each trigger.
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
"""Every other role is of tier 0: it reads, answers once, and is gone."""

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
"""By the kind of backend. None: it depends on the program."""


class Watched(Contract):
    """An agent at work."""

    agent: str
    """As it is called in messages: `implementer-1`."""
    role: str
    phase: int = 0
    own_tools: bool = False
    """It is a program with tools of its own: how often it looks something up cannot be counted."""
    exempt: str = ""
    """Why it is never asked; empty: it is."""

    @property
    def work(self) -> Work | None:
        return WORK.get(role_of(self.role))


def tier_of(role: str) -> Tier:
    return TIERS.get(role_of(role), Tier.EXEMPT)


def why_exempt(role: str, backend: str, *, lane: Lane | None = None, takes_prompts: bool = False) -> str:
    """Why an agent is neither asked before its work nor during it; empty if it is. `backend` is the kind of its
    backend; `takes_prompts`: of a program, that it can be spoken to again."""
    if lane in SHORT:
        return f"the {lane} lane is too short for it"
    if tier_of(role) is Tier.EXEMPT:
        return f"tier {Tier.EXEMPT:d}: {role_of(role)} reads and answers once"
    askable = ASKABLE.get(backend, False)
    if askable is None:
        return "" if takes_prompts else f"not applicable: this {backend} program takes no further prompt"
    return "" if askable else f"not applicable: {backend} cannot be asked"


_BEGINS: Final = (TaskBegan, GateEntered, GatePassed, TurnStarted, Restarted)
_ENGINE: Final = (
    *_BEGINS,
    ApproachDiffers,
    CheckFailed,
    ContextChanged,
    CriteriaSeen,
    QuestionClosed,
    QuestionOpened,
    TimePassed,
)


def shows_life(event: Event) -> bool:
    return not isinstance(event, _ENGINE)


def ends_quiet(event: Event) -> bool:
    """Whether silence is counted from here: the agent was heard, or something begins for it."""
    return shows_life(event) or isinstance(event, _BEGINS)


MINUTE: Final = 60.0


class Limits(Contract):
    silence_seconds: float = Field(default=15 * MINUTE, gt=0, le=24 * 60 * MINUTE)
    """Longer than this without an event, and the agent is pinged."""
    question_apart_seconds: float = Field(default=30 * MINUTE, ge=0, le=24 * 60 * MINUTE)
    """Between two questions of level 2 to one agent. One that comes sooner waits."""
    pings: int = Field(default=3, ge=1, le=10)
    """In a row without an answer, and the agent is replaced."""
    submissions: int = Field(default=3, ge=1, le=10)
    """Of an abbreviated analysis, before the agent is replaced. There is one analysis in a task."""
    patience_turns: int = Field(default=10, ge=1, le=100)
    """Turns of nothing but tool calls, before an open question counts as unanswered."""
    stale_in_a_row: int = Field(default=2, ge=1, le=10)
    """Times that an agent says where it is with stale documents, before it is pinged about them."""
    milestones: bool = False
    """Whether an agent is asked when it goes from one task to the next."""


WINDOW_SHARE: Final = 0.8
"""Of what a model can see. Beyond that, what it was told first is at risk."""
HALF: Final = 0.5
"""Of the criteria: by then an agent must have looked something up."""
LARGE_DELTA: Final = 0.5
"""Of a context. Where more than that has changed, the whole of it is sent."""


class Monitor(Contract):
    watched: Watched
    limits: Limits = Limits()
    now: float = 0.0
    heard_at: float = 0.0
    """When it last had the word or made itself heard."""
    pinged_at: float = 0.0
    asked_at: float | None = None
    """When it was last asked a question of level 2."""
    in_turn: bool = False
    in_gate: bool = False
    task: str | None = None
    declared: tuple[str, ...] | None = None
    analysed: bool = False
    """The task's one question of level 3 was asked."""
    research: int = 0
    low_use_seen: bool = False
    reported: bool = False
    unreported: bool = False
    """Source has changed since its report was updated."""
    stale: int = 0
    causes: int = 0
    """So many were noticed."""
    waiting: tuple[Cause, ...] = ()
    again: Asked | None = None
    """To be asked once more, at the next boundary."""
    open: Asked | None = None
    silent: Asked | None = None
    """The pings for silence, which go beside the other questions."""
    over: str = ""
    """Why nothing follows any more."""

    @property
    def unsettled(self) -> tuple[Cause, ...]:
        """Causes of which nothing has come yet."""
        asked = (item for item in (self.open, self.again, self.silent) if item is not None)
        return (*self.waiting, *(cause for item in asked for cause in item.causes))

    @property
    def analysing(self) -> bool:
        """A question of level 3 is due or open: another reason for one belongs to it."""
        levels = (*(item.level for item in self.waiting), *(item.level for item in (self.open, self.again) if item))
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
        Trigger.SILENCE: Row("silence", Level.PING, "nothing was heard of it for more than 15 minutes"),
        Trigger.STALE_DOCS: Row("stale documents", Level.PING, "its documents were stale twice in a row"),
        Trigger.SCOPE_CHANGE: Row("scope change", Level.QUESTION, "a context update affects its files or criteria"),
        Trigger.MILESTONE: Row("milestone", Level.QUESTION, "it goes from one task to the next, if that is configured"),
        Trigger.LOW_TOOL_USE: Row(
            "low tool use", Level.QUESTION, "past half of the task without one look, where one is required"
        ),
        Trigger.DEVIATION: Row("deviation", Level.ANALYSIS, "it touches undeclared files, or its approach is another"),
        Trigger.RECOVERY: Row("recovery", Level.PING, "the engine was restarted; further up where answers do not fit"),
    }
)
