"""What the controller decides about an iteration that did not pass: how near it is, how it develops, and what the next
plan must do. Pure.

An iteration is a round of the control loop (`solve.rules.gradient`). Its criteria are the gate's demands on each task,
and all checks on the merged tree; another plan is a replan. Nothing is blocked, because the tools belong to the
executors. After `break_symmetry` a plan that is almost the previous one is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.models.gate import RetryDirection, TaskState
from proofstone.agents.roles.models.pipeline import PlannedTask, PlanOutput
from proofstone.agents.roles.models.solve_messages import CriterionMode, CriterionVerdict, FailureClass
from proofstone.gate.models import TaskReport
from proofstone.gate.rules.direction import DIRECTIVE_TEXTS, build_direction, list_criteria, suggest_alternatives
from proofstone.pipeline.models.run import FinalChecks, GateSummary
from proofstone.pipeline.rules.plan_text import assign_task_ids
from proofstone.solve.rules.gradient import DEFAULT_POLICY, LossWeights, Measurement, decide, measure_round

MAX_ITERATIONS: Final = 3
"""How many iterations may fail, including the first. An iteration that a review demands counts only if it fails too."""
_MAX_REASONS: Final = 6


def build_weights(minutes: float, factors: Mapping[str, float] = MappingProxyType({})) -> LossWeights:
    """Return the weights; the time limit of the run adds pressure, if there is one."""
    weights = LossWeights(max_replans=MAX_ITERATIONS - 1).with_factors(factors)
    return replace(weights, time_budget_ms=round(minutes * 60_000)) if minutes else weights


def build_verdicts(
    plan: PlanOutput, gate: GateSummary, final: FinalChecks | None = None
) -> tuple[CriterionVerdict, ...]:
    """Return the criteria of the iteration with their verdicts. The iteration has failed, so at least one has
    failed.
    """
    reports = {task.id: task for task in gate.tasks}
    results = [
        verdict
        for planned, id in zip(plan.tasks, assign_task_ids(plan).values(), strict=True)
        for verdict in _task_verdicts(planned, reports.get(id))
    ]
    results += _merged_verdicts(final)
    if not any(result.is_failed for result in results):
        results.append(_failed_verdict(gate.reason or "the task gate did not pass", FailureClass.LOGICAL))
    return tuple(results)


def decide_direction(
    verdicts: Sequence[CriterionVerdict],
    *,
    replans: int,
    elapsed_ms: int,
    before: Measurement | None,
    weights: LossWeights,
) -> tuple[RetryDirection, Measurement]:
    """Return the decision of the controller, and the new measurements."""
    measurement = measure_round((), verdicts, replans=replans, elapsed_ms=elapsed_ms, before=before, weights=weights)
    row = decide(DEFAULT_POLICY, measurement, weights)
    direction = build_direction(row, measurement, verdicts, weights, suggest_alternatives(row, verdicts))
    return direction, measurement


def format_directive(direction: RetryDirection) -> str:
    """Return the directive as text for the planner."""
    text = f"{direction.directive}: {DIRECTIVE_TEXTS[direction.directive]} The controller says: {direction.rationale}."
    alternatives = "".join(f"\n- {alternative}" for alternative in direction.suggested_alternatives)
    return f"{text} Accepted tasks are kept: plan only the remaining work.{alternatives}"


def describe_failures(gate: GateSummary, final: FinalChecks | None = None) -> tuple[str, ...]:
    """Describe what went wrong."""
    if final is not None:
        lines = [f"all checks on the merged tree: {final.reason}"]
        return tuple(lines + [f"this worked before: {regression}" for regression in final.regressions])
    lines = [line for task in gate.tasks if task.state is not TaskState.APPROVED for line in _describe_failure(task)]
    return tuple(lines) or (gate.reason,)


def describe_all_failures(gates: Iterable[GateSummary]) -> tuple[str, ...]:
    """Describe every failed attempt of every task, also of those that passed later."""
    return tuple(
        f"{task.name}, attempt {failure.attempt}: {failure.type}: {failure.error}"
        for gate in gates
        for task in gate.tasks
        for failure in task.failures
    )


def _describe_failure(task: TaskReport) -> Iterator[str]:
    if not task.failures:
        yield f"{task.name}: not finished ({task.state})"
        return
    last = task.failures[-1]
    yield f"{task.name}: {last.type} after {task.attempts} attempts: {last.error}"
    for reason in last.reasons[:_MAX_REASONS]:
        yield f"{task.name}: {reason.check} ({reason.verdict}): {reason.detail}"


def _task_verdicts(planned: PlannedTask, report: TaskReport | None) -> Iterator[CriterionVerdict]:
    """Yield the verdicts of a task. A task that was not started fails everything, which says nothing about the
    approach.
    """
    if report is not None and report.state is TaskState.APPROVED:
        yield from (_passed_verdict(f"{planned.title}: {criterion}") for criterion in planned.done)
    elif report is not None and report.failures:
        yield from list_criteria(report.failures[-1])
    else:
        yield from (_failed_verdict(f"{planned.title}: {criterion}", FailureClass.MIXED) for criterion in planned.done)


def _merged_verdicts(final: FinalChecks | None) -> Iterator[CriterionVerdict]:
    if final is not None:
        yield _failed_verdict(f"all checks on the merged tree: {final.reason}", FailureClass.LOGICAL)
        yield from (
            _failed_verdict(f"it worked before: {regression}", FailureClass.LOGICAL) for regression in final.regressions
        )


def _passed_verdict(criterion: str) -> CriterionVerdict:
    return CriterionVerdict(criterion=criterion, mode=CriterionMode.VERIFIABLE, verdict="pass")


def _failed_verdict(criterion: str, failure_class: FailureClass) -> CriterionVerdict:
    return CriterionVerdict(
        criterion=criterion, mode=CriterionMode.VERIFIABLE, verdict="fail", failure_class=failure_class
    )
