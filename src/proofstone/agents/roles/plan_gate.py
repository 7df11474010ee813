"""The roles of the plan gate: challenger, devil's advocate, domain expert, researcher and synthesizer.

The researcher works in three modes. They share their name, and so one line of the settings, with the researcher of the
pipeline; their requests and answers differ, so each mode is a role of its own. The synthesizer rules on challenges;
code decides whether a ruling is allowed and what follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.models.plan_gate import (
    ChallengeRequest,
    ChallengesOutput,
    PlanAuditOutput,
    PlanAuditRequest,
    ProbeOutput,
    ResearchMode,
    ResearchPlanRequest,
    ResolveOutput,
    SurfaceOutput,
    SynthesisOutput,
    SynthesisRequest,
)
from proofstone.agents.roles.role import Role
from proofstone.agents.rules.tool_budgets import find_tools
from proofstone.agents.tools.models import READING_TOOLS
from proofstone.common.models import FrozenModel

CLAIMS_PROMPT: Final = "plan_claims.md"
"""The prompt file that explains claims, which the engine looks up."""
CHALLENGES_PROMPT: Final = "plan_challenges.md"
"""The prompt file that explains what a challenge is, for all roles that may bring one."""
MAX_CHALLENGER_CALLS: Final = 20
"""How many tool calls a challenger may make. It is low because research is left to the researchers."""

CHALLENGER = Role(
    name="challenger",
    title="Attacks a plan before any work starts",
    input=ChallengeRequest,
    output=ChallengesOutput,
    tools=READING_TOOLS,
    prompt="challenger.md",
    tier=2,
    tool_calls=MAX_CHALLENGER_CALLS,
    validates=("planner",),
    shared=(CHALLENGES_PROMPT, CLAIMS_PROMPT),
)

PLAN_AUDITOR = Role(
    name="challenger",
    title="Audits how the challenges were settled",
    input=PlanAuditRequest,
    output=PlanAuditOutput,
    tools=frozenset(),
    prompt="plan_audit.md",
    tier=2,
    validates=("planner",),
    foci=("audit",),
)
"""The challenger again, at the end of the plan gate. Its request holds everything it needs, so it has no tools."""


DEVILS_ADVOCATE = Role(
    name="devils_advocate",
    title="Makes the case against a plan as a whole",
    input=ChallengeRequest,
    output=ChallengesOutput,
    tools=READING_TOOLS,
    prompt="devils_advocate.md",
    tier=2,
    tool_calls=MAX_CHALLENGER_CALLS,
    validates=("planner",),
    shared=(CHALLENGES_PROMPT, CLAIMS_PROMPT),
)


DOMAIN_EXPERT = Role(
    name="domain_expert",
    title="Challenges a plan from knowledge of its field",
    input=ChallengeRequest,
    output=ChallengesOutput,
    tools=READING_TOOLS,
    prompt="domain_expert.md",
    tier=2,
    tool_calls=MAX_CHALLENGER_CALLS,
    validates=("planner",),
    shared=(CHALLENGES_PROMPT, CLAIMS_PROMPT),
)


def _build_researcher(mode: ResearchMode, title: str, output: type[FrozenModel], *shared: str) -> Role:
    return Role(
        name="researcher",
        title=title,
        input=ResearchPlanRequest,
        output=output,
        tools=find_tools(mode),
        prompt=f"plan_{mode}.md",
        tier=1,
        foci=(mode,),
        shared=shared,
    )


PLAN_RESEARCHERS: Final[Mapping[ResearchMode, Role]] = MappingProxyType(
    {
        ResearchMode.RESOLVE: _build_researcher(
            ResearchMode.RESOLVE, "Settles open challenges against a plan", ResolveOutput, CLAIMS_PROMPT
        ),
        ResearchMode.SURFACE: _build_researcher(
            ResearchMode.SURFACE, "Looks for what a plan missed", SurfaceOutput, CHALLENGES_PROMPT, CLAIMS_PROMPT
        ),
        ResearchMode.PROBE: _build_researcher(
            ResearchMode.PROBE,
            "Looks for what could go wrong with a plan",
            ProbeOutput,
            CHALLENGES_PROMPT,
            CLAIMS_PROMPT,
        ),
    }
)


SYNTHESIZER = Role(
    name="synthesizer",
    title="Rules on the challenges against a plan",
    input=SynthesisRequest,
    output=SynthesisOutput,
    tools=frozenset(),
    prompt="synthesizer.md",
    tier=3,
)
