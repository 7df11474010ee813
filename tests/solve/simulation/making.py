"""Landscapes made by hand, and dice that fall as told."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random

from proofstone.agents.roles.models.solve_messages import CriterionMode
from proofstone.solve.simulation.rules import (
    Approach,
    Dice,
    DiceSource,
    Landscape,
    LandscapeMix,
    SimulatedCriterion,
    SimulatedPath,
)

CALM = LandscapeMix(
    "nothing by chance", dead=0, noise=0, misread=0, unfinished=0, rejected=0, disobedience=0, insight=0
)
OPEN, DEAD = SimulatedPath(is_dead=False, offset=0), SimulatedPath(is_dead=True, offset=0)


class Falls:
    """Dice that fall so, and at the end stay at the last."""

    def __init__(self, *numbers: float) -> None:
        self._left = list(numbers)

    def random(self) -> float:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


def luck(name: str) -> Dice:
    return Random(name)


def lucks(number: int) -> list[DiceSource]:
    """So many, each different."""
    return [partial(_numbered, one) for one in range(number)]


def _numbered(number: int, name: str) -> Dice:
    return luck(f"{number} {name}")


def approach(
    kind: str = "climb",
    tools: str = "grep",
    paths: tuple[SimulatedPath, ...] = (OPEN,),
    *,
    start: float = 0.0,
    step: float = 0.0,
    ceiling: float = 1.0,
) -> Approach:
    return Approach(kind, start, step, ceiling, frozenset(tools.split()), cost=0.5, paths=paths)


def landscape(
    *approaches: Approach,
    mix: LandscapeMix = CALM,
    demands: Iterable[float] = (0.5,),
    mode: CriterionMode | None = None,
) -> Landscape:
    """With one subtask."""
    asked = tuple(SimulatedCriterion(f"c{n}", mode or CriterionMode.VERIFIABLE, one) for n, one in enumerate(demands))
    return Landscape(mix, (asked,), approaches)
