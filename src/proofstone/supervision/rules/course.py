"""What follows from an answer, and from none: one table. Everything ends in resume, an update of the context, or
another agent; a correction comes back to the same question, a limited number of times.

    RV-1 ── fits ─► resume         RV-2 ── understood ─► resume      RV-3 ── intact ─► resume
      │                              │                                 ├── justified ─► update of the context
      ├── anomaly ─► RV-2            └── gap, no answer ─► RV-3        └── unjustified, no answer ─► correction,
      └── no answer ─► RV-1, three times ─► respawn                            three times ─► respawn

The course of a cause: it is noticed, waits for a boundary, is asked about, goes up the ladder, and ends.

One question is open at a time, and the strongest that is due speaks for the weaker ones. A question of level 2 that
comes too soon after another waits, and the agent goes on; of level 3 there is one in a task, and a second cause for one
means another agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from proofstone.common.models import Finding
from proofstone.supervision.models.events import (
    Ask,
    Correct,
    Decision,
    Escalate,
    Held,
    Noticed,
    Respawn,
    Resume,
    UpdateContext,
)
from proofstone.supervision.models.ladder import Asked, Cause, Level, Result, Score, Trigger
from proofstone.supervision.rules.monitor_state import TRIGGERS, Monitor


class Move(StrEnum):
    RESUME = "resume"
    UPDATE = "update"
    ESCALATE = "escalate"
    AGAIN = "again"
    """Asked once more; after the last time, respawn."""
    CORRECT = "correct"
    """Told what is wrong and asked once more; after the last time, respawn."""


LADDER: Final[Mapping[tuple[Level, Result], Move]] = MappingProxyType(
    {
        (Level.PING, Result.FITS): Move.RESUME,
        (Level.PING, Result.ANOMALY): Move.ESCALATE,
        (Level.PING, Result.UNANSWERED): Move.AGAIN,
        (Level.QUESTION, Result.UNDERSTOOD): Move.RESUME,
        (Level.QUESTION, Result.UNVERIFIABLE): Move.RESUME,
        (Level.QUESTION, Result.GAP): Move.ESCALATE,
        (Level.QUESTION, Result.UNANSWERED): Move.ESCALATE,
        (Level.ANALYSIS, Result.INTACT): Move.RESUME,
        (Level.ANALYSIS, Result.JUSTIFIED): Move.UPDATE,
        (Level.ANALYSIS, Result.UNJUSTIFIED): Move.CORRECT,
        (Level.ANALYSIS, Result.UNANSWERED): Move.CORRECT,
    }
)


class Course:
    """One step: the monitor as it becomes, and what was decided on the way."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.decisions: list[Decision] = []

    def set(self, **changes: object) -> None:
        self.monitor = self.monitor.model_copy(update=changes)

    # It begins.

    def notice(self, trigger: Trigger, reason: str) -> None:
        """At the understanding gate nothing is noticed but what changes around the agent."""
        if not self.monitor.in_gate or trigger is Trigger.SCOPE_CHANGE:
            self.wait((self.numbered(trigger, reason),))

    def deviates(self, why: str) -> None:
        if self.monitor.in_gate or self.monitor.analysing:
            return
        self.notice(Trigger.DEVIATION, why)
        if self.monitor.analysed:
            self.respawn(f"a second time in one task, {why}")

    def numbered(self, trigger: Trigger, reason: str) -> Cause:
        number = self.monitor.causes + 1
        cause = Cause(number=number, trigger=trigger, level=TRIGGERS[trigger].level, reason=reason)
        self.set(causes=number)
        self.decisions.append(Noticed(cause=cause))
        return cause

    def wait(self, causes: tuple[Cause, ...]) -> None:
        self.set(waiting=(*self.monitor.waiting, *causes))
        held = tuple(cause for cause in causes if cause.level is Level.QUESTION)
        if held and not self.monitor.may_question:
            self.decisions.append(Held(causes=held, until=self.monitor.question_from))

    # It is asked about.

    def deliver(self) -> None:
        """At a boundary: the strongest question that is due, for all that it can settle."""
        monitor = self.monitor
        if monitor.over or monitor.in_turn or monitor.in_gate or monitor.open is not None:
            return
        again = monitor.again
        due = {*(item.level for item in monitor.waiting), *([again.level] if again else [])}
        if not monitor.may_question:
            due.discard(Level.QUESTION)
        if not due:
            return
        level = max(due)
        causes = (*(again.causes if again else ()), *(item for item in monitor.waiting if item.level <= level))
        asked = Asked(
            level=level,
            causes=tuple(cause.model_copy(update={"level": level}) for cause in causes),
            time=again.time if again and again.level is level else 1,
        )
        self.set(
            open=asked,
            again=None,
            waiting=tuple(item for item in monitor.waiting if item.level > level),
            in_turn=True,
            heard_at=monitor.now,
            analysed=monitor.analysed or level is Level.ANALYSIS,
            asked_at=monitor.now if level is Level.QUESTION else monitor.asked_at,
        )
        self.decisions.append(Ask(asked=asked))

    def ping(self, minutes: float) -> None:
        """Nothing is heard of it: it is asked at once, and replaced when that was done often enough."""
        silent = self.monitor.silent
        if silent is not None and silent.time >= self.monitor.limits.pings:
            self.respawn(f"{silent.time} pings were not answered")
            return
        if silent is None:
            cause = self.numbered(Trigger.SILENCE, f"nothing was heard of it for {minutes:.0f} minutes")
            silent = Asked(level=Level.PING, causes=(cause,))
        else:
            silent = silent.model_copy(update={"time": silent.time + 1})
        self.set(silent=silent, pinged_at=self.monitor.now)
        self.decisions.append(Ask(asked=silent, at_once=True))

    def take_back(self) -> None:
        """The open question is asked again later, as the same: it may not have been heard, or is out of place now."""
        asked = self.monitor.open
        if asked is None:
            return
        self.set(open=None)
        if asked.level is Level.QUESTION:
            self.wait(asked.causes)
        else:
            self.set(again=asked.model_copy(update={"turns": 0}))

    # Something comes of it.

    def close(self, result: Result, why: str, *, score: Score | None = None, plan_first: bool = False) -> None:
        asked = self.monitor.open
        if asked is not None:
            self.set(open=None)
            self.conclude(asked, result, why, score=score, plan_first=plan_first)

    def conclude(
        self, asked: Asked, result: Result, why: str, *, score: Score | None = None, plan_first: bool = False
    ) -> None:
        """By the table."""
        caps = result is Result.UNVERIFIABLE or bool(score and score.unverifiable)
        match LADDER[asked.level, result]:
            case Move.RESUME:
                self.decisions.append(Resume(causes=asked.causes, why=why, caps=caps, plan_first=plan_first))
            case Move.UPDATE:
                self.update(asked, why, score, caps)
            case Move.ESCALATE:
                self.escalate(asked, why)
            case Move.AGAIN:
                self.once_more(asked, self.monitor.limits.pings, f"{asked.time} pings were not answered", None)
            case Move.CORRECT:
                finding = score.hidden if score else None
                told = Correct(causes=asked.causes, why=why, submission=asked.time, finding=finding)
                self.decisions.append(told)
                last = f"its analysis was refused {asked.time} times: {why}"
                self.once_more(asked, self.monitor.limits.submissions, last, finding)

    def update(self, asked: Asked, why: str, score: Score | None, caps: bool) -> None:
        if score is None:
            raise TypeError("a deviation is justified by a score")
        known = self.monitor.declared
        self.set(declared=None if known is None else tuple(dict.fromkeys((*known, *score.amended))))
        self.decisions.append(
            UpdateContext(causes=asked.causes, impact=score.impact, files=score.amended, why=why, caps=caps)
        )

    def escalate(self, asked: Asked, why: str) -> None:
        to = Level(asked.level + 1)
        self.decisions.append(Escalate(causes=asked.causes, to=to, why=why))
        spent = to is Level.ANALYSIS and self.monitor.analysed and not self.monitor.analysing
        self.wait(tuple(cause.model_copy(update={"level": to}) for cause in asked.causes))
        if spent:
            self.respawn(f"{why}, and its task's one analysis was made before")

    def once_more(self, asked: Asked, most: int, last: str, finding: Finding | None) -> None:
        self.set(again=asked.model_copy(update={"time": asked.time + 1, "turns": 0}))
        if asked.time >= most:
            self.respawn(last, finding)

    # It ends otherwise.

    def lapse(self, causes: tuple[Cause, ...], why: str) -> None:
        """It has no subject any more."""
        if causes:
            self.decisions.append(Resume(causes=causes, why=why))
        self.set(waiting=(), again=None, open=None, silent=None)

    def respawn(self, why: str, finding: Finding | None = None) -> None:
        self.decisions.append(Respawn(causes=self.monitor.unsettled, why=why, finding=finding))
        self.set(over=why, waiting=(), again=None, open=None, silent=None)
