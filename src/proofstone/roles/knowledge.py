"""The keeper of knowledge: what the next run should know. The engine writes it down, not the agent."""

from __future__ import annotations

from proofstone.contracts.pipeline.knowledge import KnowledgeOutput, KnowledgeRequest
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

ROLE = Role(
    name="knowledge",
    title="Writes down what was learnt",
    input=KnowledgeRequest,
    output=KnowledgeOutput,
    tools=READING,
    prompt="knowledge.md",
    tier=1,
)
