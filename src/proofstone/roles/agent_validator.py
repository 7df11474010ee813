"""The agent-validator: judges what came of one subtask, and only what nobody can look up. The rest the engine runs."""

from __future__ import annotations

from proofstone.contracts.solve.answers import JudgementOutput
from proofstone.contracts.solve.requests import JudgementRequest
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

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
