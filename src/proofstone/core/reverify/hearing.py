"""Which events are the agent's own, and which are the engine's doing: only the first say that it is alive."""

from __future__ import annotations

from typing import Final

from proofstone.contracts.reverify.events import (
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
