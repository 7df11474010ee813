"""The researcher at the plan gate, in three modes: it settles what is open, and looks for what was missed or may fail.

One line of the settings serves all of them and the researcher of the pipeline: the name is the same. What they are
asked and what they answer is not, so these are roles of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from proofstone.contracts.base import Contract
from proofstone.contracts.plan_gate.answers import Mode, ProbeOutput, ResolveOutput, SurfaceOutput
from proofstone.contracts.plan_gate.requests import ResearchPlanRequest
from proofstone.core.plan_gate.tool_budgets import tools_of
from proofstone.roles.challenger import CHALLENGES, CLAIMS
from proofstone.roles.role import Role


def _researcher(mode: Mode, title: str, output: type[Contract], *shared: str) -> Role:
    return Role(
        name="researcher",
        title=title,
        input=ResearchPlanRequest,
        output=output,
        tools=tools_of(mode),
        prompt=f"plan_{mode}.md",
        tier=1,
        foci=(mode,),
        shared=shared,
    )


PLAN_RESEARCHERS: Final[Mapping[Mode, Role]] = MappingProxyType(
    {
        Mode.RESOLVE: _researcher(Mode.RESOLVE, "Settles what is open against a plan", ResolveOutput, CLAIMS),
        Mode.SURFACE: _researcher(Mode.SURFACE, "Looks for what a plan has missed", SurfaceOutput, CHALLENGES, CLAIMS),
        Mode.PROBE: _researcher(
            Mode.PROBE, "Looks for what could go wrong with a plan", ProbeOutput, CHALLENGES, CLAIMS
        ),
    }
)
