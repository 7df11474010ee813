"""Invented tasks to compare policies on, and a model of a planner.

A task has criteria, and several approaches to it. An approach gives results of a quality between 0 and 1, which changes
from round to round while the approach is kept. A criterion passes when the quality is at least its difficulty. Each
approach has its tools, its cost and several paths. Some paths are dead: everything fails on them, and the environment
is to blame.

The planner mostly follows the directive, as far as it can:

| directive | next plan |
|---|---|
| refine | same approach, same path, one round further |
| change_path | another path of the approach; half of the progress is kept |
| change_approach, break_symmetry | another approach without blocked tools; if there is none, no plan |

Where nothing is blocked, it may instead stay, take another path, or another approach. It cannot use what is blocked,
because the plan validator rejects such plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from proofstone.agents.roles.models.solve_messages import CriterionMode, DirectiveName


class Dice(Protocol):
    """A source of random numbers, such as `random.Random`."""

    def random(self) -> float: ...


DiceSource = Callable[[str], Dice]
"""Dice by name: the same name gives the same numbers."""

T = TypeVar("T")
FloatRange = tuple[float, float]


@dataclass(frozen=True)
class ApproachKind:
    """How the approaches of one kind develop."""

    summary: str
    start: FloatRange
    """The quality of the first round."""
    step: FloatRange
    """What another round adds, times `shape`."""
    ceiling: FloatRange
    """The best possible quality."""
    shape: tuple[float, ...] = (1,)
    """The factors for the second round, the third, and so on; the last one applies to all later rounds."""


APPROACH_KINDS: Final[Mapping[str, ApproachKind]] = MappingProxyType(
    {
        "climb": ApproachKind("right, and each round shows it", (0.3, 1.0), (0.15, 0.5), (1, 1)),
        "valley": ApproachKind(
            "right, but it gets worse before it gets better", (0.3, 0.6), (0.3, 0.6), (1, 1), (-0.5, 1.5)
        ),
        "wrong": ApproachKind("wrong, and stays so", (0.0, 0.3), (0.0, 0.1), (0.1, 0.5)),
        "minimum": ApproachKind("nearly right: it climbs, and stops short", (0.4, 0.7), (0.1, 0.3), (0.6, 0.9)),
        "mirage": ApproachKind("wrong: it improves once, then falls", (0.3, 0.5), (0.15, 0.3), (0.5, 0.8), (1, -1)),
    }
)
RIGHT_KINDS: Final = ("climb", "valley")


@dataclass(frozen=True)
class LandscapeMix:
    """The distribution of landscapes. Each has at least one right approach, with a path that is not dead."""

    summary: str
    climb: float = 0.30
    """The relative frequencies of the kinds of approach."""
    valley: float = 0.10
    wrong: float = 0.25
    minimum: float = 0.20
    mirage: float = 0.15
    dead: float = 0.25
    """The share of paths on which nothing works."""
    noise: float = 0.08
    """The share of subtasks that fail in a round because of the environment, and may pass in the next."""
    misread: float = 0.15
    """The share of failures that get the wrong class."""
    unfinished: float = 0.5
    """The share of failures of a right approach that are classified as logical."""
    rejected: float = 0.05
    """The share of merged results that are rejected although every subtask matched."""
    disobedience: float = 0.10
    """The share of plans that stay, take another path or another approach by chance, where nothing is blocked."""
    insight: float = 0.30
    """The share of approaches that are chosen because they are right; the others are chosen by chance."""
    tools: int = 8
    """The number of tools. An approach uses one to three of them."""


MIXES: Final[Mapping[str, LandscapeMix]] = MappingProxyType(
    {
        "mixed": LandscapeMix("something of everything"),
        "noisy": LandscapeMix("much is in the way: half of the paths are dead", dead=0.5, noise=0.25),
        "wrong": LandscapeMix("most approaches are wrong, and nobody sees which", climb=0.2, wrong=0.6, insight=0.1),
        "minima": LandscapeMix("most approaches stop short", climb=0.15, wrong=0.05, minimum=0.7, mirage=0.0),
        "deceptive": LandscapeMix(
            "what improves is wrong, what gets worse is right", climb=0.05, valley=0.35, mirage=0.5
        ),
        "improving": LandscapeMix(
            "most approaches are right and need time", climb=0.8, wrong=0.05, minimum=0.05, mirage=0.0, insight=0.7
        ),
        "misread": LandscapeMix("what is to blame is often misread", misread=0.4),
        "unruly": LandscapeMix("half of the plans follow no directive", disobedience=0.5),
        "few tools": LandscapeMix("approaches share their tools", tools=4),
    }
)  # fmt: skip


@dataclass(frozen=True)
class SimulatedCriterion:
    """A criterion, and the quality from which on it passes."""

    name: str
    mode: CriterionMode
    difficulty: float


@dataclass(frozen=True)
class SimulatedPath:
    is_dead: bool
    offset: float
    """The difference from the quality of the approach."""


@dataclass(frozen=True)
class Approach:
    kind: str
    start: float
    step: float
    ceiling: float
    tools: frozenset[str]
    cost: float
    """The cost of a round; 1 is a minute."""
    paths: tuple[SimulatedPath, ...]

    @property
    def is_right(self) -> bool:
        return self.kind in RIGHT_KINDS

    def quality(self, path: SimulatedPath, rounds: int) -> float:
        """Return the quality after so many further rounds of the same approach."""
        shape = APPROACH_KINDS[self.kind].shape
        gained = sum(self.step * shape[min(number, len(shape) - 1)] for number in range(rounds))
        return max(0.0, min(self.ceiling, self.start + path.offset + gained))


@dataclass(frozen=True)
class Landscape:
    mix: LandscapeMix
    subtasks: tuple[tuple[SimulatedCriterion, ...], ...]
    approaches: tuple[Approach, ...]

    @property
    def tools(self) -> frozenset[str]:
        return frozenset().union(*(approach.tools for approach in self.approaches))


def draw_landscape(mix: LandscapeMix, dice: Dice) -> Landscape:
    """Draw one to four subtasks with one to four criteria each, and two to five approaches with one to four
    paths each.
    """
    subtasks = tuple(
        tuple(_draw_demand(f"{subtask}.{number}", dice) for number in range(draw_int(dice, 1, 4)))
        for subtask in range(draw_int(dice, 1, 4))
    )
    kinds = [_draw_kind(mix, dice) for _ in range(draw_int(dice, 2, 5))]
    if not set(kinds) & set(RIGHT_KINDS):
        kinds[draw_int(dice, 0, len(kinds) - 1)] = RIGHT_KINDS[0]
    return Landscape(mix, subtasks, tuple(_draw_approach(kind, mix, dice) for kind in kinds))


def draw_chance(dice: Dice, probability: float) -> bool:
    return dice.random() < probability


def draw_float(dice: Dice, span: FloatRange) -> float:
    low, high = span
    return low + (high - low) * dice.random()


def draw_int(dice: Dice, low: int, high: int) -> int:
    """Return a whole number; both ends are included."""
    return low + int(dice.random() * (high - low + 1))


def draw_choice(dice: Dice, several: Sequence[T]) -> T:
    return several[draw_int(dice, 0, len(several) - 1)]


def _draw_demand(name: str, dice: Dice) -> SimulatedCriterion:
    mode = CriterionMode.VERIFIABLE if draw_chance(dice, 0.6) else CriterionMode.PLAUSIBLE
    return SimulatedCriterion(name, mode, draw_float(dice, (0.2, 0.95)))


def _draw_kind(mix: LandscapeMix, dice: Dice) -> str:
    frequencies = {name: getattr(mix, name) for name in APPROACH_KINDS}
    remaining = dice.random() * sum(frequencies.values())
    for name, frequency in frequencies.items():
        remaining -= frequency
        if remaining < 0:
            return name
    return name


def _draw_approach(kind: str, mix: LandscapeMix, dice: Dice) -> Approach:
    spec = APPROACH_KINDS[kind]
    return Approach(
        kind,
        draw_float(dice, spec.start),
        draw_float(dice, spec.step),
        draw_float(dice, spec.ceiling),
        frozenset(f"tool {draw_int(dice, 1, mix.tools)}" for _ in range(draw_int(dice, 1, 3))),
        draw_float(dice, (0.5, 2.0)),
        _draw_paths(mix, dice),
    )


def _draw_paths(mix: LandscapeMix, dice: Dice) -> tuple[SimulatedPath, ...]:
    paths = [
        SimulatedPath(draw_chance(dice, mix.dead), draw_float(dice, (-0.1, 0.1))) for _ in range(draw_int(dice, 1, 4))
    ]
    if all(path.is_dead for path in paths):
        paths[0] = SimulatedPath(False, paths[0].offset)
    return tuple(paths)


@dataclass(frozen=True)
class SimulatedPlan:
    approach: Approach
    path: SimulatedPath
    rounds: int = 0
    """The number of rounds that the plan has been kept."""


PlanChange = Callable[[SimulatedPlan], SimulatedPlan]


class SimulatedPlanner:
    def __init__(self, landscape: Landscape, dice: Dice) -> None:
        self._landscape = landscape
        self._dice = dice

    def make_first_plan(self) -> SimulatedPlan:
        return self._choose_plan(self._landscape.approaches)

    def follow_directive(
        self, plan: SimulatedPlan, directive: DirectiveName, blocked: frozenset[str]
    ) -> SimulatedPlan | None:
        """Return the next plan; None if none is allowed."""
        if directive in (DirectiveName.CHANGE_APPROACH, DirectiveName.BREAK_SYMMETRY):
            return self._change_approach(plan, blocked)
        obedient_turn = self._change_path if directive is DirectiveName.CHANGE_PATH else _refine
        return self._follow_mostly(obedient_turn, plan)

    def repeat_plan(self, plan: SimulatedPlan) -> SimulatedPlan:
        """Return the same plan again, with nothing learnt."""
        return self._follow_mostly(lambda same: same, plan)

    def _follow_mostly(self, obedient_turn: PlanChange, plan: SimulatedPlan) -> SimulatedPlan:
        alternatives: tuple[PlanChange, ...] = (_refine, self._change_path, self._change_or_refine)
        turn = (
            draw_choice(self._dice, alternatives)
            if draw_chance(self._dice, self._landscape.mix.disobedience)
            else obedient_turn
        )
        return turn(plan)

    def _change_path(self, plan: SimulatedPlan) -> SimulatedPlan:
        others = [path for path in plan.approach.paths if path is not plan.path]
        return replace(plan, path=draw_choice(self._dice, others), rounds=plan.rounds // 2) if others else _refine(plan)

    def _change_or_refine(self, plan: SimulatedPlan) -> SimulatedPlan:
        return self._change_approach(plan, frozenset()) or _refine(plan)

    def _change_approach(self, plan: SimulatedPlan, blocked: frozenset[str]) -> SimulatedPlan | None:
        candidates = [
            approach
            for approach in self._landscape.approaches
            if approach is not plan.approach and not approach.tools & blocked
        ]
        return self._choose_plan(candidates) if candidates else None

    def _choose_plan(self, approaches: Sequence[Approach]) -> SimulatedPlan:
        right = [approach for approach in approaches if approach.is_right]
        approach = draw_choice(
            self._dice, right if right and draw_chance(self._dice, self._landscape.mix.insight) else approaches
        )
        return SimulatedPlan(approach, draw_choice(self._dice, approach.paths))


def _refine(plan: SimulatedPlan) -> SimulatedPlan:
    return replace(plan, rounds=plan.rounds + 1)
