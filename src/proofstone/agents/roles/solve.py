"""The roles of the control loop: perceiver, planner, executor, agent-validator and meta-validator.

The planner writes both the plan and the criteria. A weak meta-validator could be talked into accepting a result that
meets only their letter, so a model weaker than the planner's is refused, not only recorded.

The planner and the executor share their names, and so one line of the settings each, with those of the pipeline and
the gate; their requests and answers differ, so they are roles of their own.
"""

from __future__ import annotations

from proofstone.agents.roles.models.solve import (
    FailureOutput,
    FailureRequest,
    JudgementOutput,
    JudgementRequest,
    MergeOutput,
    MergeRequest,
    PerceiveOutput,
    PerceiveRequest,
    SolveExecutionOutput,
    SolveExecutionRequest,
    SolvePlanOutput,
    SolvePlanRequest,
)
from proofstone.agents.roles.role import Role
from proofstone.agents.tools.models import READING_TOOLS, Tool

AGENT_VALIDATOR = Role(
    name="agent_validator",
    title="Judges the result of one subtask",
    input=JudgementRequest,
    output=JudgementOutput,
    tools=READING_TOOLS,
    prompt="agent_validator.md",
    tier=2,
    validates=("executor",),
)


META_VALIDATOR = Role(
    name="meta_validator",
    title="Merges the results of the subtasks and verifies them",
    input=MergeRequest,
    output=MergeOutput,
    tools=READING_TOOLS,
    prompt="meta_validator.md",
    tier=3,
    validates=("planner",),
    strict=True,
)


PERCEIVER = Role(
    name="perceiver",
    title="Restates what a person wants",
    input=PerceiveRequest,
    output=PerceiveOutput,
    tools=frozenset(),
    prompt="perceiver.md",
    tier=1,
)


SOLVE_PLANNER = Role(
    name="planner",
    title="Defines success and plans the way to it",
    input=SolvePlanRequest,
    output=SolvePlanOutput,
    tools=READING_TOOLS,
    prompt="solve_plan.md",
    tier=3,
)

SOLVE_FAILURE = Role(
    name="planner",
    title="Reports what was achieved when a task is abandoned",
    input=FailureRequest,
    output=FailureOutput,
    tools=frozenset(),
    prompt="solve_failure.md",
    tier=3,
    foci=("failure",),
)
"""The planner again, at the end of an abandoned task. Its request holds everything it needs, so it has no tools."""

SOLVE_EXECUTOR = Role(
    name="executor",
    title="Does one subtask",
    input=SolveExecutionRequest,
    output=SolveExecutionOutput,
    tools=frozenset({Tool.READ, Tool.GLOB, Tool.GREP, Tool.RUN, Tool.WRITE, Tool.EDIT}),
    prompt="solve_execution.md",
    tier=2,
    tool_calls=10,
)
