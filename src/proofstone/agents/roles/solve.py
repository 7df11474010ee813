"""The agent-validator: judges what came of one subtask, and only what nobody can look up. The rest the engine runs.

The meta-validator: merges what the subtasks gave, and holds it against the criteria and the person's own words.

The planner wrote both the plan and the criteria. A weaker model could be talked into a result that keeps to their
letter, so it is refused and not only recorded.

The perceiver: takes in what a person wants. It restates and resolves nothing; their words are carried on by code.

The planner and the executor in the control loop.

One line of the settings serves each here and elsewhere: the names are the same. What they are asked and what they
answer is not, so these are roles of their own.
"""

from __future__ import annotations

from proofstone.agents.roles.models.solve import (
    FailureOutput,
    FailureRequest,
    JudgementOutput,
    JudgementRequest,
    MergeOutput,
    MergeRequest,
    PerceivedOutput,
    PerceiveRequest,
    SolveExecutionOutput,
    SolveExecutionRequest,
    SolvePlanOutput,
    SolvePlanRequest,
)
from proofstone.agents.roles.role import Role
from proofstone.agents.tools.models import READING, Tool

AGENT_VALIDATOR = Role(
    name="agent_validator",
    title="Judges what came of one subtask",
    input=JudgementRequest,
    output=JudgementOutput,
    tools=READING,
    prompt="agent_validator.md",
    tier=2,
    validates=("executor",),
)


META_VALIDATOR = Role(
    name="meta_validator",
    title="Merges what the subtasks gave, and verifies it",
    input=MergeRequest,
    output=MergeOutput,
    tools=READING,
    prompt="meta_validator.md",
    tier=3,
    validates=("planner",),
    strict=True,
)


PERCEIVER = Role(
    name="perceiver",
    title="Takes in what a person wants",
    input=PerceiveRequest,
    output=PerceivedOutput,
    tools=frozenset(),
    prompt="perceiver.md",
    tier=1,
)


SOLVE_PLANNER = Role(
    name="planner",
    title="Says what success means, and plans the way to it",
    input=SolvePlanRequest,
    output=SolvePlanOutput,
    tools=READING,
    prompt="solve_plan.md",
    tier=3,
)

SOLVE_FAILURE = Role(
    name="planner",
    title="Hands over what was done when a task is abandoned",
    input=FailureRequest,
    output=FailureOutput,
    tools=frozenset(),
    prompt="solve_failure.md",
    tier=3,
    foci=("failure",),
)
"""The same planner, at the end. It has what it needs before it, and looks at nothing else."""

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
