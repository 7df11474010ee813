"""What comes of a plan: the outcomes of its subtasks, as the loop's roles would report them, and what it took.

One policy drives the planner through one landscape. What is measured and decided is the controller's own.

Many landscapes, and what can be said of the policies after them. Intervals are of 95 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from statistics import fmean, pstdev
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.models.solve_messages import (
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailedCriterion,
    FailureClass,
    Gap,
    OutcomeStatus,
    SubTaskOutcome,
)
from proofstone.solve.rules.gradient import GRADIENT, GRID, NAIVE, PATIENT, Policy, Reading, Weights, decide, reading
from proofstone.solve.simulation.rules import Demand, Dice, Landscape, Mix, Plan, Planner, Source, chance, drawn, within

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
        return bool(self.merged) and not any(item.failed for item in self.merged)


def carried_out(landscape: Landscape, plan: Plan, dice: Dice) -> Came:
    took = _MINUTE * plan.approach.cost * within(dice, _TIME)
    rejected = chance(dice, landscape.mix.rejected)
    outcomes = tuple(_subtask(demands, landscape, plan, dice) for demands in landscape.subtasks)
    merged = (
        (_verdict("whole", _LOGICAL if rejected else None),) if all(outcome.matched for outcome in outcomes) else ()
    )
    return Came(outcomes, merged, took, plan.approach.cost)


def refused(landscape: Landscape) -> Came:
    """No plan was allowed: everything counts as a failure of the environment, and it took a minute."""
    outcomes = tuple(
        SubTaskOutcome(
            subtask_id="",
            parent_task_id="",
            status=OutcomeStatus.FAILED,
            criteria_verdicts=tuple(_verdict(demand.name, _ENVIRONMENTAL) for demand in demands),
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
        missed = [demand for demand in demands if quality < demand.difficulty]
        gaps.append({item.name: _class(item, in_the_way, landscape, plan, dice) for item in missed})
    return SubTaskOutcome(
        subtask_id="",
        parent_task_id="",
        status=OutcomeStatus.FAILED if gaps[-1] else OutcomeStatus.MATCHED,
        criteria_verdicts=tuple(_verdict(demand.name, gaps[-1].get(demand.name), demand.mode) for demand in demands),
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


NONE: Final[frozenset[str]] = frozenset()


class Habit(StrEnum):
    """What the planner makes of what went before."""

    OBEYS = "obeys"
    """It learns from it, and does what the directive says."""
    REPEATS = "repeats"
    """The same plan once more, unchanged."""
    FORGETS = "forgets"
    """A plan that knows nothing of those before."""


@dataclass(frozen=True)
class Contender:
    summary: str
    policy: Policy
    habit: Habit = Habit.OBEYS


CONTENDERS: Final[Mapping[str, Contender]] = MappingProxyType(
    {
        "gradient": Contender("the policy of the rules", GRADIENT),
        "patient": Contender("the same, but the first round is refined, whatever it was", PATIENT),
        "grid": Contender("the author's later grid, which hands over what is near as partial", GRID),
        "naive": Contender("always refine: the same approach and path, with what was learnt", NAIVE),
        "again": Contender("the same plan again, with nothing learnt", NAIVE, Habit.REPEATS),
        "fresh": Contender("a new plan each time, with nothing learnt", NAIVE, Habit.FORGETS),
    }
)
"""`naive`, `again` and `fresh` are what retry without direction can mean."""


@dataclass(frozen=True)
class Run:
    accepted: bool
    cost: float
    losses: tuple[float, ...]
    """L after each round."""
    distance: float
    """D at the end."""

    @property
    def rounds(self) -> int:
        return len(self.losses)


def run(landscape: Landscape, contender: Contender, weights: Weights, source: Source) -> Run:
    """`source` is the luck of this landscape: by round, the same for every contender."""
    planner = Planner(landscape, source("planner"))
    kept = planner.first()
    came = carried_out(landscape, kept, source("round 0"))
    it: Reading | None = None
    elapsed_ms = cost = 0.0
    losses: list[float] = []
    while True:
        elapsed_ms += came.elapsed_ms
        cost += came.cost
        it = reading(
            came.outcomes,
            came.merged,
            replans=len(losses),
            elapsed_ms=elapsed_ms,
            before=it,
            weights=weights,
            verified=came.verified,
        )
        losses.append(it.loss.L)
        row = decide(contender.policy, it, weights)
        if row.directive in (DirectiveName.ACCEPT, DirectiveName.ABANDON):
            return Run(row.directive is DirectiveName.ACCEPT, cost, tuple(losses), it.loss.D)
        plan = _next(planner, contender.habit, kept, row.directive, _blocked(landscape, came) if row.blocks else NONE)
        kept = plan or kept
        came = carried_out(landscape, plan, source(f"round {len(losses)}")) if plan else refused(landscape)


def _next(planner: Planner, habit: Habit, plan: Plan, directive: DirectiveName, blocked: frozenset[str]) -> Plan | None:
    match habit:
        case Habit.FORGETS:
            return planner.first()
        case Habit.REPEATS:
            return planner.again(plan)
        case Habit.OBEYS:
            return planner.follow(plan, directive, blocked)


def _blocked(landscape: Landscape, came: Came) -> frozenset[str]:
    """The tools of what failed; where these are all that there are, none, as in the loop."""
    tools = frozenset(tool for outcome in came.outcomes if not outcome.matched for tool in outcome.tools)
    return tools if tools < landscape.tools else NONE


Z: Final = 1.959964
"""Of the normal distribution, 95 % lie within so many deviations."""
BASELINES: Final = ("naive", "again")
"""What the others are compared with, and what is always run."""


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """One policy over all landscapes."""

    policy: str
    landscapes: int
    success: Estimate
    """Share of the tasks that were accepted."""
    gains: Mapping[str, Estimate]
    """Difference of that to each baseline, landscape by landscape."""
    rounds: float
    cost: float
    distance: float
    """Mean D at the end."""
    losses: tuple[float, ...]
    """Mean L by round; a run that is over stays where it ended."""


def compare(
    mix: Mix, policies: Iterable[str], landscapes: int, source: Source, weights: Weights
) -> tuple[Summary, ...]:
    """Each policy over the same landscapes, of the same luck, with the same budget."""
    names = tuple(dict.fromkeys((*policies, *BASELINES)))
    runs: Mapping[str, list[Run]] = {name: [] for name in names}
    for number in range(landscapes):
        luck = _of(number, source)
        landscape = drawn(mix, luck("landscape"))
        for name in names:
            runs[name].append(run(landscape, CONTENDERS[name], weights, luck))
    return tuple(_summary(name, runs[name], {item: runs[item] for item in BASELINES}) for name in names)


def wilson(successes: int, of: int) -> Estimate:
    """A share and its interval by Wilson's score, which stays within 0 and 1."""
    share = successes / of
    scale = 1 + Z**2 / of
    middle = (share + Z**2 / (2 * of)) / scale
    reach = Z * sqrt(share * (1 - share) / of + Z**2 / (4 * of**2)) / scale
    return Estimate(share, max(0.0, middle - reach), min(1.0, middle + reach))


def paired(ours: Sequence[bool], theirs: Sequence[bool]) -> Estimate:
    """The mean difference, pair by pair."""
    differences = [int(one) - int(other) for one, other in zip(ours, theirs, strict=True)]
    reach = Z * pstdev(differences) / sqrt(len(differences))
    return Estimate(fmean(differences), fmean(differences) - reach, fmean(differences) + reach)


def _of(landscape: int, source: Source) -> Source:
    """Its own luck."""
    return lambda name: source(f"{landscape} {name}")


def _summary(name: str, runs: Sequence[Run], baselines: Mapping[str, Sequence[Run]]) -> Summary:
    accepted = [item.accepted for item in runs]
    longest = max(item.rounds for item in runs)
    return Summary(
        name,
        len(runs),
        wilson(sum(accepted), len(runs)),
        {name: paired(accepted, [their.accepted for their in theirs]) for name, theirs in baselines.items()},
        fmean(item.rounds for item in runs),
        fmean(item.cost for item in runs),
        fmean(item.distance for item in runs),
        tuple(fmean(item.losses[min(number, item.rounds - 1)] for item in runs) for number in range(longest)),
    )
