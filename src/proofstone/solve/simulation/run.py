"""Run the simulation: the outcome of a plan, one policy in one landscape, and the comparison over many landscapes.

Measurements and decisions are the controller's own functions. Intervals are 95 % confidence intervals.
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
    AttemptGap,
    CriterionFailure,
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    OutcomeStatus,
    SubTaskOutcome,
)
from proofstone.solve.rules.gradient import (
    GRADIENT_POLICY,
    GRID_POLICY,
    NAIVE_POLICY,
    PATIENT_POLICY,
    LossWeights,
    Measurement,
    Policy,
    decide,
    measure_round,
)
from proofstone.solve.simulation.rules import (
    Dice,
    DiceSource,
    Landscape,
    LandscapeMix,
    SimulatedCriterion,
    SimulatedPlan,
    SimulatedPlanner,
    draw_chance,
    draw_float,
    draw_landscape,
)

MAX_ATTEMPTS: Final = 3
"""The attempts at a subtask: two corrections."""
_JITTER: Final = (-0.05, 0.05)
"""The difference between the quality of an attempt and that of the plan."""
_MINUTE_MS: Final = 60_000
_TIME_FACTOR: Final = (0.5, 1.5)
"""How long a round takes, times its cost in minutes."""
_LOGICAL, _ENVIRONMENTAL = FailureClass.LOGICAL, FailureClass.ENVIRONMENTAL


@dataclass(frozen=True)
class SimulatedRound:
    """The result of one round."""

    outcomes: tuple[SubTaskOutcome, ...]
    merged: tuple[CriterionVerdict, ...]
    elapsed_ms: float
    cost: float

    @property
    def is_verified(self) -> bool:
        return bool(self.merged) and not any(verdict.is_failed for verdict in self.merged)


def simulate_round(landscape: Landscape, plan: SimulatedPlan, dice: Dice) -> SimulatedRound:
    elapsed_ms = _MINUTE_MS * plan.approach.cost * draw_float(dice, _TIME_FACTOR)
    is_rejected = draw_chance(dice, landscape.mix.rejected)
    outcomes = tuple(_simulate_subtask(demands, landscape, plan, dice) for demands in landscape.subtasks)
    merged = (
        (_make_verdict("whole", _LOGICAL if is_rejected else None),)
        if all(outcome.is_matched for outcome in outcomes)
        else ()
    )
    return SimulatedRound(outcomes, merged, elapsed_ms, plan.approach.cost)


def simulate_missing_plan(landscape: Landscape) -> SimulatedRound:
    """Return the result without a plan: every criterion fails because of the environment, and it takes a minute."""
    outcomes = tuple(
        SubTaskOutcome(
            subtask_id="",
            parent_task_id="",
            status=OutcomeStatus.FAILED,
            criteria_verdicts=tuple(_make_verdict(demand.name, _ENVIRONMENTAL) for demand in demands),
        )
        for demands in landscape.subtasks
    )
    return SimulatedRound(outcomes, (), _MINUTE_MS, 1.0)


def _simulate_subtask(
    demands: tuple[SimulatedCriterion, ...], landscape: Landscape, plan: SimulatedPlan, dice: Dice
) -> SubTaskOutcome:
    """Simulate the attempts until all criteria pass. An obstacle affects all attempts, so there is only one then."""
    is_blocked = draw_chance(dice, landscape.mix.noise) or plan.path.is_dead
    gaps: list[dict[str, FailureClass]] = []
    while len(gaps) < (1 if is_blocked else MAX_ATTEMPTS) and (not gaps or gaps[-1]):
        quality = -1.0 if is_blocked else plan.approach.quality(plan.path, plan.rounds) + draw_float(dice, _JITTER)
        missing = [demand for demand in demands if quality < demand.difficulty]
        gaps.append({demand.name: _perceived_class(demand, is_blocked, landscape, plan, dice) for demand in missing})
    return SubTaskOutcome(
        subtask_id="",
        parent_task_id="",
        status=OutcomeStatus.FAILED if gaps[-1] else OutcomeStatus.MATCHED,
        criteria_verdicts=tuple(
            _make_verdict(demand.name, gaps[-1].get(demand.name), demand.mode) for demand in demands
        ),
        gap_trajectory=tuple(_make_gap(number, failed) for number, failed in enumerate(gaps, start=1)),
        tools=tuple(sorted(plan.approach.tools)),
    )


def _perceived_class(
    demand: SimulatedCriterion, is_blocked: bool, landscape: Landscape, plan: SimulatedPlan, dice: Dice
) -> FailureClass:
    """Return the class as it is perceived, which may be wrong."""
    is_reachable = demand.difficulty <= plan.approach.ceiling
    is_logical = not is_blocked and (not is_reachable or draw_chance(dice, landscape.mix.unfinished))
    return _LOGICAL if is_logical is not draw_chance(dice, landscape.mix.misread) else _ENVIRONMENTAL


def _make_gap(number: int, failed: dict[str, FailureClass]) -> AttemptGap:
    return AttemptGap(
        attempt=number,
        failed_criteria=tuple(
            CriterionFailure(criterion=name, failure_class=failure_class) for name, failure_class in failed.items()
        ),
    )


def _make_verdict(
    name: str, failure: FailureClass | None, mode: CriterionMode = CriterionMode.VERIFIABLE
) -> CriterionVerdict:
    return CriterionVerdict(criterion=name, mode=mode, verdict="fail" if failure else "pass", failure_class=failure)


NO_TOOLS: Final[frozenset[str]] = frozenset()


class PlannerHabit(StrEnum):
    """What the planner does with earlier results."""

    OBEYS = "obeys"
    """The planner learns, and follows the directive."""
    REPEATS = "repeats"
    """The planner repeats the same plan unchanged."""
    FORGETS = "forgets"
    """The planner makes a new plan without any memory."""


@dataclass(frozen=True)
class Contender:
    summary: str
    policy: Policy
    habit: PlannerHabit = PlannerHabit.OBEYS


CONTENDERS: Final[Mapping[str, Contender]] = MappingProxyType(
    {
        "gradient": Contender("the policy of the rules", GRADIENT_POLICY),
        "patient": Contender("the same, but the first round is refined, whatever it was", PATIENT_POLICY),
        "grid": Contender("the author's later grid, which hands over what is near as partial", GRID_POLICY),
        "naive": Contender("always refine: the same approach and path, with what was learnt", NAIVE_POLICY),
        "again": Contender("the same plan again, with nothing learnt", NAIVE_POLICY, PlannerHabit.REPEATS),
        "fresh": Contender("a new plan each time, with nothing learnt", NAIVE_POLICY, PlannerHabit.FORGETS),
    }
)
"""`naive`, `again` and `fresh` are three kinds of retry without direction."""


@dataclass(frozen=True)
class SimulatedRun:
    is_accepted: bool
    cost: float
    losses: tuple[float, ...]
    """L after each round."""
    distance: float
    """D at the end."""

    @property
    def rounds(self) -> int:
        return len(self.losses)


def simulate_run(landscape: Landscape, contender: Contender, weights: LossWeights, source: DiceSource) -> SimulatedRun:
    """Run a contender in a landscape. `source` gives the luck of this landscape: by round, the same for every
    contender.
    """
    planner = SimulatedPlanner(landscape, source("planner"))
    last_plan = planner.make_first_plan()
    result = simulate_round(landscape, last_plan, source("round 0"))
    measured: Measurement | None = None
    elapsed_ms = cost = 0.0
    losses: list[float] = []
    while True:
        elapsed_ms += result.elapsed_ms
        cost += result.cost
        measured = measure_round(
            result.outcomes,
            result.merged,
            replans=len(losses),
            elapsed_ms=elapsed_ms,
            before=measured,
            weights=weights,
            verified=result.is_verified,
        )
        losses.append(measured.loss.L)
        row = decide(contender.policy, measured, weights)
        if row.directive in (DirectiveName.ACCEPT, DirectiveName.ABANDON):
            return SimulatedRun(row.directive is DirectiveName.ACCEPT, cost, tuple(losses), measured.loss.D)
        plan = _next_plan(
            planner,
            contender.habit,
            last_plan,
            row.directive,
            _blocked_tools(landscape, result) if row.blocks_tools else NO_TOOLS,
        )
        last_plan = plan or last_plan
        result = (
            simulate_round(landscape, plan, source(f"round {len(losses)}"))
            if plan
            else simulate_missing_plan(landscape)
        )


def _next_plan(
    planner: SimulatedPlanner,
    habit: PlannerHabit,
    plan: SimulatedPlan,
    directive: DirectiveName,
    blocked: frozenset[str],
) -> SimulatedPlan | None:
    match habit:
        case PlannerHabit.FORGETS:
            return planner.make_first_plan()
        case PlannerHabit.REPEATS:
            return planner.repeat_plan(plan)
        case PlannerHabit.OBEYS:
            return planner.follow_directive(plan, directive, blocked)


def _blocked_tools(landscape: Landscape, result: SimulatedRound) -> frozenset[str]:
    """Return the tools of failed subtasks; none, if these are all tools, as in the loop."""
    tools = frozenset(tool for outcome in result.outcomes if not outcome.is_matched for tool in outcome.tools)
    return tools if tools < landscape.tools else NO_TOOLS


Z_95: Final = 1.959964
"""In a normal distribution, 95 % lie within this many standard deviations."""
BASELINES: Final = ("naive", "again")
"""The policies that the others are compared with. They are always run."""


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PolicySummary:
    """The results of one policy over all landscapes."""

    policy: str
    landscapes: int
    success: Estimate
    """The share of accepted tasks."""
    gains: Mapping[str, Estimate]
    """The difference of that share to each baseline, landscape by landscape."""
    rounds: float
    cost: float
    distance: float
    """The mean D at the end."""
    losses: tuple[float, ...]
    """The mean L by round; a run that has ended keeps its last value."""


def compare_policies(
    mix: LandscapeMix, policies: Iterable[str], landscapes: int, source: DiceSource, weights: LossWeights
) -> tuple[PolicySummary, ...]:
    """Run each policy over the same landscapes, with the same luck and the same budget."""
    names = tuple(dict.fromkeys((*policies, *BASELINES)))
    runs: Mapping[str, list[SimulatedRun]] = {name: [] for name in names}
    for number in range(landscapes):
        luck = _source_for(number, source)
        landscape = draw_landscape(mix, luck("landscape"))
        for name in names:
            runs[name].append(simulate_run(landscape, CONTENDERS[name], weights, luck))
    return tuple(_summarize(name, runs[name], {baseline: runs[baseline] for baseline in BASELINES}) for name in names)


def wilson_interval(successes: int, total: int) -> Estimate:
    """Return a share and its interval by Wilson's score, which stays between 0 and 1."""
    share = successes / total
    scale = 1 + Z_95**2 / total
    middle = (share + Z_95**2 / (2 * total)) / scale
    reach = Z_95 * sqrt(share * (1 - share) / total + Z_95**2 / (4 * total**2)) / scale
    return Estimate(share, max(0.0, middle - reach), min(1.0, middle + reach))


