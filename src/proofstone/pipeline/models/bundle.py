"""The evidence bundle: everything that a user sees of a run, with the ledger rows that each value comes from.

It is made from the ledger alone, so everyone who has the ledger can make it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from proofstone.agents.roles.models.gate import ArchitectVerdict, Direction, Failure, TaskState
from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import ReviewFocus, Scope
from proofstone.common.models import Assurance, Confidence, Contract, ReviewVerdict, Severity, Spent, Verdict
from proofstone.gate.models import RunOutcome
from proofstone.ledger.models import StepStatus


class Sourced(Contract):
    """A value from the ledger."""

    rows: tuple[int, ...]
    """The sequence numbers of the ledger rows that it comes from."""


class Subject(Sourced):
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


class Ending(Sourced):
    outcome: RunOutcome | None
    """None if the run has not ended."""
    reason: str = ""
    confidence: Confidence | None = None
    reasons: tuple[str, ...] = ()
    """Why the confidence is not higher."""
    raises: tuple[str, ...] = ()
    """What would raise the confidence."""


class Child(Sourced):
    """A child run."""

    run_id: str
    kind: Literal["plan", "gate"]
    iteration: int
    outcome: str = ""
    reason: str = ""


class Probe(Sourced):
    """An additional run of a check, on a tree made for this purpose. It shows whether the check can be trusted, and
    many probes must fail.
    """

    what: str
    state: Verdict


class CheckedLine(Sourced):
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
    probes: tuple[Probe, ...] = ()

    @property
    def regressed(self) -> bool:
        return self.before is Verdict.PASS and self.after is not Verdict.PASS


class CheckedTree(Sourced):
    """The checks of one tree: the final tree of a task, or the merged tree."""

    run_id: str
    iteration: int = 1
    task: str
    attempt: int
    tree: str
    lines: tuple[CheckedLine, ...]


class TaskEnding(Sourced):
    run_id: str
    iteration: int = 1
    id: str
    name: str = ""
    state: TaskState
    attempts: int
    confidence: Confidence | None = None
    commit: str | None = None
    tree: str | None = None
    changed: tuple[str, ...] = ()
    large: bool = False
    failures: tuple[Failure, ...] = ()
    verdicts: tuple[ArchitectVerdict, ...] = ()
    concerns: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.state is TaskState.APPROVED


class RegressionSeen(Sourced):
    task: str
    what: str
    stands: bool
    """Whether the regression remained at the end."""


class ReviewSeen(Sourced):
    """The verdict of one reviewer."""

    scope: Scope
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


class LossSeen(Sourced):
    """The measurements of a task, or of the run, after an attempt that did not pass."""

    of: str
    """`task-02`, `run`; tasks of later iterations have a number: `2/task-01`."""
    number: int
    """The number of the attempt or of the iteration."""
    direction: Direction
    text: str = ""


class OverrideSeen(Sourced):
    task: str
    action: str
    category: str = ""
    reason: str
    by: str
    at: str


class ApprovalSeen(Sourced):
    gate: str
    task: str = ""
    option: str
    by: str
    at: str
    mode: str = ""
    auto_selected: bool = False
    words: str = ""
    """The user's own words."""


class CostLine(Sourced):
    role: str
    model: str
    """The model's own name; empty if it is unknown."""
    dispatches: int
    spent: Spent


class VerificationSpent(Sourced):
    """What was spent on asking agents whether they understand their task. The cost lines include it."""

    questions: int
    judgements: int
    spent: Spent
    share: float | None
    """The share of all tokens, from 0 to 1; None if there are none, or if not all were counted."""


class StepSeen(Sourced):
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


class ChangedFile(Sourced):
    path: str
    change: str = ""
    """`added`, `modified`, `deleted`; empty if the ledger does not record it."""
    risk: RiskMark
    by_path_alone: bool = False
    """Whether the risk is derived from the path alone, because the change of the file is not recorded."""


class IssueKnown(Sourced):
    """A finding that remains at the end."""

    severity: Severity
    title: str
    where: tuple[str, ...] = ()
    source: str


class IssueFixed(Sourced):
    """A finding that was fixed."""

    severity: Severity | None = None
    title: str
    source: str
    how: str


class CommitMade(Sourced):
    commit: str
    tree: str
    parent: str
    task: str = ""


class LedgerHead(Contract):
    """The last row that the bundle is based on. Its hash is bound to all rows before it."""

    ledger_id: str
    seq: int
    hash: str


class Bundle(Contract):
    schema_version: Literal["1"] = "1"
    subject: Subject
    ending: Ending
    children: tuple[Child, ...] = ()
    tasks: tuple[TaskEnding, ...] = ()
    checks: tuple[CheckedTree, ...] = ()
    regressions: tuple[RegressionSeen, ...] = ()
    reviews: tuple[ReviewSeen, ...] = ()
    one_model: bool | None = None
    """Whether all reviewers were the same model; None if there was no review, or if the models are unknown."""
    losses: tuple[LossSeen, ...] = ()
    overrides: tuple[OverrideSeen, ...] = ()
    approvals: tuple[ApprovalSeen, ...] = ()
    costs: tuple[CostLine, ...] = ()
    dispatches: int = 0
    verification: VerificationSpent | None = None
    """None if nothing was spent on it."""
    timeline: tuple[StepSeen, ...] = ()
    changed: tuple[ChangedFile, ...] = ()
    known_issues: tuple[IssueKnown, ...] = ()
    fixed_issues: tuple[IssueFixed, ...] = ()
    commits: tuple[CommitMade, ...] = ()
    """The commits in the order in which they were made."""
    rollback: str = ""
    """The command that reverts the commits; empty if nothing was committed."""
    head: LedgerHead

    @property
    def spent(self) -> Spent:
        return sum((line.spent for line in self.costs), Spent())
