"""The designer: decides how it is to be built, with what else was possible."""

from __future__ import annotations

from proofstone.contracts.pipeline.design import DesignOutput, DesignRequest
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

ROLE = Role(
    name="designer",
    title="Decides how it is to be built",
    input=DesignRequest,
    output=DesignOutput,
    tools=READING,
    prompt="designer.md",
    tier=3,
)
