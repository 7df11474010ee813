"""What comes of a plan: the outcomes of its subtasks, as the loop's roles would report them, and what it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proofstone.contracts.solve.messages import (
    CriterionMode,
    CriterionVerdict,
    FailedCriterion,
    FailureClass,
    Gap,
    OutcomeStatus,
    SubTaskOutcome,
)
from proofstone.core.simulation.landscape import Demand, Dice, Landscape, chance, within
from proofstone.core.simulation.planner import Plan

ATTEMPTS: Final = 3
"""Of a subtask: two corrections."""
_JITTER: Final = (-0.05, 0.05)
"""By which the quality of an attempt differs from that of the plan."""
_MINUTE: Final = 60_000
_TIME: Final = (0.5, 1.5)
"""How long a round takes, times its cost in minutes."""
_LOGICAL, _ENVIRONMENTAL = FailureClass.LOGICAL, FailureClass.ENVIRONMENTAL


@dataclass(frozen=True)
class Came:
    """Of one round."""

    outcomes: tuple[SubTaskOutcome, ...]
    merged: tuple[CriterionVerdict, ...]
    elapsed_ms: float
    cost: float

    @property
    def verified(self) -> bool:
        return bool(self.merged) and not any(one.failed for one in self.merged)


def carried_out(landscape: Landscape, plan: Plan, dice: Dice) -> Came:
    took = _MINUTE * plan.approach.cost * within(dice, _TIME)
    rejected = chance(dice, landscape.mix.rejected)
    outcomes = tuple(_subtask(demands, landscape, plan, dice) for demands in landscape.subtasks)
    merged = (_verdict("whole", _LOGICAL if rejected else None),) if all(one.matched for one in outcomes) else ()
    return Came(outcomes, merged, took, plan.approach.cost)


def refused(landscape: Landscape) -> Came:
    """No plan was allowed: everything counts as a failure of the environment, and it took a minute."""
    outcomes = tuple(
        SubTaskOutcome(
            subtask_id="",
            parent_task_id="",
            status=OutcomeStatus.FAILED,
            criteria_verdicts=tuple(_verdict(one.name, _ENVIRONMENTAL) for one in demands),
        )
        for demands in landscape.subtasks
    )
    return Came(outcomes, (), _MINUTE, 1.0)


def _subtask(demands: tuple[Demand, ...], landscape: Landscape, plan: Plan, dice: Dice) -> SubTaskOutcome:
    """Attempts until all criteria pass; what is in the way of the first is in the way of all, so there is one only."""
    in_the_way = chance(dice, landscape.mix.noise) or plan.path.dead
    gaps: list[dict[str, FailureClass]] = []
    while len(gaps) < (1 if in_the_way else ATTEMPTS) and (not gaps or gaps[-1]):
        quality = -1.0 if in_the_way else plan.approach.quality(plan.path, plan.rounds) + within(dice, _JITTER)
        missed = [one for one in demands if quality < one.difficulty]
        gaps.append({one.name: _class(one, in_the_way, landscape, plan, dice) for one in missed})
    return SubTaskOutcome(
        subtask_id="",
        parent_task_id="",
        status=OutcomeStatus.FAILED if gaps[-1] else OutcomeStatus.MATCHED,
        criteria_verdicts=tuple(_verdict(one.name, gaps[-1].get(one.name), one.mode) for one in demands),
        gap_trajectory=tuple(_gap(number, failed) for number, failed in enumerate(gaps, start=1)),
        tools=tuple(sorted(plan.approach.tools)),
    )


def _class(demand: Demand, in_the_way: bool, landscape: Landscape, plan: Plan, dice: Dice) -> FailureClass:
    """As it is seen, which is not always as it is."""
    within_reach = demand.difficulty <= plan.approach.ceiling
    logical = not in_the_way and (not within_reach or chance(dice, landscape.mix.unfinished))
    return _LOGICAL if logical is not chance(dice, landscape.mix.misread) else _ENVIRONMENTAL


def _gap(number: int, failed: dict[str, FailureClass]) -> Gap:
    return Gap(
        attempt=number,
        failed_criteria=tuple(FailedCriterion(criterion=name, failure_class=one) for name, one in failed.items()),
    )


def _verdict(
    name: str, failure: FailureClass | None, mode: CriterionMode = CriterionMode.VERIFIABLE
) -> CriterionVerdict:
    return CriterionVerdict(criterion=name, mode=mode, verdict="fail" if failure else "pass", failure_class=failure)
