"""The planner and the executor in the control loop.

One line of the settings serves each here and elsewhere: the names are the same. What they are asked and what they
answer is not, so these are roles of their own.
"""

from __future__ import annotations

from proofstone.contracts.solve.answers import FailureOutput, SolveExecutionOutput, SolvePlanOutput
from proofstone.contracts.solve.requests import FailureRequest, SolveExecutionRequest, SolvePlanRequest
from proofstone.contracts.tools import READING, Tool
from proofstone.roles.role import Role

PLANNER = Role(
    name="planner",
    title="Says what success means, and plans the way to it",
    input=SolvePlanRequest,
    output=SolvePlanOutput,
    tools=READING,
    prompt="solve_plan.md",
    tier=3,
)

FAILING = Role(
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

EXECUTOR = Role(
    name="executor",
    title="Does one subtask",
    input=SolveExecutionRequest,
    output=SolveExecutionOutput,
    tools=frozenset({Tool.READ, Tool.GLOB, Tool.GREP, Tool.RUN, Tool.WRITE, Tool.EDIT}),
    prompt="solve_execution.md",
    tier=2,
    tool_calls=10,
)
