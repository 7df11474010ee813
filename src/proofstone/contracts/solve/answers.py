"""What the models behind the roles answer. They give no ids; what an answer numbers is local and means an order."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from proofstone.contracts.agent import Output
from proofstone.contracts.pipeline.part import Line, Part, Text
from proofstone.contracts.solve.messages import Constraints, Criteria


class PerceivedOutput(Output):
    """What a perceiver answers. It restates, and resolves nothing."""

    intent: Line = Field(description="What is wanted, in one faithful sentence; it may still be fuzzy.")
    constraints: Constraints = Constraints()
    question: str = Field(
        default="",
        max_length=1000,
        description="Only where no reading of the input is possible at all: what to ask the person. Else empty.",
    )


class SubTaskDraft(Part):
    """Without an id: those are the engine's, and one that a planner invents is left alone like any unknown field."""

    intent: Text
    success_criteria: Criteria
    context: str = Field(default="", max_length=8000)
    sequence: int = Field(ge=1, le=20, description="Those of one number run together; the next waits for them.")
    tools: tuple[str, ...] = Field(default=(), max_length=12, description="The tools that it will use, by name.")
    files: tuple[str, ...] = Field(default=(), max_length=40, description="Paths that it will change or rest on.")


class SolvePlanOutput(Output):
    """What a planner answers in the control loop."""

    task_criteria: Criteria = Field(description="What must be so of the combined result: falsifiable, each by itself.")
    subtasks: tuple[SubTaskDraft, ...] = Field(min_length=1, max_length=12)


class FailureOutput(Output):
    """What a planner answers when it is abandoned."""

    partial: tuple[Line, ...] = Field(default=(), max_length=12, description="What was done and can be used.")
    next_moves: tuple[Line, ...] = Field(min_length=2, max_length=3, description="What the person could do now.")
    summary: Text


class SolveExecutionOutput(Output):
    """What an executor answers in the control loop. How it went is its claim; what it did is on record."""

    status: Literal["completed", "failed"]
    output: str = Field(max_length=40_000, description="The result of the subtask, in full.")


class JudgedCriterion(Part):
    number: int = Field(ge=1, description="Which of the criteria, as they were numbered.")
    verdict: Literal["pass", "fail"]
    failure_class: Literal["logical", "environmental"] | None = Field(
        default=None, description="Of a failure: was the approach wrong, or was something in its way?"
    )
    evidence: Text = Field(description="What shows it, quoted from the output or seen in the files.")


class JudgementOutput(Output):
    """What an agent-validator answers about the criteria that nobody can look up."""

    verdicts: tuple[JudgedCriterion, ...] = Field(max_length=40)
    what_was_wrong: str = Field(default="", max_length=4000)
    what_to_do: str = Field(default="", max_length=4000)


class MergeOutput(Output):
    """What a meta-validator answers: the merged result, and whether it is what was asked for."""

    output: str = Field(max_length=40_000, description="The results of the subtasks as one result.")
    summary: Text
    verdicts: tuple[JudgedCriterion, ...] = Field(max_length=40)
    meets_the_request: Literal["yes", "no", "ambiguous"] = Field(
        description="Against the person's own words, not the criteria. If in doubt: ambiguous."
    )
    why: Text
