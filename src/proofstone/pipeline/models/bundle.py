"""The evidence bundle: everything that a user sees of a run, with the ledger rows that each value comes from.

It is made from the ledger alone, so everyone who has the ledger can make it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from proofstone.agents.roles.models.gate import ArchitectVerdict, AttemptFailure, RetryDirection, TaskState
from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import ReviewFocus, ReviewScope
from proofstone.common.models import (
    Acceptance,
    Assurance,
    BudgetUsage,
    Confidence,
    ConfidenceReason,
    FrozenModel,
    ReviewVerdict,
    Severity,
    Verdict,
    VerdictDispute,
)
from proofstone.gate.models import CriterionStatus, RunOutcome
from proofstone.ledger.models import StepStatus


class SourcedValue(FrozenModel):
    """A value from the ledger."""

    rows: tuple[int, ...]
    """The sequence numbers of the ledger rows that it comes from."""


class BundleSubject(SourcedValue):
    """The request, and where it was made."""

    run_id: str
    command: Literal["run", "gate"]
    asked: str
    """The user's own words; for a run of the gate, the path of its plan."""
    version: str
    repository: str
    branch: str
    base_commit: str
    lane: str = ""
    lane_reason: str = ""
    mode: str = ""
    agents: Mapping[str, str] = {}
    """The configured agent of each role."""
    notes: tuple[str, ...] = ()
    started_at: str
    updated_at: str


class RunEnding(SourcedValue):
    outcome: RunOutcome | None
    """None if the run has not ended."""
    reason: str = ""
    confidence: Confidence | None = None
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""


class ChildRun(SourcedValue):
    """A child run."""

    run_id: str
    kind: Literal["plan", "gate"]
    iteration: int
    outcome: str = ""
    reason: str = ""


class CheckProbe(SourcedValue):
    """An additional run of a check, on a tree made for this purpose. It shows whether the check can be trusted, and
    many probes must fail.
    """

    what: str
    state: Verdict


class CheckComparison(SourcedValue):
    """A check, before and after the change."""

    name: str
    tool: str
    command: str = ""
    tier: int | None = None
    before: Verdict | None = None
    """The verdict on the base; None if the check was not run there."""
    after: Verdict
    exit_code: int | None = None
    said: str = ""
    """The first line of the output, or the reason for the verdict."""
    assurance: Assurance | None = None
    duration_ms: int | None = None
    artifact: str | None = None
    reused: bool = False
    probes: tuple[CheckProbe, ...] = ()

    @property
    def is_regression(self) -> bool:
        return self.before is Verdict.PASS and self.after is not Verdict.PASS


class TreeChecks(SourcedValue):
    """The checks of one tree: the final tree of a task, or the merged tree."""

    run_id: str
    iteration: int = 1
    task: str
    attempt: int
    tree: str
    lines: tuple[CheckComparison, ...]


class BundleCriterion(SourcedValue):
    """A criterion of a task, with the check that shows it or who judged it."""

    task: str
    criterion: str
    status: CriterionStatus
    check: str | None = None
    command: str = ""
    result: str = ""
    """The result of the check, or what was said about the criterion."""


class BundleGap(SourcedValue):
    """Something that was overridden, cut short, or looked at by nobody."""

    text: str


class BundleRequirement(SourcedValue):
    """A requirement that the user added to the run."""

    text: str
    is_met: bool
    detail: str = ""


class BundleAuditFinding(SourcedValue):
    """What the auditor finds in the run or one of its parts."""

    run_id: str
    kind: str
    rule: str
    role: str
    task: str = ""
    detail: str
    caught: str = ""
    """How the engine stopped it; empty if nothing did."""


class BundleClaim(SourcedValue):
    """What an executor said about its own work at the end of an attempt. It proves nothing."""

    task: str
    attempt: int
    status: str
    statement: str = ""
    """Its own words, or the error that it reports."""
    exit_code: int | None = None
    """The exit code that it claims for its own run of the verify command."""
    caught: str = ""
    """Why the attempt did not pass; empty if it did, or if nothing was decided yet."""


class TaskEnding(SourcedValue):
    run_id: str
    iteration: int = 1
    id: str
    name: str = ""
    state: TaskState
    attempts: int
    confidence: Confidence | None = None
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""
    commit: str | None = None
    tree: str | None = None
    changed: tuple[str, ...] = ()
    large: bool = False
    corrections: int | None = None
    """How often the executor corrected itself in its last attempt; None if nobody could count."""
    failures: tuple[AttemptFailure, ...] = ()
    verdicts: tuple[ArchitectVerdict, ...] = ()
    concerns: tuple[str, ...] = ()
    added_files: tuple[str, ...] = ()
    """Files that were added to the task while it ran, each with who added it and why."""
    accepted: tuple[Acceptance, ...] = ()
    """Findings that a person accepted, and who, how and why."""
    disputes: tuple[VerdictDispute, ...] = ()
    """What the executor disputes and a person has not decided yet."""

    @property
    def passed(self) -> bool:
        return self.state is TaskState.APPROVED


