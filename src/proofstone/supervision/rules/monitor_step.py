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
from proofstone.common.text import pluralize
from proofstone.supervision.models.events import (
    AskQuestion,
    CauseNoticed,
    Escalate,
    MonitorDecision,
    QuestionDelayed,
    RequestCorrection,
    RespawnAgent,
    ResumeWork,
    UpdateContext,
)
from proofstone.supervision.models.ladder import (
    AnalysisScore,
    AnswerResult,
    DueQuestion,
    ReverifyCause,
    ReverifyLevel,
    ReverifyTrigger,
)
from proofstone.supervision.rules.monitor_state import TRIGGERS, AgentMonitor


class LadderMove(StrEnum):
    RESUME = "resume"
    UPDATE = "update"
    ESCALATE = "escalate"
    AGAIN = "again"
    """Ask again; after the last time, respawn."""
    CORRECT = "correct"
    """Say what is wrong and ask again; after the last time, respawn."""


LADDER_MOVES: Final[Mapping[tuple[ReverifyLevel, AnswerResult], LadderMove]] = MappingProxyType(
    {
        (ReverifyLevel.PING, AnswerResult.FITS): LadderMove.RESUME,
        (ReverifyLevel.PING, AnswerResult.ANOMALY): LadderMove.ESCALATE,
        (ReverifyLevel.PING, AnswerResult.UNANSWERED): LadderMove.AGAIN,
        (ReverifyLevel.QUESTION, AnswerResult.UNDERSTOOD): LadderMove.RESUME,
        (ReverifyLevel.QUESTION, AnswerResult.UNVERIFIABLE): LadderMove.RESUME,
        (ReverifyLevel.QUESTION, AnswerResult.GAP): LadderMove.ESCALATE,
        (ReverifyLevel.QUESTION, AnswerResult.UNANSWERED): LadderMove.ESCALATE,
        (ReverifyLevel.ANALYSIS, AnswerResult.INTACT): LadderMove.RESUME,
        (ReverifyLevel.ANALYSIS, AnswerResult.JUSTIFIED): LadderMove.UPDATE,
        (ReverifyLevel.ANALYSIS, AnswerResult.UNJUSTIFIED): LadderMove.CORRECT,
        (ReverifyLevel.ANALYSIS, AnswerResult.UNANSWERED): LadderMove.CORRECT,
    }
)


