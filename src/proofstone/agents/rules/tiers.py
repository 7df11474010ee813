"""The tiers of models, and which model may judge which. Pure.

Tier 1 is small, 2 standard, 3 strong. A tier that the person has set takes precedence over the table below. A model
that is in neither has no tier, and a rule that depends on its tier is reported as unverifiable.

| rule that is violated                                           | consequence                         |
|-----------------------------------------------------------------|-------------------------------------|
| a strict judge at least as capable as those it judges           | refused                             |
| any other judge at least as capable as those it judges          | recorded                            |
| a role served by a model of its tier or above                   | recorded                            |
| the three reviewers of different vendors                        | recorded: perspective-diverse only  |

People are not models and have no tier. Fallbacks count: a judge is as capable as its weakest fallback. A model that
serves both a judge and a judged role is as capable as itself, whether or not its tier is known.
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
"""Separate words in a name that mark a small model: `gpt-5-mini`, but not `gemini`."""
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
"""Patterns of names with their tiers. The first match decides."""
_REVIEWER: Final = "reviewer:"
UNTIERED_SPECS: Final = ("human", "rules")


def find_model_tier(model: str) -> int | None:
    """Return the tier of a model by its name alone, or None if it is not known."""
    name = model.rpartition("/")[2].lower()
    family = next((tier for pattern, tier in _FAMILIES if fnmatchcase(name, pattern)), None)
    return 1 if _SMALL & set(re.split(r"[-_.:@ ]", name)) else family


@dataclass(frozen=True)
class ServingBackend:
    """A backend that may serve an agent."""

    spec: str
    vendor: str | None = None
    tier: int | None = None

    @property
    def has_tier_rules(self) -> bool:
        return self.spec not in UNTIERED_SPECS


_Named = tuple[str, ServingBackend]


@dataclass(frozen=True)
class ModelDemand:
    """What a role demands of the model that serves it."""

    tier: int
    validates: tuple[str, ...] = ()
    strict: bool = False


@dataclass(frozen=True)
class TierProblem:
    is_refused: bool
    text: str


def find_tier_problems(
    served: Mapping[str, Sequence[ServingBackend]], demands: Mapping[str, ModelDemand]
) -> list[TierProblem]:
    """Return the violated rules. `served` is by agent (`reviewer:security`), `demands` is by role."""
    found: list[TierProblem] = []
    for agent, backends in served.items():
        demand = demands.get(_role_of(agent))
        if demand is not None:
            found += _find_small_models(agent, backends, demand)
            found += _check_judge(agent, backends, demand, served)
    return found + _find_shared_vendor(served)


def _find_small_models(agent: str, backends: Sequence[ServingBackend], demand: ModelDemand) -> list[TierProblem]:
    return [
        TierProblem(
            False, f"{agent} should have a model of tier {demand.tier}; {backend.spec} is of tier {backend.tier}"
        )
        for backend in backends
        if backend.tier is not None and backend.tier < demand.tier
    ]


def _check_judge(
    agent: str, backends: Sequence[ServingBackend], demand: ModelDemand, served: Mapping[str, Sequence[ServingBackend]]
) -> list[TierProblem]:
    judges = [backend for backend in backends if backend.has_tier_rules]
    judged = [
        (name, backend)
        for name, candidates in served.items()
        if _role_of(name) in demand.validates
        for backend in candidates
        if backend.has_tier_rules
    ]
    if not judges or not judged:
        return []
    return [
        *_find_weaker_judge(agent, judges, judged, demand.strict),
        *_find_unknown_tiers(agent, judges, judged, demand.strict),
    ]


def _find_weaker_judge(
    agent: str, judges: Sequence[ServingBackend], judged: Sequence[_Named], strict: bool
) -> list[TierProblem]:
    known_judges = [judge for judge in judges if judge.tier is not None]
    known_judged = [(name, backend) for name, backend in judged if backend.tier is not None]
    if not known_judges or not known_judged:
        return []
    weakest = min(known_judges, key=_tier)
    name, strongest = max(known_judged, key=lambda pair: _tier(pair[1]))
    if _tier(weakest) >= _tier(strongest):
        return []
    text = f"{agent} judges {name} with a weaker model: {weakest.spec} (tier {weakest.tier}) against {strongest.spec}"
    return [TierProblem(strict, f"{text} (tier {strongest.tier})")]


def _find_unknown_tiers(
    agent: str, judges: Sequence[ServingBackend], judged: Sequence[_Named], strict: bool
) -> list[TierProblem]:
    unclear = [
        (judge, name, backend)
        for judge in judges
        for name, backend in judged
        if judge.spec != backend.spec and None in (judge.tier, backend.tier)
    ]
    if not unclear:
        return []
    unknown = dict.fromkeys(
        backend.spec for judge, _, other in unclear for backend in (judge, other) if backend.tier is None
    )
    names = ", ".join(dict.fromkeys(name for _, name, _ in unclear))
    reason = f"the tier of {', '.join(unknown)} is not known"
    return [TierProblem(strict, f"whether {agent} is capable enough to judge {names} cannot be verified: {reason}")]


def _find_shared_vendor(served: Mapping[str, Sequence[ServingBackend]]) -> list[TierProblem]:
    """Report reviewers of the same vendor. They share blind spots, so only their perspectives differ."""
    first = {agent: backends[0] for agent, backends in served.items() if agent.startswith(_REVIEWER) and backends}
    measured = {agent: backend for agent, backend in first.items() if backend.has_tier_rules}
    vendors = [backend.vendor or backend.spec for backend in measured.values()]
    if len(set(vendors)) == len(vendors):
        return []
    shared = ", ".join(
        f"{agent.removeprefix(_REVIEWER)} {backend.vendor or backend.spec}" for agent, backend in measured.items()
    )
    return [TierProblem(False, f"perspective-diverse fallback: the reviewers are not of different vendors ({shared})")]


def _role_of(agent: str) -> str:
    return agent.partition(":")[0]


def _tier(backend: ServingBackend) -> int:
    return backend.tier or 0
