"""The executor: does the work of one task. What it says of it is a claim, and the gate finds out."""

from __future__ import annotations

from proofstone.contracts.agent import Completion, CompletionStatus
from proofstone.contracts.base import Contract
from proofstone.contracts.gate import Assignment, ExecutorResult, ExecutorStatus
from proofstone.contracts.tools import READING, WRITING
from proofstone.errors import InternalError
from proofstone.roles.role import MOST_SUMMARY, Role


def _completion(output: Contract) -> Completion:
    if not isinstance(output, ExecutorResult):
        raise InternalError(f"{type(output).__name__} is no answer of an executor")
    done = output.status is ExecutorStatus.SUCCESS
    said = output.error or output.evidence or output.status
    return Completion(
        status=CompletionStatus.DONE if done else CompletionStatus.ERROR,
        summary=said[:MOST_SUMMARY],
        output_paths=output.files_modified or (),
    )


ROLE = Role(
    name="executor",
    title="Does the work of one task",
    input=Assignment,
    output=ExecutorResult,
    tools=READING | WRITING,
    prompt="executor.md",
    tier=2,
    completion=_completion,
    tool_calls=200,
)