class MonitorStep:
    """One step of a monitor: its new state, and the decisions made on the way."""

    def __init__(self, monitor: AgentMonitor) -> None:
        self.monitor = monitor
        self.decisions: list[MonitorDecision] = []

    def update_monitor(self, **changes: object) -> None:
        self.monitor = self.monitor.model_copy(update=changes)

    # Notice a cause.

    def notice(self, trigger: ReverifyTrigger, reason: str) -> None:
        """Record a cause. At the understanding gate, only a change of the context counts."""
        if not self.monitor.in_gate or trigger is ReverifyTrigger.SCOPE_CHANGE:
            self.queue_causes((self.create_cause(trigger, reason),))

    def notice_deviation(self, why: str) -> None:
        if self.monitor.in_gate or self.monitor.is_analysing:
            return
        self.notice(ReverifyTrigger.DEVIATION, why)
        if self.monitor.analysed:
            self.respawn(f"the agent deviated a second time in one task: {why}")

    def create_cause(self, trigger: ReverifyTrigger, reason: str) -> ReverifyCause:
        number = self.monitor.causes + 1
        cause = ReverifyCause(number=number, trigger=trigger, level=TRIGGERS[trigger].level, reason=reason)
        self.update_monitor(causes=number)
        self.decisions.append(CauseNoticed(cause=cause))
        return cause

    def queue_causes(self, causes: tuple[ReverifyCause, ...]) -> None:
        self.update_monitor(waiting=(*self.monitor.waiting, *causes))
        held_back = tuple(cause for cause in causes if cause.level is ReverifyLevel.QUESTION)
        if held_back and not self.monitor.can_question:
            self.decisions.append(QuestionDelayed(causes=held_back, until=self.monitor.next_question_at))

    # Ask about causes.

    def ask_due_question(self) -> None:
        """At a boundary, ask the strongest question that is due, for every cause that it can settle."""
        monitor = self.monitor
        if monitor.over or monitor.in_turn or monitor.in_gate or monitor.open is not None:
            return
        repeated = monitor.again
        due_levels = {
            *(waiting_cause.level for waiting_cause in monitor.waiting),
            *([repeated.level] if repeated else []),
        }
        if not monitor.can_question:
            due_levels.discard(ReverifyLevel.QUESTION)
        if not due_levels:
            return
        level = max(due_levels)
        causes = (
            *(repeated.causes if repeated else ()),
            *(waiting_cause for waiting_cause in monitor.waiting if waiting_cause.level <= level),
        )
        question = DueQuestion(
            level=level,
            causes=tuple(cause.model_copy(update={"level": level}) for cause in causes),
            time=repeated.time if repeated and repeated.level is level else 1,
        )
        self.update_monitor(
            open=question,
            again=None,
            waiting=tuple(waiting_cause for waiting_cause in monitor.waiting if waiting_cause.level > level),
            in_turn=True,
            heard_at=monitor.now,
            analysed=monitor.analysed or level is ReverifyLevel.ANALYSIS,
            asked_at=monitor.now if level is ReverifyLevel.QUESTION else monitor.asked_at,
        )
        self.decisions.append(AskQuestion(asked=question))

    def ping(self, minutes: float) -> None:
        """Ping a silent agent at once, and replace it after enough pings."""
        silent = self.monitor.silent
        if silent is not None and silent.time >= self.monitor.limits.pings:
            self.respawn(f"{silent.time} pings were not answered")
            return
        if silent is None:
            cause = self.create_cause(ReverifyTrigger.SILENCE, f"the agent was silent for {_describe_minutes(minutes)}")
            silent = DueQuestion(level=ReverifyLevel.PING, causes=(cause,))
        else:
            silent = silent.model_copy(update={"time": silent.time + 1})
        self.update_monitor(silent=silent, pinged_at=self.monitor.now)
        self.decisions.append(AskQuestion(asked=silent, at_once=True))

    def withdraw_question(self) -> None:
        """Withdraw the open question and ask it again later: the agent may not have received it, or it is out of
        place now.
        """
        question = self.monitor.open
        if question is None:
            return
        self.update_monitor(open=None)
        if question.level is ReverifyLevel.QUESTION:
            self.queue_causes(question.causes)
        else:
            self.update_monitor(again=question.model_copy(update={"turns": 0}))

    # Settle a cause.

    def close(
        self, result: AnswerResult, why: str, *, score: AnalysisScore | None = None, plan_first: bool = False
    ) -> None:
        question = self.monitor.open
        if question is not None:
            self.update_monitor(open=None)
            self.apply_result(question, result, why, score=score, plan_first=plan_first)

    def apply_result(
        self,
        asked: DueQuestion,
        result: AnswerResult,
        why: str,
        *,
        score: AnalysisScore | None = None,
        plan_first: bool = False,
    ) -> None:
        """Apply the table to the result of a question."""
        caps = result is AnswerResult.UNVERIFIABLE or bool(score and score.unverifiable)
        match LADDER_MOVES[asked.level, result]:
            case LadderMove.RESUME:
                self.decisions.append(ResumeWork(causes=asked.causes, why=why, caps=caps, plan_first=plan_first))
            case LadderMove.UPDATE:
                self.update(asked, why, score, caps)
            case LadderMove.ESCALATE:
                self.escalate(asked, why)
            case LadderMove.AGAIN:
                self.repeat_question(asked, self.monitor.limits.pings, f"{asked.time} pings were not answered", None)
            case LadderMove.CORRECT:
                finding = score.hidden if score else None
                correction = RequestCorrection(causes=asked.causes, why=why, submission=asked.time, finding=finding)
                self.decisions.append(correction)
                final_reason = f"the analysis was rejected {asked.time} times: {why}"
                self.repeat_question(asked, self.monitor.limits.submissions, final_reason, finding)

    def update(self, asked: DueQuestion, why: str, score: AnalysisScore | None, caps: bool) -> None:
        if score is None:
            raise TypeError("a deviation is justified by a score")
        declared = self.monitor.declared
        self.update_monitor(declared=None if declared is None else tuple(dict.fromkeys((*declared, *score.amended))))
        self.decisions.append(
            UpdateContext(causes=asked.causes, impact=score.impact, files=score.amended, why=why, caps=caps)
        )

    def escalate(self, asked: DueQuestion, why: str) -> None:
        to = ReverifyLevel(asked.level + 1)
        self.decisions.append(Escalate(causes=asked.causes, to=to, why=why))
        is_analysis_spent = to is ReverifyLevel.ANALYSIS and self.monitor.analysed and not self.monitor.is_analysing
        self.queue_causes(tuple(cause.model_copy(update={"level": to}) for cause in asked.causes))
        if is_analysis_spent:
            self.respawn(f"{why}, and the one analysis of this task was already made")

    def repeat_question(self, asked: DueQuestion, limit: int, final_reason: str, finding: Finding | None) -> None:
        self.update_monitor(again=asked.model_copy(update={"time": asked.time + 1, "turns": 0}))
        if asked.time >= limit:
            self.respawn(final_reason, finding)

    # End without an answer.

    def drop_causes(self, causes: tuple[ReverifyCause, ...], why: str) -> None:
        """Drop causes that have become obsolete."""
        if causes:
            self.decisions.append(ResumeWork(causes=causes, why=why))
        self.update_monitor(waiting=(), again=None, open=None, silent=None)

    def respawn(self, why: str, finding: Finding | None = None) -> None:
        self.decisions.append(RespawnAgent(causes=self.monitor.open_causes, why=why, finding=finding))
        self.update_monitor(over=why, waiting=(), again=None, open=None, silent=None)


def _describe_minutes(minutes: float) -> str:
    whole = round(minutes)
    return pluralize(whole, "minute") if whole else pluralize(max(1, round(60 * minutes)), "second")
