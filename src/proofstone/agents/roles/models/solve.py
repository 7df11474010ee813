"""What the models behind the roles answer. They give no ids; what an answer numbers is local and means an order.

What the roles of the control loop are asked. The descriptions are written for them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from proofstone.agents.models import Output
from proofstone.agents.roles.models.payload import Line, Part, Text
from proofstone.agents.roles.models.solve_messages import (
    Constraints,
    CorrectionSignal,
    Criteria,
    CriterionVerdict,
    DispatchManifest,
    ExecutionResult,
    PlanDirective,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.common.models import Contract


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


class PerceiveRequest(Contract):
    raw_input: str = Field(description="The person's words.")
    clarification: str = Field(default="", description="What they have answered since.")


class SolvePlanRequest(Contract):
    task: TaskSpec
    tools: tuple[str, ...] = Field(description="The tools that an executor has, by name.")
    must_not: tuple[str, ...] = Field(default=(), description="What memory and the controller forbid.")
    should_prefer: tuple[str, ...] = Field(default=(), description="What has worked before.")
    directive: PlanDirective | None = Field(default=None, description="How the next plan must differ, and why.")
    previous: tuple[SubTask, ...] = Field(default=(), description="The plan before this one.")
    outcomes: tuple[SubTaskOutcome, ...] = Field(default=(), description="What came of it.")
    rejected: str = Field(default="", description="Why your last plan was not taken.")
    merged: tuple[CriterionVerdict, ...] = Field(
        default=(), description="What was said of the merged result of that plan, where it came to that."
    )
    blocked_tools: tuple[str, ...] = Field(default=(), description="Tools that no subtask may use.")
    blocked_targets: tuple[str, ...] = Field(default=(), description="Paths that no subtask may rest on.")


class FailureRequest(Contract):
    task: TaskSpec
    directive: PlanDirective
    outcomes: tuple[SubTaskOutcome, ...] = Field(default=(), description="What came of the last plan.")
    previous: tuple[SubTask, ...] = Field(default=(), description="The last plan.")
    merged: tuple[CriterionVerdict, ...] = Field(
        default=(), description="What was said of the merged result of that plan, where it came to that."
    )


class SolveExecutionRequest(Contract):
    task: TaskSpec
    subtask: SubTask
    before: tuple[SubTaskOutcome, ...] = Field(default=(), description="What came of the subtasks before this one.")
    corrections: tuple[CorrectionSignal, ...] = Field(default=(), description="What was wrong so far, and what to do.")
    blocked_tools: tuple[str, ...] = Field(default=(), description="Tools that you may not use.")
    blocked_targets: tuple[str, ...] = Field(default=(), description="Paths that you may not rest on.")


class JudgementRequest(Contract):
    subtask: SubTask
    result: ExecutionResult
    criteria: tuple[str, ...] = Field(description="To be judged, in this order: number 1 first.")


class MergeRequest(Contract):
    manifest: DispatchManifest
    outcomes: tuple[SubTaskOutcome, ...]
    criteria: tuple[str, ...] = Field(description="To be judged, in this order: number 1 first.")
    seen: tuple[str, ...] = Field(default=(), description="What the engine has looked at itself, and what it saw.")
