"""What is said at the task gate: the executor's claim, the architect's verdict, failures and their reasons.

What is asked of whoever judges what code cannot: whether an agent has understood.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import ConfigDict, Field, field_validator, model_validator

from proofstone.agents.roles.models.payload import Part
from proofstone.agents.roles.models.solve_messages import DirectiveName, FailureClass, Gradient, Loss, Real
from proofstone.common.models import Confidence, Contract, Verdict


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


class ClaimedVerification(Contract):
    """What the executor says its own run of the verify command gave. Data about the executor, nothing else."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    command: str = ""
    exit_code: int | None = None
    output_summary: str = ""


class ExecutorResult(Contract):
    """The executor's claim. Fields that we do not know are left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    status: ExecutorStatus
    task_name: str = ""
    files_modified: tuple[str, ...] | None = None
    """None: it does not say."""
    files_requested: tuple[str, ...] = ()
    """Files beyond the declared ones that it needed, such as a lock file: `check.rules.file_requests` answers."""
    verification: ClaimedVerification | None = None
    done_criteria_met: bool | None = None
    evidence: str = ""
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


class ArchitectVerdict(Contract):
    """An architect's word about one attempt."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    verdict: ArchitectDecision
    confidence: Confidence = Confidence.MEDIUM
    findings: tuple[str, ...] = ()
    """What was seen to be met, criterion by criterion, or what is wrong."""
    concerns: tuple[str, ...] = ()
    recommendation: Recommendation = Recommendation.COMMIT
    feedback: str = ""
    by: str = ""
    """`rules`, `human`, or the command."""

    @field_validator("confidence", mode="before")
    @classmethod
    def _either_spelling(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="before")
    @classmethod
    def _rejected_is_not_committed(cls, said: object) -> object:
        """A rejection that recommends nothing recommends another attempt."""
        if isinstance(said, dict) and said.get("verdict") == ArchitectDecision.REJECTED:
            return {"recommendation": Recommendation.RETRY, **said}
        return said


class Waiting(Contract):
    """Instead of a verdict: a person must speak, and there is none to ask right now."""

    question: str


class NoVerdict(Contract):
    """Instead of a verdict: nothing that counts as one. It approves nothing."""

    why: str
    """Malformed, unless one of these says otherwise."""
    timed_out: bool = False
    cancelled: bool = False


class Reason(Contract):
    """One reason why an attempt did not pass."""

    check: str
    """The check, the rule of a finding, or the condition of the gate that is not met."""
    layer: str = ""
    verdict: Verdict = Verdict.FAIL
    detail: str
    artifact: str | None = None


class Direction(Contract):
    """Where a task stands after an attempt that did not pass, and how another one should go about it. The controller
    says this; whether there is another one is not for it to say."""

    directive: DirectiveName
    gradient: Gradient
    loss: Loss
    nabla: Real
    """By which it was decided."""
    grad_l: Real
    """By which the loss itself has changed."""
    failure_class: FailureClass = FailureClass.MIXED
    """Of most of what failed."""
    failed_criterion: str = ""
    """The first thing that failed."""
    suggested_alternatives: tuple[str, ...] = ()
    rationale: str


class Failure(Contract):
    """How one attempt ended, if it did not pass."""

    attempt: int = Field(ge=1)
    type: FailureType
    error: str
    """In one line."""
    reasons: tuple[Reason, ...] = ()
    passed: tuple[str, ...] = ()
    """Checks that passed all the same; none, if it did not come to them."""
    direction: Direction | None = None
    """None: it was recorded before there was a controller."""


class Assignment(Contract):
    """What an executor is given: `PROOFSTONE_TASK` names a file with this in it. Held-out commands are not."""

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
    """Tests, by id, that must be there and pass."""
    done: tuple[str, ...]
    attempt: int
    max_attempts: int
    base_commit: str
    deadline_seconds: float | None
    previous_failures: tuple[Failure, ...] = ()
    learnings: tuple[str, ...] = ()
    """What earlier attempts, of this task and of others, have taught."""
    directive: str = ""
    """What to do differently this time."""
    direction: Direction | None = None
    """How to go about it, after an attempt that did not pass."""
    prompt: str
    """All of it as one text, for executors that read prose: the retry block first, then the task."""


class ReviewedCheck(Contract):
    """A check of the candidate, as an architect is told of it."""

    name: str
    verdict: Verdict
    reason: str = ""


class ReviewRequest(Contract):
    """What an architect is given: `PROOFSTONE_REVIEW` names a file with this in it. Text of the executor's is data."""

    run_id: str
    task_id: str
    task_name: str
    attempt: int
    round: int = 1
    """Which look at this attempt: it is looked at again when others were committed before it."""
    base_commit: str = ""
    """What the diff is against."""
    action: str
    done: tuple[str, ...]
    files: tuple[str, ...]
    """What the task may change."""
    claim: ExecutorResult | None
    diff: str
    """Bounded; `[...]` stands for what was left out."""
    checks: tuple[ReviewedCheck, ...]
    findings: tuple[str, ...] = ()
    """Of the deterministic rules."""
    criteria: tuple[str, ...] = ()
    """Done criteria that no check shows: only an architect's word can."""
    deadline_seconds: float | None = None


CLAIM_MISMATCH: Final = "claim-mismatch"


class ToJudge(Contract):
    """One thing to be said yes or no to."""

    item: str
    """`RC-07`, or `answer`."""
    holds_if: str


class JudgeRequest(Contract):
    run_id: str
    agent: str
    """Whose understanding it is."""
    task: str
    """What that agent was told to do."""
    said: str
    """What it said."""
    to_judge: tuple[ToJudge, ...]
    base_commit: str = ""
    deadline_seconds: float | None = None


class Judged(Part):
    item: str = Field(description="As it is called in the request.")
    verdict: Verdict = Field(
        description="`pass` if it holds, `fail` if it does not, `unverifiable` if you cannot tell."
    )
    detail: str = Field(default="", description="What is wrong, so that it can be put right; or why nobody can tell.")


class Judgement(Contract):
    """What a judge answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    items: tuple[Judged, ...] = Field(description="One for each that is to be judged.")
