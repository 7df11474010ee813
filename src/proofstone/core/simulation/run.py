"""One policy drives the planner through one landscape. What is measured and decided is the controller's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from proofstone.contracts.solve.messages import DirectiveName
from proofstone.core.gradient import GRADIENT, GRID, NAIVE, PATIENT, Policy, Reading, Weights, decide, reading
from proofstone.core.simulation.landscape import Landscape, Source
from proofstone.core.simulation.planner import Plan, Planner
from proofstone.core.simulation.world import Came, carried_out, refused

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
    tools = frozenset(tool for one in came.outcomes if not one.matched for tool in one.tools)
    return tools if tools < landscape.tools else NONE
