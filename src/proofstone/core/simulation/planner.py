"""A model of a planner: it does what the directive says, as far as it can and mostly.

| directive | next plan |
|---|---|
| refine | same approach, same path, a round further |
| change_path | another path of the approach; half of what was gained is kept |
| change_approach, break_symmetry | another approach that uses no blocked tool; if there is none, no plan |

Where nothing is blocked it may do as it likes instead: stay, take another path, or another approach. What is blocked
it cannot use, as the plan validator sends such plans back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from proofstone.contracts.solve.messages import DirectiveName
from proofstone.core.simulation.landscape import Approach, Dice, Landscape, Path, chance, one_of


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
        free = [one for one in self._landscape.approaches if one is not plan.approach and not one.tools & blocked]
        return self._by(free) if free else None

    def _by(self, approaches: Sequence[Approach]) -> Plan:
        right = [one for one in approaches if one.right]
        approach = one_of(
            self._dice, right if right and chance(self._dice, self._landscape.mix.insight) else approaches
        )
        return Plan(approach, one_of(self._dice, approach.paths))


def _further(plan: Plan) -> Plan:
    return replace(plan, rounds=plan.rounds + 1)
