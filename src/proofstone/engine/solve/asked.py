"""Who is asked only looks, and is asked once: what they answered is on record before the loop hears of it."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.contracts.agent import Fault
from proofstone.contracts.base import Contract
from proofstone.contracts.solve.answers import (
    FailureOutput,
    JudgementOutput,
    MergeOutput,
    PerceivedOutput,
    SolvePlanOutput,
)
from proofstone.core.counted import counted
from proofstone.engine.agents.stopping import stop_for
from proofstone.engine.solve.agents import SolveAgents
from proofstone.engine.solve.requests import SolveAsking
from proofstone.engine.solve.watching import Watching
from proofstone.engine.steps import Steps


@dataclass(frozen=True)
class Asked:
    run_id: str
    steps: Steps
    agents: SolveAgents
    watching: Watching

    def once(self, one: SolveAsking) -> Contract | Fault:
        """Their answer, now or on record."""
        known = self.steps.recall(one.occasion.id, one.text)
        if known is not None:
            read = Fault if "fault" in known else one.role.output
            return read.model_validate(known.get("fault") or known["output"])
        self.watching.asked(one.who, one.about)
        came = self.agents.ask(one)
        if isinstance(came, Fault):
            stop_for(came, one.occasion.agent)
        kind = "fault" if isinstance(came, Fault) else "output"
        self.steps.keep(one.occasion.id, one.text, {"agent": one.occasion.agent, kind: came.model_dump(mode="json")})
        self.watching.answered(one.who, _in_short(came), failed=isinstance(came, Fault))
        return came


def _in_short(came: Contract | Fault) -> str:
    match came:
        case Fault():
            return came.why
        case PerceivedOutput():
            return came.question or came.intent
        case SolvePlanOutput():
            criteria = len(came.task_criteria)
            return (
                f"{counted(len(came.subtasks), 'subtask')}, {criteria} {'criterion' if criteria == 1 else 'criteria'}"
            )
        case JudgementOutput():
            failed = sum(one.verdict == "fail" for one in came.verdicts)
            return f"{counted(len(came.verdicts), 'verdict')}, {failed} failed"
        case MergeOutput() | FailureOutput():
            return came.summary
    raise AssertionError(f"nobody answers with {type(came).__name__}")
