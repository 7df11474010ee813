"""An agent at work, watched: what tests of the monitor share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from proofstone.common.models import Verdict
from proofstone.supervision.models.events import (
    AgentEvent,
    AnalysisSubmitted,
    AskQuestion,
    MonitorDecision,
    QuestionAnswered,
    SelfLocated,
    TaskStarted,
    TurnEnded,
)
from proofstone.supervision.models.ladder import (
    AnalysisScore,
    AnswerGrade,
    AnswerResult,
    DeviationImpact,
    DocsStatus,
    SelfLocate,
)
from proofstone.supervision.rules.monitor import create_monitor, process_event
from proofstone.supervision.rules.monitor_state import MINUTE, AgentMonitor, AgentProfile, SupervisionLimits

EXECUTOR = AgentProfile(agent="implementer-1", role="executor", phase=6)
BEGAN = TaskStarted(task="one", number=1, total=2, files=("src/a.py",), criteria=4)
WORKED, SAID = TurnEnded(calls=2), TurnEnded()


class Watching:
    """A monitor, what it decided, and the time in minutes."""

    def __init__(
        self, *events: AgentEvent, limits: SupervisionLimits | None = None, watched: AgentProfile = EXECUTOR
    ) -> None:
        self.monitor = create_monitor(watched, 0.0, limits)
        self.minute = 0.0
        self.decided: list[MonitorDecision] = []
        self.see(BEGAN, *events)

    def see(self, *events: AgentEvent) -> list[str]:
        """What was decided upon these, in short."""
        decided: list[MonitorDecision] = []
        for event in events:
            self.monitor, more = process_event(self.monitor, event, self.minute * MINUTE)
            decided += more
        self.decided += decided
        return brief(decided)

    def after(self, minutes: float, *events: AgentEvent) -> list[str]:
        self.minute += minutes
        return self.see(*events)


def brief(decisions: Iterable[MonitorDecision]) -> list[str]:
    """`ask 2`: the kind, and of a question its level."""
    return [f"ask {one.asked.level:d}" if isinstance(one, AskQuestion) else one.kind for one in decisions]


def located(docs: DocsStatus = DocsStatus.CURRENT, *anomalies: str) -> SelfLocated:
    at = SelfLocate(phase=6, task=1, total=2, step="works", progress=0, tool_calls=0, docs=docs)
    return SelfLocated(located=at, anomalies=anomalies)


def graded(verdict: Verdict = Verdict.PASS, *, changed_approach: bool = False) -> QuestionAnswered:
    return QuestionAnswered(grade=AnswerGrade(verdict=verdict, changed_approach=changed_approach))


def scored(
    result: Literal[AnswerResult.INTACT, AnswerResult.JUSTIFIED, AnswerResult.UNJUSTIFIED],
    amended: tuple[str, ...] = (),
) -> AnalysisSubmitted:
    impact = DeviationImpact.NONE if result is AnswerResult.INTACT else DeviationImpact.MINOR_ADJUSTMENT
    return AnalysisSubmitted(
        score=AnalysisScore(
            result=result, claimed=impact, computed=impact, items=(), amended=amended, reason=result.value
        )
    )


def kept(monitor: AgentMonitor) -> AgentMonitor:
    """As it comes back from the ledger."""
    return AgentMonitor.model_validate_json(monitor.model_dump_json())


HANDLER = "src/auth/handler.py"
LIMITER = "src/auth/rate_limiter.py"
REQUIREMENT = "Rate limiting on auth endpoints"
ANSWER = (
    "Rate limiting requires adding middleware layer before auth handler. Original plan had auth handler as direct "
    "endpoint handler. New approach: auth handler delegates to rate limiter first. Affected files: src/auth/handler.py "
    "(original), src/auth/rate_limiter.py (NEW). Interface change: handler signature adds rate_config parameter."
)
"""What implementer-1 answers at T+14, word for word."""