class BundleRegression(SourcedValue):
    task: str
    what: str
    stands: bool
    """Whether the regression remained at the end."""


class BundleReview(SourcedValue):
    """The verdict of one reviewer."""

    scope: ReviewScope
    focus: ReviewFocus
    round: int
    verdict: ReviewVerdict | None
    """None if the reviewer gave no answer."""
    severity: Severity | None = None
    """The highest severity of the findings."""
    findings: Mapping[Severity, int] | None = None
    """None if the answer itself is not recorded."""
    summary: str = ""
    model: str = ""


class BundleLoss(SourcedValue):
    """The measurements of a task, or of the run, after an attempt that did not pass."""

    of: str
    """`task-02`, `run`; tasks of later iterations have a number: `2/task-01`."""
    number: int
    """The number of the attempt or of the iteration."""
    direction: RetryDirection
    text: str = ""


class BundleOverride(SourcedValue):
    task: str
    action: str
    category: str = ""
    reason: str
    by: str
    at: str


class BundleApproval(SourcedValue):
    gate: str
    task: str = ""
    option: str
    by: str
    at: str
    mode: str = ""
    auto_selected: bool = False
    words: str = ""
    """The user's own words."""


class CostLine(SourcedValue):
    role: str
    model: str
    """The model's own name; empty if it is unknown."""
    dispatches: int
    spent: BudgetUsage


class SupervisionCost(SourcedValue):
    """What was spent on asking agents whether they understand their task. The cost lines include it."""

    questions: int
    judgements: int
    spent: BudgetUsage
    share: float | None
    """The share of all tokens, from 0 to 1; None if there are none, or if not all were counted."""


class TimelineStep(SourcedValue):
    part: str = ""
    """The part of the run: `plan 1`, `gate 2`; empty for the run itself."""
    step: str
    agent: str
    instance: str = ""
    started_at: str
    completed_at: str | None
    status: StepStatus
    dispatches: int = 1
    retries: int = 0
    notes: str = ""


class BundledFile(SourcedValue):
    path: str
    change: str = ""
    """`added`, `modified`, `deleted`; empty if the ledger does not record it."""
    risk: RiskMark
    by_path_alone: bool = False
    """Whether the risk is derived from the path alone, because the change of the file is not recorded."""


class RemainingIssue(SourcedValue):
    """A finding that remains at the end."""

    severity: Severity
    title: str
    where: tuple[str, ...] = ()
    source: str


class FixedIssue(SourcedValue):
    """A finding that was fixed."""

    severity: Severity | None = None
    title: str
    source: str
    how: str


class BundleCommit(SourcedValue):
    commit: str
    tree: str
    parent: str
    task: str = ""


class LedgerHead(FrozenModel):
    """The last row that the bundle is based on. Its hash is bound to all rows before it."""

    ledger_id: str
    seq: int
    hash: str


class EvidenceBundle(FrozenModel):
    schema_version: Literal["1"] = "1"
    subject: BundleSubject
    ending: RunEnding
    children: tuple[ChildRun, ...] = ()
    tasks: tuple[TaskEnding, ...] = ()
    criteria: tuple[BundleCriterion, ...] = ()
    requirements: tuple[BundleRequirement, ...] = ()
    gaps: tuple[BundleGap, ...] = ()
    audit: tuple[BundleAuditFinding, ...] = ()
    claims: tuple[BundleClaim, ...] = ()
    """What the executors said about their work, attempt by attempt."""
    checks: tuple[TreeChecks, ...] = ()
    regressions: tuple[BundleRegression, ...] = ()
    reviews: tuple[BundleReview, ...] = ()
    one_model: bool | None = None
    """Whether all reviewers were the same model; None if there was no review, or if the models are unknown."""
    losses: tuple[BundleLoss, ...] = ()
    overrides: tuple[BundleOverride, ...] = ()
    approvals: tuple[BundleApproval, ...] = ()
    costs: tuple[CostLine, ...] = ()
    dispatches: int = 0
    verification: SupervisionCost | None = None
    """None if nothing was spent on it."""
    timeline: tuple[TimelineStep, ...] = ()
    changed: tuple[BundledFile, ...] = ()
    known_issues: tuple[RemainingIssue, ...] = ()
    fixed_issues: tuple[FixedIssue, ...] = ()
    commits: tuple[BundleCommit, ...] = ()
    """The commits in the order in which they were made."""
    committed_gates: tuple[str, ...] = ()
    """The task gates whose tasks are in the commits."""
    rollback: str = ""
    """The command that reverts the commits; empty if nothing was committed."""
    head: LedgerHead

    @property
    def spent(self) -> BudgetUsage:
        return sum((line.spent for line in self.costs), BudgetUsage())

    @property
    def history(self) -> tuple[str, ...]:
        """The commits, after the parent of the first one; empty if nothing was committed."""
        return (*(commit.parent for commit in self.commits[:1]), *(commit.commit for commit in self.commits))

    @property
    def changed_paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.changed)
