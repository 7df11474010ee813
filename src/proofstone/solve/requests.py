"""From what the loops need to whom it is asked, and how: role, request, occasion.

What came of subtasks can be more than a model can be told. Then of each text there is how it begins and how it ends,
where errors stand; all of it stays on record, and what the engine looks at is never shortened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.models import Occasion
from proofstone.agents.read_only_agents import Asking
from proofstone.agents.roles.models.solve import (
    FailureRequest,
    JudgementRequest,
    MergeRequest,
    PerceiveRequest,
    SolveExecutionRequest,
    SolvePlanRequest,
)
from proofstone.agents.roles.models.solve_messages import (
    CorrectionSignal,
    Criterion,
    CriterionVerdict,
    SubTask,
    SubTaskOutcome,
)
from proofstone.agents.roles.registry import IN_THE_LOOP
from proofstone.common.models import Contract
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskForFailure,
    AskMetaValidator,
    AskPerceiver,
    AskPlanner,
    AskValidator,
)

AskAgent = AskPerceiver | AskPlanner | AskMetaValidator | AskForFailure
AskBeside = AskExecutor | AskValidator
"""About one subtask."""

_MOST: Final = 200_000
"""Characters that a request tells of what came of subtasks."""


@dataclass(frozen=True)
class SolveAsking(Asking):
    about: str
    """For whoever looks on."""

    @property
    def who(self) -> str:
        """For whoever looks on: several of a role can be at work."""
        it = self.occasion
        again = f"attempt {it.attempt}" if it.task and it.attempt > 1 else ""
        return " ".join(filter(None, (it.agent, it.task, again)))


def asking(need: AskAgent, run_id: str, tools: Sequence[str]) -> SolveAsking:
    """`tools`: those that an executor has."""
    match need:
        case AskPerceiver():
            again = bool(need.clarification)
            occasion = Occasion(run_id=run_id, role="perceiver", step="perceive/2" if again else "perceive")
            request: Contract = PerceiveRequest(raw_input=need.raw_input, clarification=need.clarification)
            return SolveAsking(IN_THE_LOOP["perceive"], request, occasion, "what is wanted")
        case AskPlanner():
            occasion = Occasion(
                run_id=run_id,
                role="planner",
                step=f"r{need.round}/p{need.attempt}",
                round=need.round,
                attempt=need.attempt,
            )
            return SolveAsking(IN_THE_LOOP["plan"], _plan_request(need, tools), occasion, f"round {need.round}")
        case AskMetaValidator():
            occasion = Occasion(run_id=run_id, role="meta_validator", step=f"r{need.round}/merge", round=need.round)
            request = MergeRequest(
                manifest=need.manifest,
                outcomes=_told(need.outcomes),
                criteria=_texts(need.criteria),
                seen=tuple(map(_line, _evident(need.seen))),
            )
            return SolveAsking(IN_THE_LOOP["merge"], request, occasion, f"the result of round {need.round}")
        case AskForFailure():
            occasion = Occasion(run_id=run_id, role="planner", step="end", focus=IN_THE_LOOP["fail"].foci[0])
            request = FailureRequest(
                task=need.spec,
                directive=need.directive,
                previous=need.previous,
                outcomes=_told(need.outcomes),
                merged=_evident(need.merged),
            )
            return SolveAsking(IN_THE_LOOP["fail"], request, occasion, "what was done, and what to do next")


def asking_beside(need: AskBeside, run_id: str, round: int) -> SolveAsking:
    """About a subtask of that round."""
    subtask, attempt = need.subtask, need.attempt
    name = short_name(subtask, run_id)
    where = {
        "run_id": run_id,
        "step": f"{name}/a{attempt}",
        "task": name,
        "task_name": subtask.intent,
        "attempt": attempt,
        "round": round,
    }
    match need:
        case AskExecutor():
            request: Contract = SolveExecutionRequest(
                task=need.spec,
                subtask=subtask,
                before=_told(need.before),
                corrections=tuple(map(_signal, need.corrections)),
                blocked_tools=need.blocked_tools,
                blocked_targets=need.blocked_targets,
            )
            occasion = Occasion.model_validate({**where, "role": "executor"})
            return SolveAsking(IN_THE_LOOP["execute"], request, occasion, subtask.intent)
        case AskValidator():
            request = JudgementRequest(subtask=subtask, result=need.result, criteria=_texts(need.criteria))
            occasion = Occasion.model_validate({**where, "role": "agent_validator"})
            return SolveAsking(IN_THE_LOOP["judge"], request, occasion, subtask.intent)


def short_name(subtask: SubTask, run_id: str) -> str:
    """How a subtask is called within its run: `r2-s1`."""
    return subtask.subtask_id.removeprefix(f"{run_id}-")


def _plan_request(need: AskPlanner, tools: Sequence[str]) -> SolvePlanRequest:
    return SolvePlanRequest(
        task=need.spec,
        tools=tuple(tools),
        blocked_tools=need.blocked_tools,
        blocked_targets=need.blocked_targets,
        must_not=need.calibration.must_not,
        should_prefer=need.calibration.should_prefer,
        directive=need.directive,
        previous=need.previous,
        outcomes=_told(need.outcomes),
        merged=_evident(need.merged),
        rejected=need.rejected,
    )


def _told(outcomes: tuple[SubTaskOutcome, ...]) -> tuple[SubTaskOutcome, ...]:
    """All of them, within what one request may tell. Why one failed is in its verdicts."""
    return tuple(_outcome(outcome, _MOST // len(outcomes)) for outcome in outcomes)


def _outcome(one: SubTaskOutcome, most: int) -> SubTaskOutcome:
    shorter = {
        "output": _ends(one.output, most // 2) if isinstance(one.output, str) else one.output,
        "failure_reason": one.failure_reason and _ends(one.failure_reason, most // 8),
        "criteria_verdicts": _evident(one.criteria_verdicts, most // 4),
    }
    return one.model_copy(update=shorter)


def _evident(verdicts: tuple[CriterionVerdict, ...], most: int = _MOST // 4) -> tuple[CriterionVerdict, ...]:
    each = most // max(1, len(verdicts))
    return tuple(verdict.model_copy(update={"evidence": _ends(verdict.evidence, each)}) for verdict in verdicts)


def _signal(correction: CorrectionSignal) -> CorrectionSignal:
    return correction.model_copy(update={"what_was_wrong": _ends(correction.what_was_wrong, _MOST // 8)})


def _ends(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    beginning = most // 4
    return f"{text[:beginning]}\n[… {len(text) - most:,} characters …]\n{text[beginning - most :]}"


def _texts(criteria: Sequence[Criterion]) -> tuple[str, ...]:
    return tuple(item.criterion for item in criteria)


def _line(verdict: CriterionVerdict) -> str:
    return f"{verdict.verdict}: {verdict.criterion}: {verdict.evidence}"
