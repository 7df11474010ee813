"""The synthesizer: rules on each challenge, from what was found. Whether it may, and what follows, code decides."""

from __future__ import annotations

from proofstone.contracts.plan_gate.answers import SynthesisOutput
from proofstone.contracts.plan_gate.requests import SynthesisRequest
from proofstone.roles.role import Role

ROLE = Role(
    name="synthesizer",
    title="Rules on what was brought against a plan",
    input=SynthesisRequest,
    output=SynthesisOutput,
    tools=frozenset(),
    prompt="synthesizer.md",
    tier=3,
)
