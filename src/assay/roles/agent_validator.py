"""The agent-validator: judges what came of one subtask, and only what nobody can look up. The rest the engine runs."""

from __future__ import annotations

from assay.contracts.solve.answers import JudgementOutput
from assay.contracts.solve.requests import JudgementRequest
from assay.contracts.tools import READING
from assay.roles.role import Role

ROLE = Role(
    name="agent_validator",
    title="Judges what came of one subtask",
    input=JudgementRequest,
    output=JudgementOutput,
    tools=READING,
    prompt="agent_validator.md",
    tier=2,
    validates=("executor",),
)
