"""What happens to a task at the gate, and what is known of it. Each event is one row of the ledger.

A run of the gate, as people and programs see it: derived from the ledger, at any time.

What a run of the gate was started with. It is the first row of the run, and a resumed run takes it from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from proofstone.agents.roles.models.gate import ArchitectVerdict, ExecutorResult, Failure, Reason, TaskState
from proofstone.common.models import Budget, Confidence, Contract, Finding, Spent, Verdict
from proofstone.ledger.models import BegunSetup
from proofstone.plans.models import Plan


class VerifyRun(Contract):
    """The verify command, as the engine ran it."""

    command: str
    exit_code: int | None
    verdict: Verdict
    flaky: bool = False
    """Failed, then passed, on the same tree."""
    artifact: str | None = None


class CriterionLink(Contract):
    """What shows that a done criterion is met."""

    criterion: str
    check: str | None = None
    """The check that shows it; None: only an architect's word can."""

    @property
    def is_prose(self) -> bool:
        return self.check is None


class Evidence(Contract):
    """What the engine saw of one tree, as far as the gate asks for it."""

    tree: str
    base_commit: str
    claim: ExecutorResult
    verify: tuple[VerifyRun, ...]
    passing: tuple[str, ...]
    """Distinct checks that passed, without trivial ones."""
    large: bool
    failing: tuple[Reason, ...]
    """Required checks that failed or could not be verified, and findings that refuse."""
    regressions: tuple[str, ...]
    undeclared: tuple[str, ...]
    """Changed files that the task does not declare."""
    changed: tuple[str, ...]
    criteria: tuple[CriterionLink, ...]
    flaky_allowed: bool = False
    confidence: Confidence
    caps: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    """Files beyond the declared ones that the executor asked for and was allowed to change."""
    mismatches: tuple[str, ...] = ()
    """Specific claims of the executor that the engine's own observation contradicts."""


class OverrideAction(StrEnum):
    SKIP = "skip"
    FORCE = "force"


class Override(Contract):
    """A person set the gate aside for one task. It is never committed by us."""

    action: OverrideAction
    reason: str
    category: str | None = None
    by: str
    at: str


class Started(Contract):
    kind: Literal["started"] = "started"
    attempt: int
    base_commit: str
    tree: str
    """What the work tree held at the beginning: the base's, or what the last attempt left."""


class Executed(Contract):
    """The executor says that it is finished, and its work tree was frozen."""

    kind: Literal["executed"] = "executed"
    claim: ExecutorResult
    tree: str
    findings: tuple[Finding, ...] = ()
    """What freezing showed: a repository inside, a link that leads out."""
    artifact: str | None = None
    duration_ms: int = 0


class Checked(Contract):
    """The checks ran on the very tree that may be committed, onto this commit."""

    kind: Literal["checked"] = "checked"
    evidence: Evidence
    commit: str
    """The commit object of that tree, which no branch names yet."""
    rules: ArchitectVerdict
    """The word of the architect that is made of rules."""


class Approved(Contract):
    kind: Literal["approved"] = "approved"
    verdicts: tuple[ArchitectVerdict, ...]


class Asked(Contract):
    """An architect does not decide and asks for a person: nobody else is asked about this attempt."""

    kind: Literal["asked"] = "asked"
    verdict: ArchitectVerdict


class Moved(Contract):
    """What it was checked on is no longer where it would be committed: it is checked again there."""

    kind: Literal["moved"] = "moved"
    onto: str


class AttemptFailed(Contract):
    kind: Literal["failed"] = "failed"
    failure: Failure
    tree: str | None = None
    """What the attempt left, for the next one to go on from."""
    claim: ExecutorResult | None = None


class Blocked(Contract):
    kind: Literal["blocked"] = "blocked"
    error: str
    tree: str | None = None
    """What it has left all the same."""


POLICY: Final = "gate:policy"
"""By whom an attempt is repeated that the gate itself repeats: no person can be called that."""


class Retried(Contract):
    kind: Literal["retried"] = "retried"
    by: str
    """`POLICY`, or the person who asked for it: then it is an attempt beyond the bound."""
    note: str = ""


class Overridden(Contract):
    kind: Literal["overridden"] = "overridden"
    override: Override


class Confirmed(Contract):
    """The person did, saw or decided what a checkpoint asks for."""

    kind: Literal["confirmed"] = "confirmed"
    by: str
    note: str = ""
    commit: str | None = None
    """Theirs, in place of a task that they took upon themselves."""


class Committed(Contract):
    kind: Literal["committed"] = "committed"
    commit: str
    tree: str


TaskEvent = Annotated[
    Started
    | Executed
    | Checked
    | Approved
    | Asked
    | Moved
    | AttemptFailed
    | Blocked
    | Retried
    | Overridden
    | Confirmed
    | Committed,
    Field(discriminator="kind"),
]
TASK_EVENTS: TypeAdapter[TaskEvent] = TypeAdapter(TaskEvent)


