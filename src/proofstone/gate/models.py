"""The models of the gate: the events of a task, its record, the view and report of a run, and the setup of a run.

Each event is one row of the ledger. Records, views and reports are derived from the events at any time. The setup is
the first row of a run, and a resumed run takes it from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, TypeAdapter

from proofstone.agents.roles.models.gate import (
    ArchitectVerdict,
    AttemptFailure,
    ExecutorResult,
    FailureReason,
    TaskState,
)
from proofstone.common.models import (
    Acceptance,
    Budget,
    BudgetUsage,
    Confidence,
    ConfidenceReason,
    Finding,
    FrozenModel,
    Verdict,
    VerdictDispute,
)
from proofstone.ledger.models import RunConfig
from proofstone.plans.models import Plan


class VerifyRun(FrozenModel):
    """The result of a verify command that Proofstone ran."""

    command: str
    exit_code: int | None
    verdict: Verdict
    flaky: bool = False
    """The command failed, then passed, on the same tree."""
    artifact: str | None = None
    output_tail: str = ""
    """The end of what the command printed."""
    failures: tuple[str, ...] = ()
    """What could be read of its output, if it did not pass: failing tests, diagnostics, an error."""
    duration_ms: int = 0
    passes_on_base: bool = False
    """The command passes without the change as well, and none of its tests depends on the change. It guards against
    regressions and proves nothing about this change.
    """


class CriterionLink(FrozenModel):
    """A done criterion, and the check that shows that it is met."""

    criterion: str
    check: str | None = None
    """The check that shows it; None if only an architect or a person can judge it."""
    command: str = ""
    """The command of that check."""

    @property
    def is_prose(self) -> bool:
        """Whether no check can show that the criterion is met."""
        return self.check is None


class CriterionStatus(StrEnum):
    SHOWN = "shown"
    """A check shows it."""
    JUDGED = "judged"
    """An architect or a person has judged that it is met."""
    UNJUDGED = "unjudged"
    """No check shows it, and nobody has judged it."""
    UNMET = "unmet"
    """A person says that it is not met."""
    OPEN = "open"
    """Its task has not passed."""


class CriterionResult(FrozenModel):
    """A done criterion, with what shows it or who judged it."""

    task: str
    criterion: str
    status: CriterionStatus
    check: str | None = None
    command: str = ""
    judged_by: tuple[str, ...] = ()
    note: str = ""
    """What the person who judged it said."""
    is_added: bool = False
    """Whether a person added it while the run was under way."""


class RequirementResult(FrozenModel):
    """A requirement that a person added to the run, and what became of it."""

    number: int
    text: str
    added_by: str
    tasks: tuple[str, ...] = ()
    """The tasks of which it is a criterion."""
    is_met: bool = False
    detail: str = ""
    """Why it is not met, or who says that it is."""


class CriteriaJudgement(FrozenModel):
    """A person's word about criteria that no check shows and no architect judged."""

    judged_by: str
    holds: bool
    note: str = ""
    criteria: tuple[tuple[str, str], ...]
    """Each with its task; the task is empty for a requirement that no task has."""


class AddedFile(FrozenModel):
    """A file that a task may change although its plan does not declare it."""

    path: str
    reason: str = ""
    added_by: str = "executor"


class Evidence(FrozenModel):
    """What Proofstone observed about one tree, as far as the gate needs it."""

    tree: str
    base_commit: str
    claim: ExecutorResult
    verify: tuple[VerifyRun, ...]
    passing: tuple[str, ...]
    """Distinct checks that passed, without trivial ones."""
    large: bool
    failing: tuple[FailureReason, ...]
    """Required checks that failed or could not be verified, and findings that block."""
    regressions: tuple[str, ...]
    undeclared: tuple[str, ...]
    """Changed files that the task does not declare."""
    changed: tuple[str, ...]
    criteria: tuple[CriterionLink, ...]
    flaky_allowed: bool = False
    confidence: Confidence
    """The confidence in the checks."""
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why that confidence is not high, and what would raise it."""
    granted: tuple[str, ...] = ()
    """Undeclared files that the executor asked for and was allowed to change."""
    accepted: tuple[Acceptance, ...] = ()
    """Findings that a person accepted, and who, how and why."""
    added_files: tuple[AddedFile, ...] = ()
    """Files that were added to the task while it ran."""
    unstable: tuple[str, ...] = ()
    """Checks that pass now and failed on this very tree before."""
    mismatches: tuple[str, ...] = ()
    """Claims of the executor that contradict what Proofstone observed."""


class OverrideAction(StrEnum):
    SKIP = "skip"
    FORCE = "force"


class Override(FrozenModel):
    """A person's decision to bypass the gate for one task. Proofstone never commits such a task."""

    action: OverrideAction
    reason: str
    category: str | None = None
    by: str
    at: str


