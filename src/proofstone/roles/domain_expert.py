"""The domain expert: challenges a plan with what only those know who have worked in its field."""

from __future__ import annotations

from proofstone.contracts.plan_gate.answers import ChallengesOutput
from proofstone.contracts.plan_gate.requests import ChallengeRequest
from proofstone.contracts.tools import READING
from proofstone.roles.challenger import CHALLENGES, CLAIMS, TOOL_CALLS
from proofstone.roles.role import Role

ROLE = Role(
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
