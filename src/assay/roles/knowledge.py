"""The keeper of knowledge: what the next run should know. The engine writes it down, not the agent."""

from __future__ import annotations

from assay.contracts.pipeline.knowledge import KnowledgeOutput, KnowledgeRequest
from assay.contracts.tools import READING
from assay.roles.role import Role

ROLE = Role(
    name="knowledge",
    title="Writes down what was learnt",
    input=KnowledgeRequest,
    output=KnowledgeOutput,
    tools=READING,
    prompt="knowledge.md",
    tier=1,
)
