"""The architect: reviews one attempt at a task, after the rules. What it writes while it looks is thrown away.

The executor: does the work of one task. What it says of it is a claim, and the gate finds out.
"""

from __future__ import annotations

from proofstone.agents.models import Completion, CompletionStatus
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    ExecutorStatus,
    Judgement,
    JudgeRequest,
    ReviewRequest,
)
from proofstone.agents.roles.role import MOST_SUMMARY, Role
from proofstone.agents.tools.models import READING, WRITING, Tool
from proofstone.common.models import Contract, Verdict
from proofstone.errors import InternalError


def _completion(output: Contract) -> Completion:
    if not isinstance(output, ArchitectVerdict):
        raise InternalError(f"{type(output).__name__} is no verdict of an architect")
    approved = output.verdict is ArchitectDecision.APPROVED
    said = output.feedback or "; ".join(output.concerns or output.findings) or output.verdict
    return Completion(
        status=CompletionStatus.DONE if approved else CompletionStatus.NEEDS_REVISION,
        summary=said[:MOST_SUMMARY],
        findings_count=len(output.concerns) if approved else len(output.findings),
    )


ARCHITECT = Role(
    name="architect",
    title="Reviews one attempt at a task",
    input=ReviewRequest,
    output=ArchitectVerdict,
    tools=READING | {Tool.RUN},
    prompt="architect.md",
    tier=2,
    completion=_completion,
    validates=("executor",),
)


def _judged(output: Contract) -> Completion:
    if not isinstance(output, Judgement):
        raise InternalError(f"{type(output).__name__} is no judgement")
    wrong = [item for item in output.items if item.verdict is Verdict.FAIL]
    said = "; ".join(f"{item.item}: {item.detail}" for item in wrong) or "everything holds"
    return Completion(
        status=CompletionStatus.NEEDS_REVISION if wrong else CompletionStatus.DONE,
        summary=said[:MOST_SUMMARY],
        findings_count=len(wrong),
    )


JUDGE = Role(
    name="architect",
    title="Says whether an agent has understood its task",
    input=JudgeRequest,
    output=Judgement,
    tools=READING,
    prompt="understanding.md",
    tier=2,
    completion=_judged,
    tool_calls=20,
    validates=("executor",),
    foci=("understanding",),
)
"""The same architect, before the work and in the middle of it."""


def _executor_completion(output: Contract) -> Completion:
    if not isinstance(output, ExecutorResult):
        raise InternalError(f"{type(output).__name__} is no answer of an executor")
    done = output.status is ExecutorStatus.SUCCESS
    said = output.error or output.evidence or output.status
    return Completion(
        status=CompletionStatus.DONE if done else CompletionStatus.ERROR,
        summary=said[:MOST_SUMMARY],
        output_paths=output.files_modified or (),
    )


EXECUTOR = Role(
    name="executor",
    title="Does the work of one task",
    input=Assignment,
    output=ExecutorResult,
    tools=READING | WRITING,
    prompt="executor.md",
    tier=2,
    completion=_executor_completion,
    tool_calls=200,
)
