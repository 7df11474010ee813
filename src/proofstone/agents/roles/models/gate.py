"""Requests and answers at the task gate.

They are the assignment and the result of an executor, the request and the verdict of an architect, the failures of
attempts, and the request to judge whether an agent has understood its task.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import ConfigDict, Field, field_validator, model_validator

from proofstone.agents.roles.models.payload import AnswerPart
from proofstone.agents.roles.models.solve_messages import DirectiveName, FailureClass, FiniteFloat, Gradient, Loss
from proofstone.common.models import Confidence, FrozenModel, Verdict


class TaskState(StrEnum):
    PENDING = "PENDING"
    EXECUTING = "EXECUTING"
    VERIFYING = "VERIFYING"
    REVIEWING = "REVIEWING"
    APPROVED = "APPROVED"
    FAILED = "FAILED"
    BLOCKED = "BLOCKED"
    SKIPPED = "SKIPPED"
    FORCED = "FORCED"


class FailureType(StrEnum):
    EXECUTION_FAILURE = "EXECUTION_FAILURE"
    VERIFY_FAILURE = "VERIFY_FAILURE"
    ARCHITECT_REJECTION = "ARCHITECT_REJECTION"
    TIMEOUT = "TIMEOUT"
    MALFORMED = "MALFORMED"
    BLOCKED = "BLOCKED"


class ExecutorStatus(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    BLOCKED = "blocked"


class VerificationClaim(FrozenModel):
    """The result that the executor claims for its own run of the verify command. It proves nothing."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    command: str = ""
    exit_code: int | None = None
    output_summary: str = ""


class ClaimedDispute(FrozenModel):
    """The executor's claim that a test, a rule or a requirement is wrong. It changes no verdict; a person decides."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    subject: str = Field(min_length=1, description="The test id, the rule of a finding, or the requirement.")
    because: str = Field(min_length=1, description="Why it is wrong, and what shows it.")


class ExecutorResult(FrozenModel):
    """The executor's claim about its work. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    status: ExecutorStatus
    task_name: str = ""
    files_modified: tuple[str, ...] | None = None
    """None if the executor does not list them."""
    files_requested: tuple[str, ...] = ()
    """Files that it needs beyond the declared ones, such as a lock file. `check.rules.file_requests` decides."""
    verification: VerificationClaim | None = None
    done_criteria_met: bool | None = None
    evidence: str = ""
    disputes: tuple[ClaimedDispute, ...] = ()
    """What it says is wrong about the tests, the findings or the task. A person decides."""
    error: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> ExecutorResult:
        if self.status is ExecutorStatus.SUCCESS and self.error:
            raise ValueError("status is success, so error must be null")
        if self.status is ExecutorStatus.BLOCKED and (self.files_modified or not self.error):
            raise ValueError("status is blocked, so files_modified must be empty and error must say what blocks it")
        return self


class ArchitectDecision(StrEnum):
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"


class Recommendation(StrEnum):
    COMMIT = "commit"
    RETRY = "retry"
    MANUAL_REVIEW = "manual_review"


