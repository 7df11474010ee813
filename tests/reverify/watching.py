"""An agent at work, watched: what tests of the monitor share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from proofstone.common.models import Verdict
from proofstone.supervision.models.events import (
    AnalysisSubmitted,
    Ask,
    Decision,
    Event,
    QuestionAnswered,
    SelfLocated,
    TaskBegan,
    TurnEnded,
)
from proofstone.supervision.models.ladder import Docs, Grade, Impact, Result, Score, SelfLocate
from proofstone.supervision.rules.monitor import step, watch
from proofstone.supervision.rules.monitor_state import MINUTE, Limits, Monitor, Watched

EXECUTOR = Watched(agent="implementer-1", role="executor", phase=6)
BEGAN = TaskBegan(task="one", number=1, total=2, files=("src/a.py",), criteria=4)
WORKED, SAID = TurnEnded(calls=2), TurnEnded()


class Watching:
    """A monitor, what it decided, and the time in minutes."""

    def __init__(self, *events: Event, limits: Limits | None = None, watched: Watched = EXECUTOR) -> None:
        self.monitor = watch(watched, 0.0, limits)
        self.minute = 0.0
        self.decided: list[Decision] = []
        self.see(BEGAN, *events)

    def see(self, *events: Event) -> list[str]:
        """What was decided upon these, in short."""
        decided: list[Decision] = []
        for event in events:
            self.monitor, more = step(self.monitor, event, self.minute * MINUTE)
            decided += more
        self.decided += decided
        return brief(decided)

    def after(self, minutes: float, *events: Event) -> list[str]:
        self.minute += minutes
        return self.see(*events)


def brief(decisions: Iterable[Decision]) -> list[str]:
    """`ask 2`: the kind, and of a question its level."""
    return [f"ask {one.asked.level:d}" if isinstance(one, Ask) else one.kind for one in decisions]


def located(docs: Docs = Docs.CURRENT, *anomalies: str) -> SelfLocated:
    at = SelfLocate(phase=6, task=1, total=2, step="works", progress=0, tool_calls=0, docs=docs)
    return SelfLocated(located=at, anomalies=anomalies)


def graded(verdict: Verdict = Verdict.PASS, *, changed_approach: bool = False) -> QuestionAnswered:
    return QuestionAnswered(grade=Grade(verdict=verdict, changed_approach=changed_approach))


def scored(
    result: Literal[Result.INTACT, Result.JUSTIFIED, Result.UNJUSTIFIED], amended: tuple[str, ...] = ()
) -> AnalysisSubmitted:
    impact = Impact.NONE if result is Result.INTACT else Impact.MINOR_ADJUSTMENT
    return AnalysisSubmitted(
        score=Score(result=result, claimed=impact, computed=impact, items=(), amended=amended, reason=result.value)
    )


def kept(monitor: Monitor) -> Monitor:
    """As it comes back from the ledger."""
    return Monitor.model_validate_json(monitor.model_dump_json())
