"""The reviewers: three of them, each with an eye for one thing. They read, and change nothing."""

from __future__ import annotations

from proofstone.contracts.pipeline.review import PanelOutput, PanelRequest, ReviewFocus
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

ROLE = Role(
    name="reviewer",
    title="Looks for what must not be let through",
    input=PanelRequest,
    output=PanelOutput,
    tools=READING,
    prompt="reviewer.md",
    tier=2,
    validates=("designer", "executor"),
    foci=tuple(ReviewFocus),
)
