"""Tasks to try policies on. A task is what is asked for, and the approaches that there are to it.

An approach gives results of a quality between 0 and 1, which changes from round to round while it is kept to. A
criterion passes when the quality is at least its difficulty. Each approach has its tools, its cost and several paths;
some paths are dead: whatever is tried on them fails, and the environment is to blame.

A model of a planner: it does what the directive says, as far as it can and mostly.

| directive | next plan |
|---|---|
| refine | same approach, same path, a round further |
| change_path | another path of the approach; half of what was gained is kept |
| change_approach, break_symmetry | another approach that uses no blocked tool; if there is none, no plan |

Where nothing is blocked it may do as it likes instead: stay, take another path, or another approach. What is blocked
it cannot use, as the plan validator sends such plans back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from proofstone.agents.roles.models.solve_messages import CriterionMode, DirectiveName


class Dice(Protocol):
    """Chance, from outside. `random.Random` is one."""

    def random(self) -> float: ...


Source = Callable[[str], Dice]
"""Dice by name: the same name, the same numbers."""

T = TypeVar("T")
Range = tuple[float, float]


@dataclass(frozen=True)
class Kind:
    """How approaches of one kind go."""

    summary: str
    start: Range
    """Quality of the first round."""
    step: Range
    """What another round adds, times `shape`."""
    ceiling: Range
    """The best that it can come to."""
    shape: tuple[float, ...] = (1,)
    """For the second round, the third, and so on; the last one goes for all that follow."""


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "climb": Kind("right, and each round shows it", (0.3, 1.0), (0.15, 0.5), (1, 1)),
        "valley": Kind("right, but it gets worse before it gets better", (0.3, 0.6), (0.3, 0.6), (1, 1), (-0.5, 1.5)),
        "wrong": Kind("wrong, and stays so", (0.0, 0.3), (0.0, 0.1), (0.1, 0.5)),
        "minimum": Kind("nearly right: it climbs, and stops short", (0.4, 0.7), (0.1, 0.3), (0.6, 0.9)),
        "mirage": Kind("wrong: it improves once, then falls", (0.3, 0.5), (0.15, 0.3), (0.5, 0.8), (1, -1)),
    }
)
RIGHT: Final = ("climb", "valley")


@dataclass(frozen=True)
class Mix:
    """What landscapes are drawn from. Each of them has at least one right approach, with a path that is not dead."""

    summary: str
    climb: float = 0.30
    """How frequent the kinds of approach are, to each other."""
    valley: float = 0.10
    wrong: float = 0.25
    minimum: float = 0.20
    mirage: float = 0.15
    dead: float = 0.25
    """Paths on which nothing works."""
    noise: float = 0.08
    """Subtasks that fail in a round because of the environment, and need not in the next."""
    misread: float = 0.15
    """Failures that are given the wrong class."""
    unfinished: float = 0.5
    """Failures of an approach that would get there, which are called logical."""
    rejected: float = 0.05
    """Merged results that are rejected though every subtask matched."""
    disobedience: float = 0.10
    """Plans that stay, take another path or another approach by chance, where the directive forbids nothing."""
    insight: float = 0.30
    """Approaches that are chosen because they are right; the others are chosen by chance."""
    tools: int = 8
    """That there are. An approach uses one to three of them."""


MIXES: Final[Mapping[str, Mix]] = MappingProxyType(
    {
        "mixed": Mix("something of everything"),
        "noisy": Mix("much is in the way: half of the paths are dead", dead=0.5, noise=0.25),
        "wrong": Mix("most approaches are wrong, and nobody sees which", climb=0.2, wrong=0.6, insight=0.1),
        "minima": Mix("most approaches stop short", climb=0.15, wrong=0.05, minimum=0.7, mirage=0.0),
        "deceptive": Mix("what improves is wrong, what gets worse is right", climb=0.05, valley=0.35, mirage=0.5),
        "improving": Mix("most approaches are right and need time", climb=0.8, wrong=0.05, minimum=0.05, mirage=0.0,
                         insight=0.7),
        "misread": Mix("what is to blame is often misread", misread=0.4),
        "unruly": Mix("half of the plans follow no directive", disobedience=0.5),
        "few tools": Mix("approaches share their tools", tools=4),
    }
)  # fmt: skip


@dataclass(frozen=True)
class Demand:
    """A criterion, and the quality from which on it passes."""

    name: str
    mode: CriterionMode
    difficulty: float


@dataclass(frozen=True)
class Path:
    dead: bool
    offset: float
    """By which it is better or worse than the approach in general."""


@dataclass(frozen=True)
class Approach:
    kind: str
    start: float
    step: float
    ceiling: float
    tools: frozenset[str]
    cost: float
    """Of a round; 1 is a minute."""
    paths: tuple[Path, ...]

    @property
    def right(self) -> bool:
        return self.kind in RIGHT

    def quality(self, path: Path, rounds: int) -> float:
        """After so many further rounds of keeping to it."""
        shape = KINDS[self.kind].shape
        gained = sum(self.step * shape[min(number, len(shape) - 1)] for number in range(rounds))
        return max(0.0, min(self.ceiling, self.start + path.offset + gained))


@dataclass(frozen=True)
class Landscape:
    mix: Mix
    subtasks: tuple[tuple[Demand, ...], ...]
    approaches: tuple[Approach, ...]

    @property
    def tools(self) -> frozenset[str]:
        return frozenset().union(*(approach.tools for approach in self.approaches))


def drawn(mix: Mix, dice: Dice) -> Landscape:
    """One to four subtasks with one to four criteria each; two to five approaches with one to four paths each."""
    subtasks = tuple(
        tuple(_demand(f"{subtask}.{number}", dice) for number in range(whole(dice, 1, 4)))
        for subtask in range(whole(dice, 1, 4))
    )
    kinds = [_kind(mix, dice) for _ in range(whole(dice, 2, 5))]
    if not set(kinds) & set(RIGHT):
        kinds[whole(dice, 0, len(kinds) - 1)] = RIGHT[0]
    return Landscape(mix, subtasks, tuple(_approach(kind, mix, dice) for kind in kinds))


def chance(dice: Dice, of: float) -> bool:
    return dice.random() < of


def within(dice: Dice, span: Range) -> float:
    low, high = span
    return low + (high - low) * dice.random()


def whole(dice: Dice, low: int, high: int) -> int:
    """A whole number, both ends included."""
    return low + int(dice.random() * (high - low + 1))


def one_of(dice: Dice, several: Sequence[T]) -> T:
    return several[whole(dice, 0, len(several) - 1)]


def _demand(name: str, dice: Dice) -> Demand:
    mode = CriterionMode.VERIFIABLE if chance(dice, 0.6) else CriterionMode.PLAUSIBLE
    return Demand(name, mode, within(dice, (0.2, 0.95)))


def _kind(mix: Mix, dice: Dice) -> str:
    frequencies = {name: getattr(mix, name) for name in KINDS}
    left = dice.random() * sum(frequencies.values())
    for name, frequency in frequencies.items():
        left -= frequency
        if left < 0:
            return name
    return name


def _approach(kind: str, mix: Mix, dice: Dice) -> Approach:
    how = KINDS[kind]
    return Approach(
        kind,
        within(dice, how.start),
        within(dice, how.step),
        within(dice, how.ceiling),
        frozenset(f"tool {whole(dice, 1, mix.tools)}" for _ in range(whole(dice, 1, 3))),
        within(dice, (0.5, 2.0)),
        _paths(mix, dice),
    )


def _paths(mix: Mix, dice: Dice) -> tuple[Path, ...]:
    paths = [Path(chance(dice, mix.dead), within(dice, (-0.1, 0.1))) for _ in range(whole(dice, 1, 4))]
    if all(path.dead for path in paths):
        paths[0] = Path(False, paths[0].offset)
    return tuple(paths)


@dataclass(frozen=True)
class Plan:
    approach: Approach
    path: Path
    rounds: int = 0
    """That it has been kept to."""


Turn = Callable[[Plan], Plan]


class Planner:
    def __init__(self, landscape: Landscape, dice: Dice) -> None:
        self._landscape = landscape
        self._dice = dice

    def first(self) -> Plan:
        return self._by(self._landscape.approaches)

    def follow(self, plan: Plan, directive: DirectiveName, blocked: frozenset[str]) -> Plan | None:
        """The next plan; nothing where none is allowed."""
        if directive in (DirectiveName.CHANGE_APPROACH, DirectiveName.BREAK_SYMMETRY):
            return self._elsewhere(plan, blocked)
        obeying = self._another_path if directive is DirectiveName.CHANGE_PATH else _further
        return self._mostly(obeying, plan)

    def again(self, plan: Plan) -> Plan:
        """The same once more, with nothing learnt."""
        return self._mostly(lambda same: same, plan)

    def _mostly(self, obeying: Turn, plan: Plan) -> Plan:
        likings: tuple[Turn, ...] = (_further, self._another_path, self._anywhere_else)
        turn = one_of(self._dice, likings) if chance(self._dice, self._landscape.mix.disobedience) else obeying
        return turn(plan)

    def _another_path(self, plan: Plan) -> Plan:
        others = [path for path in plan.approach.paths if path is not plan.path]
        return replace(plan, path=one_of(self._dice, others), rounds=plan.rounds // 2) if others else _further(plan)

    def _anywhere_else(self, plan: Plan) -> Plan:
        return self._elsewhere(plan, frozenset()) or _further(plan)

    def _elsewhere(self, plan: Plan, blocked: frozenset[str]) -> Plan | None:
        free = [
            approach
            for approach in self._landscape.approaches
            if approach is not plan.approach and not approach.tools & blocked
        ]
        return self._by(free) if free else None

    def _by(self, approaches: Sequence[Approach]) -> Plan:
        right = [item for item in approaches if item.right]
        approach = one_of(
            self._dice, right if right and chance(self._dice, self._landscape.mix.insight) else approaches
        )
        return Plan(approach, one_of(self._dice, approach.paths))


def _further(plan: Plan) -> Plan:
    return replace(plan, rounds=plan.rounds + 1)
