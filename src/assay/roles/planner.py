"""The planner: cuts a design into tasks that can be done and proven one by one."""

from __future__ import annotations

from assay.contracts.pipeline.plan import PlanOutput, PlanRequest
from assay.contracts.tools import READING
from assay.roles.role import Role

ROLE = Role(
    name="planner",
    title="Cuts a design into tasks",
    input=PlanRequest,
    output=PlanOutput,
    tools=READING,
    prompt="planner.md",
    tier=3,
)
