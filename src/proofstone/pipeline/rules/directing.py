"""What the controller makes of an iteration that did not pass: how near it is, which way it goes, and what the next
plan must do. Pure.

An iteration is a round of the control loop (`solve.rules.gradient`). Its criteria are what the gate asked of each
task, and
the whole cascade on the merged tree; another plan is a replan. Nothing is blocked, since the tools are the executors'
own; after `break_symmetry` a plan that is nearly the one before is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from proofstone.agents.roles.models.gate import Direction, TaskState
from proofstone.agents.roles.models.pipeline import PlannedTask, PlanOutput
from proofstone.agents.roles.models.solve_messages import CriterionMode, CriterionVerdict, FailureClass
from proofstone.gate.models import TaskReport
from proofstone.gate.rules.direction import MEANS, criteria, direction_of
from proofstone.pipeline.models.run import FinalChecks, GateSummary
from proofstone.pipeline.rules.plan_text import task_ids
from proofstone.solve.rules.gradient import DEFAULT_POLICY, Reading, Row, Weights, decide, reading

ITERATIONS: Final = 3
"""That may fail, the first among them. One that a review asks for is none of them, unless it fails too."""
_MOST_REASONS: Final = 6
_MOST_ALTERNATIVES: Final = 3


def weights_for(minutes: float) -> Weights:
    """The run's own clock presses, if it has one."""
    if not minutes:
        return Weights(max_replans=ITERATIONS - 1)
    return Weights(max_replans=ITERATIONS - 1, time_budget_ms=round(minutes * 60_000))


def verdicts(plan: PlanOutput, gate: GateSummary, final: FinalChecks | None = None) -> tuple[CriterionVerdict, ...]:
    """What was asked of the iteration, and what came of it. It has failed, so something in here has."""
    reports = {task.id: task for task in gate.tasks}
    told = [
        verdict
        for planned, id in zip(plan.tasks, task_ids(plan).values(), strict=True)
        for verdict in _of_task(planned, reports.get(id))
    ]
    told += _of_whole(final)
    if not any(item.failed for item in told):
        told.append(_failed(gate.reason or "the task gate did not pass", FailureClass.LOGICAL))
    return tuple(told)


def direct(
    verdicts: Sequence[CriterionVerdict], *, replans: int, elapsed_ms: int, before: Reading | None, weights: Weights
) -> tuple[Direction, Reading]:
    """The word of the controller, and where the run stands now."""
    it = reading((), verdicts, replans=replans, elapsed_ms=elapsed_ms, before=before, weights=weights)
    row = decide(DEFAULT_POLICY, it, weights)
    return direction_of(row, it, verdicts, weights, tuple(_alternatives(row, verdicts))), it


def directive_text(direction: Direction) -> str:
    """As the planner is told."""
    said = f"{direction.directive}: {MEANS[direction.directive]} The controller says: {direction.rationale}."
    alternatives = "".join(f"\n- {alternative}" for alternative in direction.suggested_alternatives)
    return f"{said} What is accepted already stands: plan what is left.{alternatives}"


def failures(gate: GateSummary, final: FinalChecks | None = None) -> tuple[str, ...]:
    """What went wrong, in words."""
    if final is not None:
        told = [f"the whole cascade on the merged tree: {final.reason}"]
        return tuple(told + [f"this worked before: {regression}" for regression in final.regressions])
    told = [line for task in gate.tasks if task.state is not TaskState.APPROVED for line in _told(task)]
    return tuple(told) or (gate.reason,)


def _told(task: TaskReport) -> Iterator[str]:
    if not task.failures:
        yield f"{task.name}: it was not finished ({task.state})"
        return
    last = task.failures[-1]
    yield f"{task.name}: {last.type} after {task.attempts} attempts: {last.error}"
    for reason in last.reasons[:_MOST_REASONS]:
        yield f"{task.name}: {reason.check} ({reason.verdict}): {reason.detail}"


def _of_task(planned: PlannedTask, report: TaskReport | None) -> Iterator[CriterionVerdict]:
    """Of a task that was not begun everything is missing, and it says nothing about the approach."""
    if report is not None and report.state is TaskState.APPROVED:
        yield from (_passed(f"{planned.title}: {item}") for item in planned.done)
    elif report is not None and report.failures:
        yield from criteria(report.failures[-1])
    else:
        yield from (_failed(f"{planned.title}: {item}", FailureClass.MIXED) for item in planned.done)


def _of_whole(final: FinalChecks | None) -> Iterator[CriterionVerdict]:
    if final is not None:
        yield _failed(f"the whole cascade on the merged tree: {final.reason}", FailureClass.LOGICAL)
        yield from (
            _failed(f"it worked before: {regression}", FailureClass.LOGICAL) for regression in final.regressions
        )


def _passed(what: str) -> CriterionVerdict:
    return CriterionVerdict(criterion=what, mode=CriterionMode.VERIFIABLE, verdict="pass")


def _failed(what: str, of: FailureClass) -> CriterionVerdict:
    return CriterionVerdict(criterion=what, mode=CriterionMode.VERIFIABLE, verdict="fail", failure_class=of)


def _alternatives(row: Row, verdicts: Sequence[CriterionVerdict]) -> Iterator[str]:
    """Where the path is to be another: what was in its way."""
    obstacles = (
        [verdict for verdict in verdicts if verdict.failure_class is FailureClass.ENVIRONMENTAL] if row.hint else []
    )
    yield from (f"a way around this: {obstacle.criterion}" for obstacle in obstacles[:_MOST_ALTERNATIVES])
