"""The evidence bundle: everything that a person is shown of a run, and for each value the rows it comes from.

It is made from the ledger and from nothing else, so that whoever has the ledger has the bundle.
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
    """Something that the ledger says."""

    rows: tuple[int, ...]
    """Sequence numbers of the ledger's rows that say it."""


class Subject(Sourced):
    """What was asked for, and where."""

    run_id: str
    command: Literal["run", "gate"]
    asked: str
    """The person's words; of a run of the gate, where its plan was."""
    version: str
    repository: str
    branch: str
    base_commit: str
    lane: str = ""
    lane_reason: str = ""
    mode: str = ""
    agents: Mapping[str, str] = {}
    """Who served whom, as it was configured."""
    notes: tuple[str, ...] = ()
    started_at: str
    updated_at: str


class Ending(Sourced):
    outcome: RunOutcome | None
    """None: it has not ended."""
    reason: str = ""
    confidence: Confidence | None = None
    reasons: tuple[str, ...] = ()
    """Why the confidence is no higher."""
    raises: tuple[str, ...] = ()
    """What would raise it."""


class Child(Sourced):
    """A run of its own that was a part of this one."""

    run_id: str
    kind: Literal["plan", "gate"]
    iteration: int
    outcome: str = ""
    reason: str = ""


class Probe(Sourced):
    """A run beside a check, on a tree that was made for it: it shows whether the check can be believed, and many of
    them must fail."""

    what: str
    state: Verdict


class CheckedLine(Sourced):
    """One check, before the change and after it."""

    name: str
    tool: str
    command: str = ""
    tier: int | None = None
    before: Verdict | None = None
    """On the base; None: it was not run there."""
    after: Verdict
    exit_code: int | None = None
    said: str = ""
    """The first line of its output, or why it is so."""
    assurance: Assurance | None = None
    duration_ms: int | None = None
    artifact: str | None = None
    reused: bool = False
    probes: tuple[Probe, ...] = ()

    @property
    def regressed(self) -> bool:
        return self.before is Verdict.PASS and self.after is not Verdict.PASS


class CheckedTree(Sourced):
    """The checks of one tree: that with which a task has ended, or the merged one."""

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
    """Whether it was there in the end."""


class ReviewSeen(Sourced):
    """One reviewer's word."""

    scope: Scope
    focus: ReviewFocus
    round: int
    verdict: ReviewVerdict | None
    """None: nobody answered."""
    severity: Severity | None = None
    """The gravest of what was found."""
    findings: Mapping[Severity, int] | None = None
    """None: the answer itself is not on record."""
    summary: str = ""
    model: str = ""


class LossSeen(Sourced):
    """Where a task, or the run, stood after an attempt that did not pass."""

    of: str
    """`task-02`, `run`; tasks of later iterations with their number: `2/task-01`."""
    number: int
    """The attempt, or the iteration."""
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
    """What the person wrote."""


class CostLine(Sourced):
    role: str
    model: str
    """As it calls itself; empty: nobody has said who it was."""
    dispatches: int
    spent: Spent


class VerificationSpent(Sourced):
    """On asking agents whether they know what they are doing. The lines of the cost hold it already."""

    questions: int
    judgements: int
    spent: Spent
    share: float | None
    """Of all tokens, from 0 to 1; None: there are none, or nobody has counted them all."""


class StepSeen(Sourced):
    part: str = ""
    """Of which part of the run: `plan 1`, `gate 2`; empty: of the run itself."""
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
    """`added`, `modified`, `deleted`; empty: the ledger does not say."""
    risk: RiskMark
    by_path_alone: bool = False
    """The risk is told from the path; what was changed in the file is not on record."""


class IssueKnown(Sourced):
    """What was found and stands at the end."""

    severity: Severity
    title: str
    where: tuple[str, ...] = ()
    source: str


class IssueFixed(Sourced):
    """What was found, and is gone."""

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
    """The last row that the bundle rests on. Its hash is bound to all rows before it."""

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
    """Whether one model was all the reviewers; None: nobody reviewed, or nobody has said who they are."""
    losses: tuple[LossSeen, ...] = ()
    overrides: tuple[OverrideSeen, ...] = ()
    approvals: tuple[ApprovalSeen, ...] = ()
    costs: tuple[CostLine, ...] = ()
    dispatches: int = 0
    verification: VerificationSpent | None = None
    """None: nothing was spent on it."""
    timeline: tuple[StepSeen, ...] = ()
    changed: tuple[ChangedFile, ...] = ()
    known_issues: tuple[IssueKnown, ...] = ()
    fixed_issues: tuple[IssueFixed, ...] = ()
    commits: tuple[CommitMade, ...] = ()
    """In the order in which they were made."""
    rollback: str = ""
    """The command that takes them back; empty: nothing was committed."""
    head: LedgerHead

    @property
    def spent(self) -> Spent:
        return sum((line.spent for line in self.costs), Spent())
