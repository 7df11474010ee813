"""Turn the effects of the loops into dispatches: role, request, occasion.

The outcomes of subtasks can be too long for a request. Then each text is shortened to its beginning and its end, where
errors are. The ledger keeps the full text, and the engine's own checks never use shortened text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.models import DispatchKey
from proofstone.agents.read_only_agents import ReadOnlyRequest
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
from proofstone.agents.roles.registry import LOOP_ROLES
from proofstone.common.models import FrozenModel
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskForFailureReport,
    AskMetaValidator,
    AskPerceiver,
    AskPlanner,
    AskValidator,
)

AskAgent = AskPerceiver | AskPlanner | AskMetaValidator | AskForFailureReport
AskAboutSubtask = AskExecutor | AskValidator
"""An effect that concerns one subtask."""

_MAX_CHARS: Final = 200_000
"""The number of characters in a request for the outcomes of subtasks."""


@dataclass(frozen=True)
class SolveDispatch(ReadOnlyRequest):
    subject: str
    """The subject of the dispatch, for the observer."""

    @property
    def agent_label(self) -> str:
        """The name of the agent for the observer: several agents of one role can be at work."""
        occasion = self.occasion
        suffix = f"attempt {occasion.attempt}" if occasion.task and occasion.attempt > 1 else ""
        return " ".join(filter(None, (occasion.agent, occasion.task, suffix)))


def build_dispatch(need: AskAgent, run_id: str, tools: Sequence[str]) -> SolveDispatch:
    """Return the dispatch for an effect. `tools` are the tools of an executor."""
    match need:
        case AskPerceiver():
            is_repeated = bool(need.clarification)
            occasion = DispatchKey(run_id=run_id, role="perceiver", step="perceive/2" if is_repeated else "perceive")
            request: FrozenModel = PerceiveRequest(raw_input=need.raw_input, clarification=need.clarification)
            return SolveDispatch(LOOP_ROLES["perceive"], request, occasion, "what is wanted")
        case AskPlanner():
            occasion = DispatchKey(
                run_id=run_id,
                role="planner",
                step=f"r{need.round}/p{need.attempt}",
                round=need.round,
                attempt=need.attempt,
            )
            return SolveDispatch(LOOP_ROLES["plan"], _plan_request(need, tools), occasion, f"round {need.round}")
        case AskMetaValidator():
            occasion = DispatchKey(run_id=run_id, role="meta_validator", step=f"r{need.round}/merge", round=need.round)
            request = MergeRequest(
                manifest=need.manifest,
                outcomes=_shorten_outcomes(need.outcomes),
                criteria=_criterion_texts(need.criteria),
                seen=tuple(map(_verdict_line, _shorten_verdicts(need.seen))),
            )
            return SolveDispatch(LOOP_ROLES["merge"], request, occasion, f"the result of round {need.round}")
        case AskForFailureReport():
            occasion = DispatchKey(run_id=run_id, role="planner", step="end", focus=LOOP_ROLES["fail"].foci[0])
            request = FailureRequest(
                task=need.spec,
                directive=need.directive,
                previous=need.previous,
                outcomes=_shorten_outcomes(need.outcomes),
                merged=_shorten_verdicts(need.merged),
            )
            return SolveDispatch(LOOP_ROLES["fail"], request, occasion, "what was done, and what to do next")


def build_subtask_dispatch(need: AskAboutSubtask, run_id: str, round: int) -> SolveDispatch:
    """Return the dispatch for an effect that concerns a subtask of this round."""
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
            request: FrozenModel = SolveExecutionRequest(
                task=need.spec,
                subtask=subtask,
                before=_shorten_outcomes(need.before),
                corrections=tuple(map(_shorten_correction, need.corrections)),
                blocked_tools=need.blocked_tools,
                blocked_targets=need.blocked_targets,
            )
            occasion = DispatchKey.model_validate({**where, "role": "executor"})
            return SolveDispatch(LOOP_ROLES["execute"], request, occasion, subtask.intent)
        case AskValidator():
            request = JudgementRequest(subtask=subtask, result=need.result, criteria=_criterion_texts(need.criteria))
            occasion = DispatchKey.model_validate({**where, "role": "agent_validator"})
            return SolveDispatch(LOOP_ROLES["judge"], request, occasion, subtask.intent)


def short_name(subtask: SubTask, run_id: str) -> str:
    """Return the name of a subtask within its run: `r2-s1`."""
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
        outcomes=_shorten_outcomes(need.outcomes),
        merged=_shorten_verdicts(need.merged),
        rejected=need.rejected,
    )


def _shorten_outcomes(outcomes: tuple[SubTaskOutcome, ...]) -> tuple[SubTaskOutcome, ...]:
    """Shorten the outcomes to the size of one request. The verdicts of an outcome say why it failed."""
    return tuple(_shorten_outcome(outcome, _MAX_CHARS // len(outcomes)) for outcome in outcomes)


def _shorten_outcome(outcome: SubTaskOutcome, limit: int) -> SubTaskOutcome:
    shortened = {
        "output": _keep_ends(outcome.output, limit // 2) if isinstance(outcome.output, str) else outcome.output,
        "failure_reason": outcome.failure_reason and _keep_ends(outcome.failure_reason, limit // 8),
        "criteria_verdicts": _shorten_verdicts(outcome.criteria_verdicts, limit // 4),
    }
    return outcome.model_copy(update=shortened)


def _shorten_verdicts(
    verdicts: tuple[CriterionVerdict, ...], limit: int = _MAX_CHARS // 4
) -> tuple[CriterionVerdict, ...]:
    limit_each = limit // max(1, len(verdicts))
    return tuple(
        verdict.model_copy(update={"evidence": _keep_ends(verdict.evidence, limit_each)}) for verdict in verdicts
    )


def _shorten_correction(correction: CorrectionSignal) -> CorrectionSignal:
    return correction.model_copy(update={"what_was_wrong": _keep_ends(correction.what_was_wrong, _MAX_CHARS // 8)})


def _keep_ends(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    beginning = limit // 4
    return f"{text[:beginning]}\n[… {len(text) - limit:,} characters …]\n{text[beginning - limit :]}"


def _criterion_texts(criteria: Sequence[Criterion]) -> tuple[str, ...]:
    return tuple(criterion.criterion for criterion in criteria)


def _verdict_line(verdict: CriterionVerdict) -> str:
    return f"{verdict.verdict}: {verdict.criterion}: {verdict.evidence}"
