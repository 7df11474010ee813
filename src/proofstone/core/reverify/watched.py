"""Who is asked at all. Agents by tier, backends by whether they can be asked, lanes by whether it is worth its cost.

| first match                                              | asked                                       |
|----------------------------------------------------------|---------------------------------------------|
| the lane is short (documentation, one small fix)         | no                                          |
| the role is of tier 0                                    | no                                          |
| the backend is `cmd:` or `human`                         | no: not applicable                          |
| a program that takes no further prompt                   | no: not applicable                          |
| otherwise                                                | yes                                         |
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from proofstone.contracts.base import Contract
from proofstone.contracts.lane import SHORT, Lane
from proofstone.contracts.reverify.position import Work
from proofstone.contracts.reverify.understanding import Tier
from proofstone.core.agent.routes import role_of

TIERS: Final[Mapping[str, Tier]] = MappingProxyType(
    {
        "executor": Tier.IMPLEMENTER,
        "planner": Tier.ARCHITECT,
        "designer": Tier.ARCHITECT,
        "researcher": Tier.RESEARCHER,
    }
)
"""Every other role is of tier 0: it reads, answers once, and is gone."""

WORK: Final[Mapping[str, Work]] = MappingProxyType(
    {
        "executor": Work.IMPLEMENTATION,
        "planner": Work.PLANNING,
        "designer": Work.DESIGN,
        "researcher": Work.RESEARCH,
    }
)

ASKABLE: Final[Mapping[str, bool | None]] = MappingProxyType(
    {"api": True, "acp": True, "script": True, "cli": None, "cmd": False, "human": False}
)
"""By the kind of backend. None: it depends on the program."""


class Watched(Contract):
    """An agent at work."""

    agent: str
    """As it is called in messages: `implementer-1`."""
    role: str
    phase: int = 0
    own_tools: bool = False
    """It is a program with tools of its own: how often it looks something up cannot be counted."""
    exempt: str = ""
    """Why it is never asked; empty: it is."""

    @property
    def work(self) -> Work | None:
        return WORK.get(role_of(self.role))


def tier_of(role: str) -> Tier:
    return TIERS.get(role_of(role), Tier.EXEMPT)


def why_exempt(role: str, backend: str, *, lane: Lane | None = None, takes_prompts: bool = False) -> str:
    """Why an agent is neither asked before its work nor during it; empty if it is. `backend` is the kind of its
    backend; `takes_prompts`: of a program, that it can be spoken to again."""
    if lane in SHORT:
        return f"the {lane} lane is too short for it"
    if tier_of(role) is Tier.EXEMPT:
        return f"tier {Tier.EXEMPT:d}: {role_of(role)} reads and answers once"
    askable = ASKABLE.get(backend, False)
    if askable is None:
        return "" if takes_prompts else f"not applicable: this {backend} program takes no further prompt"
    return "" if askable else f"not applicable: {backend} cannot be asked"
