"""The challenger: attacks a plan before any work starts, and speaks once more when all is settled.

The devil's advocate: makes the case against a plan as a whole, and brings only what stands.

The domain expert: challenges a plan with what only those know who have worked in its field.

The researcher at the plan gate, in three modes: it settles what is open, and looks for what was missed or may fail.

One line of the settings serves all of them and the researcher of the pipeline: the name is the same. What they are
asked and what they answer is not, so these are roles of their own.

The synthesizer: rules on each challenge, from what was found. Whether it may, and what follows, code decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.models.plan_gate import (
    ChallengeRequest,
    ChallengesOutput,
    Mode,
    PlanAuditOutput,
    PlanAuditRequest,
    ProbeOutput,
    ResearchPlanRequest,
    ResolveOutput,
    SurfaceOutput,
    SynthesisOutput,
    SynthesisRequest,
)
from proofstone.agents.roles.role import Role
from proofstone.agents.rules.tool_budgets import tools_of
from proofstone.agents.tools.models import READING
from proofstone.common.models import Contract

CLAIMS: Final = "plan_claims.md"
"""How to claim something that the engine looks up."""
CHALLENGES: Final = "plan_challenges.md"
"""What a challenge is, for all that may bring one."""
TOOL_CALLS: Final = 20
"""Of one that challenges: it looks at what the plan rests on, and leaves research to the researchers."""

CHALLENGER = Role(
    name="challenger",
    title="Attacks a plan before any work starts",
    input=ChallengeRequest,
    output=ChallengesOutput,
    tools=READING,
    prompt="challenger.md",
    tier=2,
    tool_calls=TOOL_CALLS,
    validates=("planner",),
    shared=(CHALLENGES, CLAIMS),
)

CLOSING = Role(
    name="challenger",
    title="Audits what became of the challenges",
    input=PlanAuditRequest,
    output=PlanAuditOutput,
    tools=frozenset(),
    prompt="plan_audit.md",
    tier=2,
    validates=("planner",),
    foci=("audit",),
)
"""The same challenger, at the close. It has what it needs before it, and looks at nothing else."""


DEVILS_ADVOCATE = Role(
    name="devils_advocate",
    title="Makes the case against a plan as a whole",
    input=ChallengeRequest,
    output=ChallengesOutput,
    tools=READING,
    prompt="devils_advocate.md",
    tier=2,
    tool_calls=TOOL_CALLS,
    validates=("planner",),
    shared=(CHALLENGES, CLAIMS),
)


DOMAIN_EXPERT = Role(
    name="domain_expert",
    title="Challenges a plan from knowledge of its field",
    input=ChallengeRequest,
    output=ChallengesOutput,
    tools=READING,
    prompt="domain_expert.md",
    tier=2,
    tool_calls=TOOL_CALLS,
    validates=("planner",),
    shared=(CHALLENGES, CLAIMS),
)


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


SYNTHESIZER = Role(
    name="synthesizer",
    title="Rules on what was brought against a plan",
    input=SynthesisRequest,
    output=SynthesisOutput,
    tools=frozenset(),
    prompt="synthesizer.md",
    tier=3,
)