class AttemptStarted(FrozenModel):
    """An attempt began."""

    kind: Literal["started"] = "started"
    attempt: int
    base_commit: str
    tree: str
    """The tree of the work tree at the start: that of the base, or what the last attempt left."""


class AttemptExecuted(FrozenModel):
    """The executor reported that it is finished, and its work tree was frozen."""

    kind: Literal["executed"] = "executed"
    claim: ExecutorResult
    tree: str
    findings: tuple[Finding, ...] = ()
    """Findings of the freeze: a nested repository, a link that leads out of the tree."""
    artifact: str | None = None
    duration_ms: int = 0
    corrections: int | None = None
    """How often the executor corrected itself after a verify command had failed; None if nobody could count."""


class AttemptChecked(FrozenModel):
    """The checks ran on the exact tree that may be committed, on top of this commit."""

    kind: Literal["checked"] = "checked"
    evidence: Evidence
    commit: str
    """The commit object of that tree. No branch refers to it yet."""
    rules: ArchitectVerdict
    """The verdict of the rules."""


class AttemptApproved(FrozenModel):
    """All architects approved the attempt."""

    kind: Literal["approved"] = "approved"
    verdicts: tuple[ArchitectVerdict, ...]


class ReviewEscalated(FrozenModel):
    """An architect did not decide and asked for a person. Nobody else is asked about this attempt."""

    kind: Literal["asked"] = "asked"
    verdict: ArchitectVerdict


class ReviewFailed(FrozenModel):
    """An architect gave no verdict. It is asked again, and the executor's attempt stands."""

    kind: Literal["unanswered"] = "unanswered"
    failure: AttemptFailure


class ReviewRepeated(FrozenModel):
    """A person has the architect asked again."""

    kind: Literal["ask-again"] = "ask-again"
    by: str
    seconds: float | None = None
    """The deadline that the person gave to it."""


class BranchMoved(FrozenModel):
    """The branch moved since the checks ran, so the task is checked again on top of `onto`."""

    kind: Literal["moved"] = "moved"
    onto: str


class CriteriaAdded(FrozenModel):
    """A person added a requirement after the checks ran, so the task is checked and reviewed again with it."""

    kind: Literal["amended"] = "amended"
    number: int


class AttemptFailed(FrozenModel):
    """The attempt failed."""

    kind: Literal["failed"] = "failed"
    failure: AttemptFailure
    tree: str | None = None
    """What the attempt left, from which the next one continues."""
    claim: ExecutorResult | None = None
    evidence: Evidence | None = None
    """What the checks observed, if it was they that failed."""


class TaskBlocked(FrozenModel):
    """The task cannot continue without a person."""

    kind: Literal["blocked"] = "blocked"
    error: str
    tree: str | None = None
    """What the attempt left nevertheless."""
    disputes: tuple[VerdictDispute, ...] = ()
    """What the executor disputes, if that is why a person is asked."""
    waits_for: tuple[str, ...] = ()
    """Unfinished tasks that it says are missing. They are run first, then this one again."""


GATE_POLICY: Final = "gate:policy"
"""The value of `Retried.by` for an attempt that the gate itself repeats. No person can have this name."""


class TaskRetried(FrozenModel):
    """Another attempt may begin."""

    kind: Literal["retried"] = "retried"
    by: str
    """`POLICY`, or the person who asked for it. A person's attempt is beyond the bound."""
    note: str = ""
    seconds: float | None = None
    """The deadline that the person gave to its steps."""
    accepted: tuple[Acceptance, ...] = ()
    """What the person accepted with it: changes of a test that they agree is wrong."""


class TaskAccepted(FrozenModel):
    """A person accepted the findings that refused the last attempt. It is checked again."""

    kind: Literal["accepted"] = "accepted"
    accepted: tuple[Acceptance, ...]


class TaskOverridden(FrozenModel):
    """A person bypassed the gate for this task."""

    kind: Literal["overridden"] = "overridden"
    override: Override
    has_work: bool = True
    """Whether the task has left anything that a person could commit."""


