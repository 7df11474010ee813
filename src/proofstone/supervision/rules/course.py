"""The re-verification ladder: what follows from each answer, and how a cause moves from being noticed to being
settled.

One table decides. Every cause ends in a resume, a context update, or a new agent. A correction repeats the same
question, a limited number of times.

    RV-1 ── fits ─► resume         RV-2 ── understood ─► resume      RV-3 ── intact ─► resume
      │                              │                                 ├── justified ─► update of the context
      ├── anomaly ─► RV-2            └── gap, no answer ─► RV-3        └── unjustified, no answer ─► correction,
      └── no answer ─► RV-1, three times ─► respawn                            three times ─► respawn

One question is open at a time, and the strongest that is due covers the weaker ones. A question of level 2 that comes
too soon after another waits, and the agent continues. A task has at most one question of level 3: a second cause for
one replaces the agent.
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
    """Ask again; after the last time, respawn."""
    CORRECT = "correct"
    """Say what is wrong and ask again; after the last time, respawn."""


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
    """One step of a monitor: its new state, and the decisions made on the way."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.decisions: list[Decision] = []

    def set(self, **changes: object) -> None:
        self.monitor = self.monitor.model_copy(update=changes)

    # Notice a cause.

    def notice(self, trigger: Trigger, reason: str) -> None:
        """Record a cause. At the understanding gate, only a change of the context counts."""
        if not self.monitor.in_gate or trigger is Trigger.SCOPE_CHANGE:
            self.wait((self.numbered(trigger, reason),))

    def deviates(self, why: str) -> None:
        if self.monitor.in_gate or self.monitor.analysing:
            return
        self.notice(Trigger.DEVIATION, why)
        if self.monitor.analysed:
            self.respawn(f"the agent deviated a second time in one task: {why}")

    def numbered(self, trigger: Trigger, reason: str) -> Cause:
        number = self.monitor.causes + 1
        cause = Cause(number=number, trigger=trigger, level=TRIGGERS[trigger].level, reason=reason)
        self.set(causes=number)
        self.decisions.append(Noticed(cause=cause))
        return cause

    def wait(self, causes: tuple[Cause, ...]) -> None:
        self.set(waiting=(*self.monitor.waiting, *causes))
        held_back = tuple(cause for cause in causes if cause.level is Level.QUESTION)
        if held_back and not self.monitor.may_question:
            self.decisions.append(Held(causes=held_back, until=self.monitor.question_from))

    # Ask about causes.

    def deliver(self) -> None:
        """At a boundary, ask the strongest question that is due, for every cause that it can settle."""
        monitor = self.monitor
        if monitor.over or monitor.in_turn or monitor.in_gate or monitor.open is not None:
            return
        repeated = monitor.again
        due_levels = {
            *(waiting_cause.level for waiting_cause in monitor.waiting),
            *([repeated.level] if repeated else []),
        }
        if not monitor.may_question:
            due_levels.discard(Level.QUESTION)
        if not due_levels:
            return
        level = max(due_levels)
        causes = (
            *(repeated.causes if repeated else ()),
            *(waiting_cause for waiting_cause in monitor.waiting if waiting_cause.level <= level),
        )
        question = Asked(
            level=level,
            causes=tuple(cause.model_copy(update={"level": level}) for cause in causes),
            time=repeated.time if repeated and repeated.level is level else 1,
        )
        self.set(
            open=question,
            again=None,
            waiting=tuple(waiting_cause for waiting_cause in monitor.waiting if waiting_cause.level > level),
            in_turn=True,
            heard_at=monitor.now,
            analysed=monitor.analysed or level is Level.ANALYSIS,
            asked_at=monitor.now if level is Level.QUESTION else monitor.asked_at,
        )
        self.decisions.append(Ask(asked=question))

    def ping(self, minutes: float) -> None:
        """Ping a silent agent at once, and replace it after enough pings."""
        silent = self.monitor.silent
        if silent is not None and silent.time >= self.monitor.limits.pings:
            self.respawn(f"{silent.time} pings were not answered")
            return
        if silent is None:
            cause = self.numbered(Trigger.SILENCE, f"the agent was silent for {minutes:.0f} minutes")
            silent = Asked(level=Level.PING, causes=(cause,))
        else:
            silent = silent.model_copy(update={"time": silent.time + 1})
        self.set(silent=silent, pinged_at=self.monitor.now)
        self.decisions.append(Ask(asked=silent, at_once=True))

    def take_back(self) -> None:
        """Withdraw the open question and ask it again later: the agent may not have received it, or it is out of
        place now.
        """
        question = self.monitor.open
        if question is None:
            return
        self.set(open=None)
        if question.level is Level.QUESTION:
            self.wait(question.causes)
        else:
            self.set(again=question.model_copy(update={"turns": 0}))

    # Settle a cause.

    def close(self, result: Result, why: str, *, score: Score | None = None, plan_first: bool = False) -> None:
        question = self.monitor.open
        if question is not None:
            self.set(open=None)
            self.conclude(question, result, why, score=score, plan_first=plan_first)

    def conclude(
        self, asked: Asked, result: Result, why: str, *, score: Score | None = None, plan_first: bool = False
    ) -> None:
        """Apply the table to the result of a question."""
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
                correction = Correct(causes=asked.causes, why=why, submission=asked.time, finding=finding)
                self.decisions.append(correction)
                final_reason = f"the analysis was rejected {asked.time} times: {why}"
                self.once_more(asked, self.monitor.limits.submissions, final_reason, finding)

    def update(self, asked: Asked, why: str, score: Score | None, caps: bool) -> None:
        if score is None:
            raise TypeError("a deviation is justified by a score")
        declared = self.monitor.declared
        self.set(declared=None if declared is None else tuple(dict.fromkeys((*declared, *score.amended))))
        self.decisions.append(
            UpdateContext(causes=asked.causes, impact=score.impact, files=score.amended, why=why, caps=caps)
        )

    def escalate(self, asked: Asked, why: str) -> None:
        to = Level(asked.level + 1)
        self.decisions.append(Escalate(causes=asked.causes, to=to, why=why))
        is_analysis_spent = to is Level.ANALYSIS and self.monitor.analysed and not self.monitor.analysing
        self.wait(tuple(cause.model_copy(update={"level": to}) for cause in asked.causes))
        if is_analysis_spent:
            self.respawn(f"{why}, and the one analysis of this task was already made")

    def once_more(self, asked: Asked, limit: int, final_reason: str, finding: Finding | None) -> None:
        self.set(again=asked.model_copy(update={"time": asked.time + 1, "turns": 0}))
        if asked.time >= limit:
            self.respawn(final_reason, finding)

    # End without an answer.

    def lapse(self, causes: tuple[Cause, ...], why: str) -> None:
        """Drop causes that have become obsolete."""
        if causes:
            self.decisions.append(Resume(causes=causes, why=why))
        self.set(waiting=(), again=None, open=None, silent=None)

    def respawn(self, why: str, finding: Finding | None = None) -> None:
        self.decisions.append(Respawn(causes=self.monitor.unsettled, why=why, finding=finding))
        self.set(over=why, waiting=(), again=None, open=None, silent=None)
