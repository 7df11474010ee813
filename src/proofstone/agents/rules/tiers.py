"""How capable models are, and which of them may judge which. Pure.

Tier 1 is small, 2 standard, 3 strong. What a person has set for a model goes before the table below; a model that is in
neither has no tier, and whatever rests on it is said to be unverifiable.

| what does not hold                                             | follows                             |
|-----------------------------------------------------------------|-------------------------------------|
| a strict judge at least as capable as those it judges           | refused                             |
| any other judge at least as capable as those it judges          | recorded                            |
| a role served by a model of its tier or above                   | recorded                            |
| the three reviewers of different vendors                        | recorded: perspective-diverse only  |

People are no models and are not measured. Fallbacks count: a judge is as capable as the weakest that may serve it. What
serves both a judge and those it judges is as capable as itself, whether or not its tier is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

_SMALL: Final = frozenset(
    {"nano", "mini", "haiku", "flash", "lite", "small", "tiny", "micro", "instant", "gemma", "phi"}
    | {f"{billions}b" for billions in range(1, 10)}
)
"""Words of a name, apart from the rest of it, that make a small model: `gpt-5-mini`, but not `gemini`."""
_FAMILIES: Final[tuple[tuple[str, int], ...]] = (
    ("claude-*opus*", 3),
    ("opus*", 3),
    ("sonnet*", 2),
    ("claude-*sonnet*", 2),
    ("gpt-4*", 2),
    ("gpt-[5-9]*", 3),
    ("o[1-9]", 3),
    ("o[1-9]-*", 3),
    ("codex-*", 3),
    ("gemini-1*", 2),
    ("gemini-*pro*", 3),
    ("grok-[1-3]*", 2),
    ("grok-*", 3),
    ("deepseek-r*", 3),
    ("deepseek-*", 2),
    ("mistral-*", 2),
    ("magistral-*", 2),
    ("codestral*", 2),
    ("devstral*", 2),
    ("qwen*", 2),
    ("qwq*", 2),
    ("llama*", 2),
    ("kimi*", 2),
    ("glm-*", 2),
    ("minimax*", 2),
    ("command-*", 2),
)
"""The first that matches decides."""
_REVIEWER: Final = "reviewer:"
UNMEASURED: Final = ("human", "rules")


def tier_of(model: str) -> int | None:
    """By its name alone, whoever serves it; None: not known."""
    name = model.rpartition("/")[2].lower()
    family = next((tier for pattern, tier in _FAMILIES if fnmatchcase(name, pattern)), None)
    return 1 if _SMALL & set(re.split(r"[-_.:@ ]", name)) else family


@dataclass(frozen=True)
class Served:
    """One that may serve an agent."""

    spec: str
    vendor: str | None = None
    tier: int | None = None

    @property
    def is_measured(self) -> bool:
        return self.spec not in UNMEASURED


_Named = tuple[str, Served]


@dataclass(frozen=True)
class Demand:
    """What a role asks of who serves it."""

    tier: int
    validates: tuple[str, ...] = ()
    strict: bool = False


@dataclass(frozen=True)
class TierProblem:
    refuse: bool
    text: str


def problems(served: Mapping[str, Sequence[Served]], demands: Mapping[str, Demand]) -> list[TierProblem]:
    """What does not hold. `served` by agent (`reviewer:security`), `demands` by role."""
    found: list[TierProblem] = []
    for agent, own in served.items():
        demand = demands.get(_role(agent))
        if demand is not None:
            found += _too_small(agent, own, demand)
            found += _weaker_than_judged(agent, own, demand, served)
    return found + _one_vendor(served)


def _too_small(agent: str, own: Sequence[Served], demand: Demand) -> list[TierProblem]:
    return [
        TierProblem(False, f"{agent} should have a model of tier {demand.tier}; {item.spec} is of tier {item.tier}")
        for item in own
        if item.tier is not None and item.tier < demand.tier
    ]


def _weaker_than_judged(
    agent: str, own: Sequence[Served], demand: Demand, served: Mapping[str, Sequence[Served]]
) -> list[TierProblem]:
    judges = [item for item in own if item.is_measured]
    judged = [
        (name, item)
        for name, some in served.items()
        if _role(name) in demand.validates
        for item in some
        if item.is_measured
    ]
    if not judges or not judged:
        return []
    return [*_weaker(agent, judges, judged, demand.strict), *_unknown(agent, judges, judged, demand.strict)]


def _weaker(agent: str, judges: Sequence[Served], judged: Sequence[_Named], strict: bool) -> list[TierProblem]:
    known = [judge for judge in judges if judge.tier is not None]
    known_judged = [(name, one) for name, one in judged if one.tier is not None]
    if not known or not known_judged:
        return []
    weakest = min(known, key=_tier)
    name, strongest = max(known_judged, key=lambda pair: _tier(pair[1]))
    if _tier(weakest) >= _tier(strongest):
        return []
    text = f"{agent} judges {name} with a weaker model: {weakest.spec} (tier {weakest.tier}) against {strongest.spec}"
    return [TierProblem(strict, f"{text} (tier {strongest.tier})")]


def _unknown(agent: str, judges: Sequence[Served], judged: Sequence[_Named], strict: bool) -> list[TierProblem]:
    unclear = [
        (item, name, other)
        for item in judges
        for name, other in judged
        if item.spec != other.spec and None in (item.tier, other.tier)
    ]
    if not unclear:
        return []
    unknown = dict.fromkeys(item.spec for judge, _, other in unclear for item in (judge, other) if item.tier is None)
    names = ", ".join(dict.fromkeys(name for _, name, _ in unclear))
    why = f"the tier of {', '.join(unknown)} is not known"
    return [TierProblem(strict, f"whether {agent} is capable enough to judge {names} cannot be verified: {why}")]


def _one_vendor(served: Mapping[str, Sequence[Served]]) -> list[TierProblem]:
    """Reviewers of one vendor share their blind spots; only their points of view differ then."""
    first = {agent: some[0] for agent, some in served.items() if agent.startswith(_REVIEWER) and some}
    measured = {agent: one for agent, one in first.items() if one.is_measured}
    vendors = [item.vendor or item.spec for item in measured.values()]
    if len(set(vendors)) == len(vendors):
        return []
    shared = ", ".join(f"{agent.removeprefix(_REVIEWER)} {one.vendor or one.spec}" for agent, one in measured.items())
    return [TierProblem(False, f"perspective-diverse fallback: the reviewers are not of different vendors ({shared})")]


def _role(agent: str) -> str:
    return agent.partition(":")[0]


def _tier(one: Served) -> int:
    return one.tier or 0