def paired_difference(ours: Sequence[bool], theirs: Sequence[bool]) -> Estimate:
    """Return the mean difference, pair by pair."""
    differences = [int(own) - int(their) for own, their in zip(ours, theirs, strict=True)]
    reach = Z_95 * pstdev(differences) / sqrt(len(differences))
    return Estimate(fmean(differences), fmean(differences) - reach, fmean(differences) + reach)


def _source_for(landscape: int, source: DiceSource) -> DiceSource:
    """Return the luck of one landscape."""
    return lambda name: source(f"{landscape} {name}")


def _summarize(
    name: str, runs: Sequence[SimulatedRun], baselines: Mapping[str, Sequence[SimulatedRun]]
) -> PolicySummary:
    accepted = [result.is_accepted for result in runs]
    longest = max(result.rounds for result in runs)
    return PolicySummary(
        name,
        len(runs),
        wilson_interval(sum(accepted), len(runs)),
        {
            name: paired_difference(accepted, [other.is_accepted for other in others])
            for name, others in baselines.items()
        },
        fmean(result.rounds for result in runs),
        fmean(result.cost for result in runs),
        fmean(result.distance for result in runs),
        tuple(fmean(result.losses[min(number, result.rounds - 1)] for result in runs) for number in range(longest)),
    )
