"""The planner: cuts a design into tasks that can be done and proven one by one."""

from __future__ import annotations

from proofstone.contracts.pipeline.plan import PlanOutput, PlanRequest
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

ROLE = Role(
    name="planner",
    title="Cuts a design into tasks",
    input=PlanRequest,
    output=PlanOutput,
    tools=READING,
    prompt="planner.md",
    tier=3,
)