class TaskConfirmed(FrozenModel):
    """A person did, looked at or decided what a checkpoint asks for, or finished a task themselves."""

    kind: Literal["confirmed"] = "confirmed"
    by: str
    note: str = ""
    commit: str | None = None
    """The person's own commit, in place of a task that they did themselves."""
    is_left_out: bool = False
    """Whether the run goes on without the work of a task that was skipped or forced."""


class TaskCommitted(FrozenModel):
    """The verified commit was published on the branch."""

    kind: Literal["committed"] = "committed"
    commit: str
    tree: str


TaskEvent = Annotated[
    AttemptStarted
    | AttemptExecuted
    | AttemptChecked
    | AttemptApproved
    | ReviewEscalated
    | ReviewFailed
    | ReviewRepeated
    | BranchMoved
    | CriteriaAdded
    | AttemptFailed
    | TaskBlocked
    | TaskRetried
    | TaskAccepted
    | TaskOverridden
    | TaskConfirmed
    | TaskCommitted,
    Field(discriminator="kind"),
]
TASK_EVENTS: TypeAdapter[TaskEvent] = TypeAdapter(TaskEvent)


class TaskRecord(FrozenModel):
    """The state of one task: the sum of its events."""

    id: str
    checkpoint: bool = False
    state: TaskState = TaskState.PENDING
    attempt: int = 0
    failures: tuple[AttemptFailure, ...] = ()
    base_commit: str | None = None
    tree: str | None = None
    """The latest tree of the work tree."""
    claim: ExecutorResult | None = None
    evidence: Evidence | None = None
    candidate: str | None = None
    """The commit that will be published if the task is approved."""
    verdicts: tuple[ArchitectVerdict, ...] = ()
    commit: str | None = None
    override: Override | None = None
    settled_by: str | None = None
    """The person's own commit, in place of a task that they did themselves; "" if the run goes on without it."""
    has_work: bool = True
    """Whether a task that was skipped or forced has left anything to commit."""
    asked: ArchitectVerdict | None = None
    """The verdict of an architect who asks for a person."""
    review_failures: tuple[AttemptFailure, ...] = ()
    """Why the architect gave no verdict on the current attempt, each time that it was asked."""
    extra_reviews: int = 0
    """How often a person had the architect asked again."""
    blocked_by: str = ""
    waits_for: tuple[str, ...] = ()
    """Tasks that are run first, because the executor says that they are missing."""
    deadline_seconds: float | None = None
    """The deadline that a person gave to the steps of this task, if it is longer than the usual one."""
    moves: int = 0
    """How often this attempt was checked again because other tasks were committed first."""
    extra_attempts: int = 0
    """Attempts beyond the bound that a person asked for."""
    note: str = ""
    """What a person wants the next attempt to do differently."""
    accepted: tuple[Acceptance, ...] = ()
    """What a person accepted. An acceptance without a subject holds for the attempt that it was given for."""
    disputes: tuple[VerdictDispute, ...] = ()
    """What the executor disputes and a person has not decided yet."""

    @property
    def is_finished(self) -> bool:
        """Whether tasks that depend on this one may start."""
        if self.state is TaskState.APPROVED:
            return self.commit is not None or self.checkpoint
        if self.override is not None and self.checkpoint:
            return True
        return self.settled_by is not None

    @property
    def concerns(self) -> tuple[str, ...]:
        """Why the confidence in the checks is not high, and the concerns of the architects."""
        reasons = self.evidence.reasons if self.evidence else ()
        concerns = (concern for verdict in self.verdicts for concern in verdict.concerns)
        return (*(reason.reason for reason in reasons), *concerns)


class RunOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    HALTED = "halted"
    NEEDS_HUMAN = "needs_human"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CANCELLED = "cancelled"


class TaskStep(FrozenModel):
    """An event of a task with its time."""

    seq: int = 0
    """Number of the ledger row."""
    at: str
    attempt: int
    kind: str
    """Kind of the event: `started`, `executed`, `checked` …"""
    state: TaskState
    """State of the task after the event."""


