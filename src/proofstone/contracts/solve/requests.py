"""What the roles of the control loop are asked. The descriptions are written for them."""

from __future__ import annotations

from pydantic import Field

from proofstone.contracts.base import Contract
from proofstone.contracts.solve.messages import (
    CorrectionSignal,
    CriterionVerdict,
    DispatchManifest,
    ExecutionResult,
    PlanDirective,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)


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
