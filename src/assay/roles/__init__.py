"""Roles: who takes part in a run. Each has a file of its own, and its prompt one in `prompts/`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from assay.errors import InputError
from assay.roles import architect, designer, executor, knowledge, planner, researcher, reviewer, specifier
from assay.roles.asking import request_text
from assay.roles.role import Role

__all__ = ["ROLES", "Role", "request_text", "role"]

_ALL = (executor, architect, researcher, specifier, designer, planner, reviewer, knowledge)

ROLES: Final[Mapping[str, Role]] = MappingProxyType({module.ROLE.name: module.ROLE for module in _ALL})


def role(name: str) -> Role:
    """The role of that name; `reviewer:security` is a reviewer."""
    found = ROLES.get(name.partition(":")[0])
    if found is None:
        raise InputError(f"{name!r} is no role", hint=f"there are {', '.join(ROLES)}")
    return found
