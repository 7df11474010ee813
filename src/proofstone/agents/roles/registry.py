"""Roles: who takes part in a run.

The roles of each protocol share a file; their payloads are in `models/` and their prompts in `prompts/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.gate import ARCHITECT, EXECUTOR
from proofstone.agents.roles.pipeline import DESIGNER, KNOWLEDGE, PLANNER, RESEARCHER, REVIEWER, SPECIFIER
from proofstone.agents.roles.plan_gate import (
    CHALLENGER,
    CLOSING,
    DEVILS_ADVOCATE,
    DOMAIN_EXPERT,
    PLAN_RESEARCHERS,
    SYNTHESIZER,
)
from proofstone.agents.roles.role import Role, request_text
from proofstone.agents.roles.solve import (
    AGENT_VALIDATOR,
    META_VALIDATOR,
    PERCEIVER,
    SOLVE_EXECUTOR,
    SOLVE_FAILURE,
    SOLVE_PLANNER,
)
from proofstone.errors import InputError

__all__ = ["AT_THE_PLAN_GATE", "IN_THE_LOOP", "ROLES", "Role", "request_text", "role"]

ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {
        role.name: role
        for role in (
            EXECUTOR,
            ARCHITECT,
            RESEARCHER,
            SPECIFIER,
            DESIGNER,
            PLANNER,
            REVIEWER,
            KNOWLEDGE,
            CHALLENGER,
            DOMAIN_EXPERT,
            DEVILS_ADVOCATE,
            SYNTHESIZER,
            PERCEIVER,
            AGENT_VALIDATOR,
            META_VALIDATOR,
        )
    }
)

AT_THE_PLAN_GATE: Final[Mapping[str, Role]] = MappingProxyType(
    {agent: item for item in (*PLAN_RESEARCHERS.values(), CLOSING) for agent in item.agents}
)
"""Agents whom the plan gate asks for something else than their role is asked for elsewhere, by name."""

IN_THE_LOOP: Final[Mapping[str, Role]] = MappingProxyType(
    {
        "perceive": PERCEIVER,
        "plan": SOLVE_PLANNER,
        "execute": SOLVE_EXECUTOR,
        "judge": AGENT_VALIDATOR,
        "merge": META_VALIDATOR,
        "fail": SOLVE_FAILURE,
    }
)
"""Whom the control loop asks, by what for. Its planner and its executor are asked for something else elsewhere."""


def role(name: str) -> Role:
    """The role of that name; `reviewer:security` is a reviewer."""
    found = AT_THE_PLAN_GATE.get(name) or ROLES.get(name.partition(":")[0])
    if found is None:
        raise InputError(f"{name!r} is no role", hint=f"there are {', '.join(ROLES)}")
    return found