class ArchitectVerdict(FrozenModel):
    """The verdict of an architect on one attempt."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    verdict: ArchitectDecision
    confidence: Confidence = Confidence.MEDIUM
    findings: tuple[str, ...] = ()
    """On approval what shows that each criterion is met; on rejection what is wrong."""
    concerns: tuple[str, ...] = ()
    recommendation: Recommendation = Recommendation.COMMIT
    feedback: str = ""
    by: str = ""
    """Who gave the verdict: `rules`, `human`, or a command."""

    @field_validator("confidence", mode="before")
    @classmethod
    def _lower_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="before")
    @classmethod
    def _default_to_retry(cls, data: object) -> object:
        """Recommend a retry for a rejection that recommends nothing."""
        if isinstance(data, dict) and data.get("verdict") == ArchitectDecision.REJECTED:
            return {"recommendation": Recommendation.RETRY, **data}
        return data


class PendingReview(FrozenModel):
    """Returned instead of a verdict when a person must answer and nobody can be asked right now."""

    question: str


class NoVerdict(FrozenModel):
    """Returned instead of a verdict when there is no valid one. It approves nothing."""

    why: str
    """The reason. The answer was malformed, unless one of the flags below is set."""
    timed_out: bool = False
    cancelled: bool = False
    missing_program: str = ""
    """The program that was not found, so that asking again would give the same."""


class FailureReason(FrozenModel):
    """One reason why an attempt did not pass."""

    check: str
    """The check, the rule of a finding, or the condition of the gate that was not met."""
    layer: str = ""
    verdict: Verdict = Verdict.FAIL
    detail: str
    artifact: str | None = None
    remedy: str = ""
    """What the plan's author or the project's owner can do about it. Executors are not told."""
    failures: tuple[str, ...] = ()
    """What could be read of the output of a failing verify command: failing tests, diagnostics, an error."""
    output_tail: str = ""
    """The end of what a failing verify command printed."""


class RetryDirection(FrozenModel):
    """The controller's measurements after an attempt that did not pass, and its advice for the next attempt. Whether
    there is a next attempt is decided elsewhere."""

    directive: DirectiveName
    gradient: Gradient
    loss: Loss
    nabla: FiniteFloat
    """The gradient on which the directive is based."""
    grad_l: FiniteFloat
    """The change of the loss itself."""
    failure_class: FailureClass = FailureClass.MIXED
    """The class of most of the failures."""
    failed_criterion: str = ""
    """The first thing that failed."""
    suggested_alternatives: tuple[str, ...] = ()
    rationale: str


class AttemptFailure(FrozenModel):
    """How one attempt ended, if it did not pass."""

    attempt: int = Field(ge=1)
    type: FailureType
    error: str
    """The error in one line."""
    reasons: tuple[FailureReason, ...] = ()
    passed: tuple[str, ...] = ()
    """Checks that passed nevertheless; empty if the checks did not run."""
    direction: RetryDirection | None = None
    """None for a failure that was recorded before there was a controller."""
    missing_program: str = ""
    """The program that was not found. Another attempt would not find it either, so a person is asked at once."""
    verdicts: tuple[ArchitectVerdict, ...] = ()
    """What the architects besides the rules said about the attempt."""


class Assignment(FrozenModel):
    """The task for an executor; `PROOFSTONE_TASK` names a file that contains it. It has no held-out commands."""

    run_id: str
    task_id: str
    task_name: str
    plan: str
    """The plan's title."""
    objective: str = ""
    files: tuple[str, ...]
    action: str
    verify: tuple[str, ...]
    must_pass: tuple[str, ...] = ()
    """Ids of tests that must exist and pass."""
    done: tuple[str, ...]
    attempt: int
    max_attempts: int
    base_commit: str
    deadline_seconds: float | None
    previous_failures: tuple[AttemptFailure, ...] = ()
    learnings: tuple[str, ...] = ()
    """Lessons of earlier attempts at this task and at others."""
    directive: str = ""
    """What to do differently this time."""
    direction: RetryDirection | None = None
    """The controller's advice after an attempt that did not pass."""
    prompt: str
    """The whole assignment as one text, for executors that read prose: the retry block first, then the task."""


class CheckSummary(FrozenModel):
    """A check of the candidate, as it is shown to an architect."""

    name: str
    verdict: Verdict
    reason: str = ""
    output: str = ""
    """The end of what it printed, for a verify command."""


class ReviewRequest(FrozenModel):
    """The request for an architect; `PROOFSTONE_REVIEW` names a file that contains it. The executor's text is data."""

    run_id: str
    task_id: str
    task_name: str
    attempt: int
    round: int = 1
    """The number of this review. An attempt is reviewed again when other tasks were committed before it."""
    base_commit: str = ""
    """The commit that the diff is against."""
    action: str
    done: tuple[str, ...]
    files: tuple[str, ...]
    """The files that the plan declares for the task, as its author wrote them."""
    files_added: tuple[str, ...] = ()
    """Files that were added to the task while it ran, each with who added it and why. The plan's author has not seen
    them.
    """
    claim: ExecutorResult | None
    diff: str
    """The diff, bounded; `[...]` marks omissions."""
    checks: tuple[CheckSummary, ...]
    findings: tuple[str, ...] = ()
    """Findings of the deterministic rules."""
    previous_failures: tuple[AttemptFailure, ...] = ()
    """Why earlier attempts did not pass, with what their commands printed."""
    criteria: tuple[str, ...] = ()
    """Done criteria that no check can show, so that the architect must judge them."""
    deadline_seconds: float | None = None


CLAIM_MISMATCH: Final = "claim-mismatch"


class JudgeItem(FrozenModel):
    """One item to judge."""

    item: str
    """`RC-07`, or `answer`."""
    holds_if: str


class JudgeRequest(FrozenModel):
    run_id: str
    agent: str
    """The agent whose understanding is judged."""
    task: str
    """The task as that agent received it."""
    said: str
    """What that agent said about it."""
    to_judge: tuple[JudgeItem, ...]
    base_commit: str = ""
    deadline_seconds: float | None = None


class JudgeItemVerdict(AnswerPart):
    item: str = Field(description="Its name in the request.")
    verdict: Verdict = Field(
        description="`pass` if it holds, `fail` if it does not, `unverifiable` if you cannot tell."
    )
    detail: str = Field(
        default="", description="What is wrong, so that it can be corrected; or why it cannot be decided."
    )


class UnderstandingVerdicts(FrozenModel):
    """The answer of a judge."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    items: tuple[JudgeItemVerdict, ...] = Field(description="One for each item to judge.")
