"""The devil's advocate: makes the case against a plan as a whole, and brings only what stands."""

from __future__ import annotations

from proofstone.contracts.plan_gate.answers import ChallengesOutput
from proofstone.contracts.plan_gate.requests import ChallengeRequest
from proofstone.contracts.tools import READING
from proofstone.roles.challenger import CHALLENGES, CLAIMS, TOOL_CALLS
from proofstone.roles.role import Role

ROLE = Role(
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
