"""The architect: reviews one attempt at a task, after the rules. What it writes while it looks is thrown away."""

from __future__ import annotations

from proofstone.contracts.agent import Completion, CompletionStatus
from proofstone.contracts.base import Contract
from proofstone.contracts.gate import ArchitectDecision, ArchitectVerdict, ReviewRequest
from proofstone.contracts.reverify.judging import Judgement, JudgeRequest
from proofstone.contracts.tools import READING, Tool
from proofstone.contracts.verdict import Verdict
from proofstone.errors import InternalError
from proofstone.roles.role import MOST_SUMMARY, Role


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


ROLE = Role(
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
    wrong = [one for one in output.items if one.verdict is Verdict.FAIL]
    said = "; ".join(f"{one.item}: {one.detail}" for one in wrong) or "everything holds"
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
