"""Requests and answers of the roles of the control loop.

The engine assigns ids; the models do not. Numbers in an answer only say an order. The descriptions of fields are
written for the models.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from proofstone.agents.models import RoleOutput
from proofstone.agents.roles.models.payload import AnswerPart, LongText, ShortText
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
from proofstone.common.models import FrozenModel


class PerceiveOutput(RoleOutput):
    """The answer of a perceiver, which restates the task and resolves nothing."""

    intent: ShortText = Field(description="What is wanted, in one faithful sentence; it may still be fuzzy.")
    constraints: Constraints = Constraints()
    question: str = Field(
        default="",
        max_length=1000,
        description="Only where no reading of the input is possible at all: what to ask the person. Else empty.",
    )


class SubTaskDraft(AnswerPart):
    """A subtask as the planner writes it. The engine assigns the id and ignores one that the planner invents."""

    intent: LongText
    success_criteria: Criteria
    context: str = Field(default="", max_length=8000)
    sequence: int = Field(
        ge=1, le=20, description="Subtasks with the same number run at the same time; the next number waits for them."
    )
    tools: tuple[str, ...] = Field(default=(), max_length=12, description="The names of the tools that it will use.")
    files: tuple[str, ...] = Field(default=(), max_length=40, description="Paths that it will change or rely on.")


class SolvePlanOutput(RoleOutput):
    """The answer of the planner in the control loop."""

    task_criteria: Criteria = Field(
        description="What must be true of the combined result. Each is falsifiable by itself."
    )
    subtasks: tuple[SubTaskDraft, ...] = Field(min_length=1, max_length=12)


class FailureOutput(RoleOutput):
    """The answer of the planner when the task is abandoned."""

    partial: tuple[ShortText, ...] = Field(default=(), max_length=12, description="What was done and can be used.")
    next_moves: tuple[ShortText, ...] = Field(min_length=2, max_length=3, description="What the person could do now.")
    summary: LongText


class SolveExecutionOutput(RoleOutput):
    """The answer of an executor in the control loop. The status is a claim; the engine records the tool calls."""

    status: Literal["completed", "failed"]
    output: str = Field(max_length=40_000, description="The result of the subtask, in full.")


class CriterionJudgement(AnswerPart):
    number: int = Field(ge=1, description="The number of the criterion.")
    verdict: Literal["pass", "fail"]
    failure_class: Literal["logical", "environmental"] | None = Field(
        default=None, description="For a failure: was the approach wrong, or was something in the way?"
    )
    evidence: LongText = Field(description="What shows it, quoted from the output or seen in the files.")


class JudgementOutput(RoleOutput):
    """The answer of an agent-validator, on the criteria that the engine cannot look up."""

    verdicts: tuple[CriterionJudgement, ...] = Field(max_length=40)
    what_was_wrong: str = Field(default="", max_length=4000)
    what_to_do: str = Field(default="", max_length=4000)


class MergeOutput(RoleOutput):
    """The answer of a meta-validator: the merged result, and whether it meets the request."""

    output: str = Field(max_length=40_000, description="The results of the subtasks, merged into one.")
    summary: LongText
    verdicts: tuple[CriterionJudgement, ...] = Field(max_length=40)
    meets_the_request: Literal["yes", "no", "ambiguous"] = Field(
        description="Judge by the person's own words, not by the criteria. If in doubt: ambiguous."
    )
    why: LongText


class PerceiveRequest(FrozenModel):
    raw_input: str = Field(description="The person's words.")
    clarification: str = Field(default="", description="What the person has answered since.")


class SolvePlanRequest(FrozenModel):
    task: TaskSpec
    tools: tuple[str, ...] = Field(description="The names of the tools that an executor has.")
    must_not: tuple[str, ...] = Field(default=(), description="What the memory and the controller forbid.")
    should_prefer: tuple[str, ...] = Field(default=(), description="What has worked before.")
    directive: PlanDirective | None = Field(default=None, description="How the next plan must differ, and why.")
    previous: tuple[SubTask, ...] = Field(default=(), description="The plan before this one.")
    outcomes: tuple[SubTaskOutcome, ...] = Field(default=(), description="The outcomes of that plan.")
    rejected: str = Field(default="", description="Why your last plan was refused.")
    merged: tuple[CriterionVerdict, ...] = Field(
        default=(), description="The verdicts on the merged result of that plan, if there was one."
    )
    blocked_tools: tuple[str, ...] = Field(default=(), description="Tools that no subtask may use.")
    blocked_targets: tuple[str, ...] = Field(default=(), description="Paths that no subtask may rely on.")


class FailureRequest(FrozenModel):
    task: TaskSpec
    directive: PlanDirective
    outcomes: tuple[SubTaskOutcome, ...] = Field(default=(), description="The outcomes of the last plan.")
    previous: tuple[SubTask, ...] = Field(default=(), description="The last plan.")
    merged: tuple[CriterionVerdict, ...] = Field(
        default=(), description="The verdicts on the merged result of that plan, if there was one."
    )


class SolveExecutionRequest(FrozenModel):
    task: TaskSpec
    subtask: SubTask
    before: tuple[SubTaskOutcome, ...] = Field(default=(), description="The outcomes of the subtasks before this one.")
    corrections: tuple[CorrectionSignal, ...] = Field(default=(), description="What was wrong so far, and what to do.")
    blocked_tools: tuple[str, ...] = Field(default=(), description="Tools that you may not use.")
    blocked_targets: tuple[str, ...] = Field(default=(), description="Paths that you may not rely on.")


class JudgementRequest(FrozenModel):
    subtask: SubTask
    result: ExecutionResult
    criteria: tuple[str, ...] = Field(description="The criteria to judge, numbered from 1 in this order.")


class MergeRequest(FrozenModel):
    manifest: DispatchManifest
    outcomes: tuple[SubTaskOutcome, ...]
    criteria: tuple[str, ...] = Field(description="The criteria to judge, numbered from 1 in this order.")
    seen: tuple[str, ...] = Field(default=(), description="What the engine has checked itself, and the results.")
