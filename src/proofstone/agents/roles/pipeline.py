"""The roles of the pipeline: researcher, specifier, designer, planner, reviewer and knowledge.

None of them changes files. The executor and the architect of the gate do the work and review it. Lessons of the
knowledge role are written by the engine, not by the agent.
"""

from __future__ import annotations

from proofstone.agents.roles.models.pipeline import (
    DesignOutput,
    DesignRequest,
    KnowledgeOutput,
    KnowledgeRequest,
    PanelOutput,
    PanelRequest,
    PlanOutput,
    PlanRequest,
    ResearchFocus,
    ResearchOutput,
    ResearchRequest,
    ReviewFocus,
    SpecOutput,
    SpecRequest,
)
from proofstone.agents.roles.role import Role
from proofstone.agents.tools.models import READING_TOOLS

RESEARCHER = Role(
    name="researcher",
    title="Examines the code before anything is decided",
    input=ResearchRequest,
    output=ResearchOutput,
    tools=READING_TOOLS,
    prompt="researcher.md",
    tier=1,
    foci=tuple(ResearchFocus),
)


SPECIFIER = Role(
    name="specifier",
    title="Specifies what is wanted, so that it can be tested",
    input=SpecRequest,
    output=SpecOutput,
    tools=READING_TOOLS,
    prompt="specifier.md",
    tier=2,
)


DESIGNER = Role(
    name="designer",
    title="Decides how to build it",
    input=DesignRequest,
    output=DesignOutput,
    tools=READING_TOOLS,
    prompt="designer.md",
    tier=3,
)


PLANNER = Role(
    name="planner",
    title="Divides a design into tasks",
    input=PlanRequest,
    output=PlanOutput,
    tools=READING_TOOLS,
    prompt="planner.md",
    tier=3,
)


REVIEWER = Role(
    name="reviewer",
    title="Looks for problems that must not pass",
    input=PanelRequest,
    output=PanelOutput,
    tools=READING_TOOLS,
    prompt="reviewer.md",
    tier=2,
    validates=("designer", "executor"),
    foci=tuple(ReviewFocus),
)


KNOWLEDGE = Role(
    name="knowledge",
    title="Writes down the lessons of a run",
    input=KnowledgeRequest,
    output=KnowledgeOutput,
    tools=READING_TOOLS,
    prompt="knowledge.md",
    tier=1,
)
