"""Roles: who takes part in a run. Each has a file of its own, and its prompt one in `prompts/`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from proofstone.errors import InputError
from proofstone.roles import (
    agent_validator,
    architect,
    challenger,
    designer,
    devils_advocate,
    domain_expert,
    executor,
    knowledge,
    meta_validator,
    perceiver,
    planner,
    researcher,
    reviewer,
    solver,
    specifier,
    synthesizer,
)
from proofstone.roles.asking import request_text
from proofstone.roles.plan_researcher import PLAN_RESEARCHERS
from proofstone.roles.role import Role

__all__ = ["AT_THE_PLAN_GATE", "IN_THE_LOOP", "ROLES", "Role", "request_text", "role"]

_ALL = (
    executor,
    architect,
    researcher,
    specifier,
    designer,
    planner,
    reviewer,
    knowledge,
    challenger,
    domain_expert,
    devils_advocate,
    synthesizer,
    perceiver,
    agent_validator,
    meta_validator,
)

ROLES: Final[Mapping[str, Role]] = MappingProxyType({module.ROLE.name: module.ROLE for module in _ALL})

AT_THE_PLAN_GATE: Final[Mapping[str, Role]] = MappingProxyType(
    {agent: one for one in (*PLAN_RESEARCHERS.values(), challenger.CLOSING) for agent in one.agents}
)
"""Agents whom the plan gate asks for something else than their role is asked for elsewhere, by name."""

IN_THE_LOOP: Final[Mapping[str, Role]] = MappingProxyType(
    {
        "perceive": perceiver.ROLE,
        "plan": solver.PLANNER,
        "execute": solver.EXECUTOR,
        "judge": agent_validator.ROLE,
        "merge": meta_validator.ROLE,
        "fail": solver.FAILING,
    }
)
"""Whom the control loop asks, by what for. Its planner and its executor are asked for something else elsewhere."""


def role(name: str) -> Role:
    """The role of that name; `reviewer:security` is a reviewer."""
    found = AT_THE_PLAN_GATE.get(name) or ROLES.get(name.partition(":")[0])
    if found is None:
        raise InputError(f"{name!r} is no role", hint=f"there are {', '.join(ROLES)}")
    return found
