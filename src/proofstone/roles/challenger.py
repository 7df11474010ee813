"""The challenger: attacks a plan before any work starts, and speaks once more when all is settled."""

from __future__ import annotations

from typing import Final

from proofstone.contracts.plan_gate.answers import ChallengesOutput, PlanAuditOutput
from proofstone.contracts.plan_gate.requests import ChallengeRequest, PlanAuditRequest
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

CLAIMS: Final = "plan_claims.md"
"""How to claim something that the engine looks up."""
CHALLENGES: Final = "plan_challenges.md"
"""What a challenge is, for all that may bring one."""
TOOL_CALLS: Final = 20
"""Of one that challenges: it looks at what the plan rests on, and leaves research to the researchers."""

ROLE = Role(
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
