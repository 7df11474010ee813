"""The roles of the task gate.

The executor does the work of one task. Its answer is a claim that the gate verifies. The architect reviews one attempt
after the rules have been applied; files that it writes during the review are thrown away.
"""

from __future__ import annotations

from dataclasses import replace

from proofstone.agents.models import Completion, CompletionStatus
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    ExecutorStatus,
    JudgeRequest,
    ReviewRequest,
    UnderstandingVerdicts,
)
from proofstone.agents.roles.role import MAX_SUMMARY, Role
from proofstone.agents.tools.models import CLAIMING_TOOLS, READING_TOOLS, WRITING_TOOLS, Tool
from proofstone.common.models import FrozenModel, Verdict
from proofstone.errors import InternalError


def _architect_completion(output: FrozenModel) -> Completion:
    if not isinstance(output, ArchitectVerdict):
        raise InternalError(f"{type(output).__name__} is not a verdict of an architect")
    is_approved = output.verdict is ArchitectDecision.APPROVED
    summary = output.feedback or "; ".join(output.concerns or output.findings) or output.verdict
    return Completion(
        status=CompletionStatus.DONE if is_approved else CompletionStatus.NEEDS_REVISION,
        summary=summary[:MAX_SUMMARY],
        findings_count=len(output.concerns) if is_approved else len(output.findings),
    )


ARCHITECT = Role(
    name="architect",
    title="Reviews one attempt at a task",
    input=ReviewRequest,
    output=ArchitectVerdict,
    tools=READING_TOOLS | {Tool.RUN},
    prompt="architect.md",
    tier=2,
    completion=_architect_completion,
    validates=("executor",),
)


def _judge_completion(output: FrozenModel) -> Completion:
    if not isinstance(output, UnderstandingVerdicts):
        raise InternalError(f"{type(output).__name__} is not a judgement")
    failures = [judged for judged in output.items if judged.verdict is Verdict.FAIL]
    summary = "; ".join(f"{failure.item}: {failure.detail}" for failure in failures) or "everything holds"
    return Completion(
        status=CompletionStatus.NEEDS_REVISION if failures else CompletionStatus.DONE,
        summary=summary[:MAX_SUMMARY],
        findings_count=len(failures),
    )


JUDGE = Role(
    name="architect",
    title="Judges whether an agent has understood its task",
    input=JudgeRequest,
    output=UnderstandingVerdicts,
    tools=READING_TOOLS,
    prompt="understanding.md",
    tier=2,
    completion=_judge_completion,
    tool_calls=20,
    validates=("executor",),
    foci=("understanding",),
)
"""The architect again, asked before and during the work whether the executor understands its task."""


def _executor_completion(output: FrozenModel) -> Completion:
    if not isinstance(output, ExecutorResult):
        raise InternalError(f"{type(output).__name__} is not an answer of an executor")
    is_done = output.status is ExecutorStatus.SUCCESS
    summary = output.error or output.evidence or output.status
    return Completion(
        status=CompletionStatus.DONE if is_done else CompletionStatus.ERROR,
        summary=summary[:MAX_SUMMARY],
        output_paths=output.files_modified or (),
    )


EXECUTOR = Role(
    name="executor",
    title="Does the work of one task",
    input=Assignment,
    output=ExecutorResult,
    tools=READING_TOOLS | WRITING_TOOLS | CLAIMING_TOOLS,
    prompt="executor.md",
    tier=2,
    completion=_executor_completion,
    tool_calls=200,
)

BLOCK_EXECUTOR = replace(
    EXECUTOR,
    edits="blocks",
    shared=("edit_blocks.md",),
    tool_calls=40,
    unasked=("task_name", "files_requested", "verification", "done_criteria_met", "disputes"),
)
"""The executor on a small model: it writes its changes into its text, has fewer steps, and a short schema, because a
model that is held to a schema fills in whatever it finds there."""