class TaskView(FrozenModel):
    """A task as `proofstone status` shows it."""

    record: TaskRecord
    steps: tuple[TaskStep, ...] = ()
    waits_for: tuple[str, ...] = ()
    """Unfinished tasks that this one depends on."""
    asks: str = ""
    """The open question for a person, if any: a checkpoint, a review, what to do about a failure."""
    work_tree: str | None = None
    """Where a person works on the task, while they do."""
    confidence: Confidence | None = None
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""
    criteria: tuple[CriterionResult, ...] = ()


class RunView(FrozenModel):
    """A run as `proofstone status` shows it."""

    run_id: str
    plan: Plan
    plan_path: str
    repository: str
    branch: str
    base_commit: str
    executor: str
    architect: str
    started_at: str
    updated_at: str
    running: bool
    """Whether a process is working on the run now."""
    outcome: RunOutcome | None
    """None while the run continues, or if it was interrupted."""
    interrupted: bool
    reason: str
    """Why the outcome is not `passed`, in one line."""
    tasks: tuple[TaskView, ...]
    must_haves: tuple[MustHaveResult, ...] = ()
    requirements: tuple[RequirementResult, ...] = ()
    """What people have added since the run began."""
    asks: str = ""
    """The open question about the run as a whole: the criteria that nobody has judged."""
    warnings: tuple[str, ...] = ()
    spent: BudgetUsage = BudgetUsage()
    """What agents have spent so far."""
    budget: Budget = Budget()
    ledger: str

    @property
    def state(self) -> str:
        """The outcome of the run, or whether it is running or was interrupted, in one word."""
        if self.running:
            return "running"
        if self.outcome is not None:
            return self.outcome.value
        return "interrupted" if self.interrupted else "not finished"

    def get_task(self, id: str) -> TaskView:
        """Return the view of the task with this id."""
        return next(task for task in self.tasks if task.record.id == id)


class MustHaveResult(FrozenModel):
    """The result for one of the plan's must-haves, checked after the last task."""

    what: str
    holds: bool | None
    """None if only a person or a model can judge it."""
    detail: str = ""


class TaskReport(FrozenModel):
    """A task in the report of a run."""

    id: str
    name: str
    state: TaskState
    attempts: int
    confidence: Confidence | None
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""
    commit: str | None
    failures: tuple[AttemptFailure, ...]
    concerns: tuple[str, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    """Findings that a person accepted, and who, how and why."""
    disputes: tuple[VerdictDispute, ...] = ()
    """What the executor disputes and a person has not decided yet."""
    criteria: tuple[CriterionResult, ...] = ()
    override: Override | None = None
    asks: str = ""


class GateReport(FrozenModel):
    """The document of `proofstone gate --json`."""

    run_id: str
    outcome: RunOutcome
    reason: str
    """Why the outcome is not `passed`, in one line."""
    confidence: Confidence | None
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""
    tasks: tuple[TaskReport, ...]
    commit: str | None
    """The last commit that the run made."""
    branch: str
    must_haves: tuple[MustHaveResult, ...] = ()
    requirements: tuple[RequirementResult, ...] = ()
    asks: str = ""
    """The open question about the run as a whole."""
    bundle: str | None
    """SUMMARY.md, if it was written."""
    state: str
    """STATE.md."""
    ledger: str
    cost: Mapping[str, float] = {}
    notes: tuple[str, ...] = ()
    audit: tuple[Mapping[str, JsonValue], ...] = ()
    """What the auditor found in the run, once a session with it has ended."""


RunView.model_rebuild()


HookMode = Literal["refuse", "run", "skip"]


class GateSetup(RunConfig):
    """What a run of the gate was started with."""

    command: Literal["gate"] = "gate"
    plan_path: str
    plan_artifact: str
    """The content of the plan: editing the file does not change a run that has begun."""
    branch: str
    executor: str
    architect: str
    fallbacks: Mapping[str, tuple[str, ...]] = {}
    """By role: the agents to ask if the first one does not answer."""
    budget: Budget = Budget()
    """What agents may spend."""
    slots: int
    minutes: float
    hooks: HookMode
    skipped_hooks: tuple[str, ...] = ()
    sign: bool
    author_name: str
    author_email: str
    require_sandbox: bool = False
    weights: Mapping[str, float] = {}
    """The weights and thresholds of the controller."""
    asks: bool = False
    """Whether executors must show that they understand the task."""
    defers_criteria: bool = False
    """Whether the reviewers of the parent run judge the criteria that no check shows."""
    heldout_files: str | None = None
    sandbox: str
    notes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The plan that this run is about."""
        return self.plan_path
