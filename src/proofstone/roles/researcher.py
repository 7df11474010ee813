"""The researcher: looks into the code with one question in mind, and changes nothing."""

from __future__ import annotations

from proofstone.contracts.pipeline.research import ResearchFocus, ResearchOutput, ResearchRequest
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

ROLE = Role(
    name="researcher",
    title="Looks into the code before anything is decided",
    input=ResearchRequest,
    output=ResearchOutput,
    tools=READING,
    prompt="researcher.md",
    tier=1,
    foci=tuple(ResearchFocus),
)