class TaskRecord(Contract):
    """Everything that the gate knows of one task: the sum of its events."""

    id: str
    checkpoint: bool = False
    state: TaskState = TaskState.PENDING
    attempt: int = 0
    failures: tuple[Failure, ...] = ()
    base_commit: str | None = None
    tree: str | None = None
    """What the work tree held last."""
    claim: ExecutorResult | None = None
    evidence: Evidence | None = None
    candidate: str | None = None
    """The commit that will be published if it is approved."""
    verdicts: tuple[ArchitectVerdict, ...] = ()
    commit: str | None = None
    override: Override | None = None
    settled_by: str | None = None
    """The person's own commit, in place of what they took upon themselves."""
    asked: ArchitectVerdict | None = None
    """The word of an architect who asks for a person."""
    blocked_by: str = ""
    moves: int = 0
    """How often this attempt was checked again because others were committed before it."""
    extra_attempts: int = 0
    """Attempts that a person asked for beyond the bound."""
    note: str = ""
    """What a person said is to be done differently."""

    @property
    def finished(self) -> bool:
        """Whether tasks that depend on it may start."""
        if self.state is TaskState.APPROVED:
            return self.commit is not None or self.checkpoint
        return self.settled_by is not None

    @property
    def concerns(self) -> tuple[str, ...]:
        caps = self.evidence.caps if self.evidence else ()
        return (*caps, *(concern for verdict in self.verdicts for concern in verdict.concerns))


class RunOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    HALTED = "halted"
    NEEDS_HUMAN = "needs_human"
    BUDGET_EXHAUSTED = "budget_exhausted"


class Step(Contract):
    """When something happened to a task."""

    seq: int = 0
    """Of the ledger's row."""
    at: str
    attempt: int
    kind: str
    """The event's: `started`, `executed`, `checked` …"""
    state: TaskState
    """What the task was after it."""


class TaskView(Contract):
    record: TaskRecord
    steps: tuple[Step, ...] = ()
    waits_for: tuple[str, ...] = ()
    """Tasks that it still waits for."""
    asks: str = ""
    """What a person is asked, if anything: a checkpoint, a review, what to do about a failure."""
    work_tree: str | None = None
    """Where a person works on it, while they do."""
    confidence: Confidence | None = None


class RunView(Contract):
    """Everything that is known of a run."""

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
    """A process is at work on it now."""
    outcome: RunOutcome | None
    """None while it goes on, or when it was interrupted."""
    interrupted: bool
    reason: str
    """Why the outcome is not `passed`, in one line."""
    tasks: tuple[TaskView, ...]
    must_haves: tuple[MustHaveResult, ...] = ()
    warnings: tuple[str, ...] = ()
    spent: Spent = Spent()
    """By agents, so far."""
    budget: Budget = Budget()
    ledger: str

    def task(self, id: str) -> TaskView:
        return next(task for task in self.tasks if task.record.id == id)


class MustHaveResult(Contract):
    """One of the plan's must-haves, looked at after the last task."""

    what: str
    holds: bool | None
    """None: only a person or a model can judge it."""
    detail: str = ""


class TaskReport(Contract):
    id: str
    name: str
    state: TaskState
    attempts: int
    confidence: Confidence | None
    commit: str | None
    failures: tuple[Failure, ...]
    concerns: tuple[str, ...] = ()
    override: Override | None = None
    asks: str = ""


class GateReport(Contract):
    """The document of `proofstone gate --json`."""

    run_id: str
    outcome: RunOutcome
    reason: str
    confidence: Confidence | None
    tasks: tuple[TaskReport, ...]
    commit: str | None
    """The last commit that the run made."""
    branch: str
    must_haves: tuple[MustHaveResult, ...] = ()
    bundle: str | None
    """SUMMARY.md, if it was written."""
    state: str
    """STATE.md."""
    ledger: str
    cost: Mapping[str, float] = {}
    notes: tuple[str, ...] = ()


RunView.model_rebuild()


Hooks = Literal["refuse", "run", "skip"]


class GateSetup(BegunSetup):
    command: Literal["gate"] = "gate"
    plan_path: str
    plan_artifact: str
    """The plan's own bytes: editing the file does not change a run that is under way."""
    branch: str
    executor: str
    architect: str
    fallbacks: Mapping[str, tuple[str, ...]] = {}
    """By role: who is asked where the first does not answer."""
    budget: Budget = Budget()
    """What agents may spend."""
    slots: int
    minutes: float
    hooks: Hooks
    skipped_hooks: tuple[str, ...] = ()
    sign: bool
    author_name: str
    author_email: str
    require_sandbox: bool = False
    asks: bool = False
    """Whether executors are asked if they know what they are doing."""
    heldout_files: str | None = None
    sandbox: str
    notes: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return self.plan_path
