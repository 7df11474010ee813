"""The specifier: turns a wish into requirements and criteria that can be tested, and says what speaks against it."""

from __future__ import annotations

from proofstone.contracts.pipeline.spec import SpecOutput, SpecRequest
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

ROLE = Role(
    name="specifier",
    title="Says what is wanted, so that it can be tested",
    input=SpecRequest,
    output=SpecOutput,
    tools=READING,
    prompt="specifier.md",
    tier=2,
)
