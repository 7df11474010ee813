"""All roles, by name.

The roles of each protocol share a module; their payloads are in `models/` and their prompts in `prompts/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.gate import ARCHITECT, EXECUTOR
from proofstone.agents.roles.pipeline import DESIGNER, KNOWLEDGE, PLANNER, RESEARCHER, REVIEWER, SPECIFIER
from proofstone.agents.roles.plan_gate import (
    CHALLENGER,
    DEVILS_ADVOCATE,
    DOMAIN_EXPERT,
    PLAN_AUDITOR,
    PLAN_RESEARCHERS,
    SYNTHESIZER,
)
from proofstone.agents.roles.role import Role, format_request
from proofstone.agents.roles.solve import (
    AGENT_VALIDATOR,
    META_VALIDATOR,
    PERCEIVER,
    SOLVE_EXECUTOR,
    SOLVE_FAILURE,
    SOLVE_PLANNER,
)

__all__ = ["LOOP_ROLES", "PLAN_GATE_ROLES", "ROLES", "Role", "format_request"]

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

PLAN_GATE_ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {agent: plan_role for plan_role in (*PLAN_RESEARCHERS.values(), PLAN_AUDITOR) for agent in plan_role.agents}
)
"""Agents whose request and answer at the plan gate differ from those of their role elsewhere, by name."""

LOOP_ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {
        "perceive": PERCEIVER,
        "plan": SOLVE_PLANNER,
        "execute": SOLVE_EXECUTOR,
        "judge": AGENT_VALIDATOR,
        "merge": META_VALIDATOR,
        "fail": SOLVE_FAILURE,
    }
)
"""The roles of the control loop, by purpose. Its planner and its executor have other requests elsewhere."""
