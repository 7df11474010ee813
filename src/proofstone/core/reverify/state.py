"""All that the monitor knows of one agent. It is kept in the ledger, so that it can be gone on with."""

from __future__ import annotations

from proofstone.contracts.base import Contract
from proofstone.contracts.reverify.ladder import Asked, Cause, Level
from proofstone.core.reverify.limits import Limits
from proofstone.core.reverify.watched import Watched


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
        asked = (one for one in (self.open, self.again, self.silent) if one is not None)
        return (*self.waiting, *(cause for one in asked for cause in one.causes))

    @property
    def analysing(self) -> bool:
        """A question of level 3 is due or open: another reason for one belongs to it."""
        levels = (*(one.level for one in self.waiting), *(one.level for one in (self.open, self.again) if one))
        return Level.ANALYSIS in levels

    @property
    def may_question(self) -> bool:
        return self.asked_at is None or self.now >= self.question_from

    @property
    def question_from(self) -> float:
        """When the next question of level 2 may be asked."""
        return 0.0 if self.asked_at is None else self.asked_at + self.limits.question_apart_seconds
