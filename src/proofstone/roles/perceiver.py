"""The perceiver: takes in what a person wants. It restates and resolves nothing; their words are carried on by code."""

from __future__ import annotations

from proofstone.contracts.solve.answers import PerceivedOutput
from proofstone.contracts.solve.requests import PerceiveRequest
from proofstone.roles.role import Role

ROLE = Role(
    name="perceiver",
    title="Takes in what a person wants",
    input=PerceiveRequest,
    output=PerceivedOutput,
    tools=frozenset(),
    prompt="perceiver.md",
    tier=1,
)
