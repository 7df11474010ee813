"""Many landscapes, and what can be said of the policies after them. Intervals are of 95 %."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, pstdev
from typing import Final

from proofstone.core.gradient import Weights
from proofstone.core.simulation.landscape import Mix, Source, drawn
from proofstone.core.simulation.run import CONTENDERS, Run, run

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
    return tuple(_summary(name, runs[name], {one: runs[one] for one in BASELINES}) for name in names)


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
    accepted = [one.accepted for one in runs]
    longest = max(one.rounds for one in runs)
    return Summary(
        name,
        len(runs),
        wilson(sum(accepted), len(runs)),
        {name: paired(accepted, [one.accepted for one in theirs]) for name, theirs in baselines.items()},
        fmean(one.rounds for one in runs),
        fmean(one.cost for one in runs),
        fmean(one.distance for one in runs),
        tuple(fmean(one.losses[min(number, one.rounds - 1)] for one in runs) for number in range(longest)),
    )
