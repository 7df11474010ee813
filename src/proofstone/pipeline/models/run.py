"""A run of the whole pipeline: its configuration, its approvals, the results of its parts, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import Concern, ReviewFocus, ReviewScope
from proofstone.auditor.models import AuditFinding
from proofstone.common.models import (
    Acceptance,
    Budget,
    BudgetUsage,
    Confidence,
    ConfidenceReason,
    FrozenModel,
    Lane,
    ReviewVerdict,
    Severity,
)
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.ledger.models import RunConfig


class RunMode(StrEnum):
    AUTONOMOUS = "autonomous"
    """The default option is chosen, and that is recorded."""
    INTERACTIVE = "interactive"


class ApprovalOption(FrozenModel):
    id: str
    label: str = Field(max_length=50)
    description: str
    is_default: bool = False


class ApprovalMetadata(FrozenModel):
    risk_summary: str = ""
    findings_count: int = 0
    elapsed_time: str = ""


class ApprovalRequest(FrozenModel):
    gate_id: str
    """`gate-pushback`, `gate-post-research`, `gate-post-planning`; followed by a number from the second time on."""
    pipeline_step: str
    question: str
    context: str
    options: tuple[ApprovalOption, ...] = Field(min_length=1)
    metadata: ApprovalMetadata = ApprovalMetadata()

    @model_validator(mode="after")
    def _demand_one_default(self) -> ApprovalRequest:
        if sum(option.is_default for option in self.options) != 1:
            raise ValueError(f"{self.gate_id}: exactly one option must be the default")
        return self

    @property
    def default(self) -> ApprovalOption:
        return next(option for option in self.options if option.is_default)

    def find_option(self, id: str) -> ApprovalOption | None:
        return next((option for option in self.options if option.id == id), None)


class ApprovalEntry(FrozenModel):
    """An entry of the approval log."""

    gate_id: str
    timestamp: str
    mode: RunMode
    selected_option: str
    auto_selected: bool
    user_response_raw: str = ""


class ForbiddenByMemory(FrozenModel):
    """What plans of a run must not use, because earlier runs have failed with it."""

    programs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


class PipelineRunConfig(RunConfig):
    command: Literal["run"] = "run"
    request: str
    """The user's own words."""
    slug: str
    branch: str
    """The branch that receives the commit."""
    lane: Lane
    lane_reason: str
    mode: RunMode = RunMode.AUTONOMOUS
    proceed_on_pushback: bool = False
    concerns: tuple[Concern, ...] = ()
    """What the engine has to say about the request."""
    agents: Mapping[str, tuple[str, ...]]
    """The agents of each role, the fallbacks after the first: `researcher:impact`, `reviewer:security`, `executor`."""
    minutes: float = 0.0
    weights: Mapping[str, float] = {}
    """The weights and thresholds of the controller."""
    budget: Budget = Budget()
    slots: int = 4
    sign: bool = False
    require_sandbox: bool = False
    remembers: bool = True
    forbidden: ForbiddenByMemory = ForbiddenByMemory()
    """What the memory forbade when the run began."""
    asks: bool = False
    """Whether agents are asked if they understand their task, in the lanes that are long enough for it."""
    notes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return f'"{self.request}"'


class KnownIssue(FrozenModel):
    """A finding that remains at the end."""

    severity: Severity
    title: str
    where: tuple[str, ...] = ()
    source: str
    """The source of the finding: `review code/security, round 2`, `check tests`, `plan gate C3`."""
    evidence: str = ""
    """What shows it, in the words of whoever found it."""
    recommendation: str = ""


class ReviewerVerdict(FrozenModel):
    """The verdict of one reviewer, as it counts for the gate."""

    scope: ReviewScope
    focus: ReviewFocus
    round: int
    verdict: ReviewVerdict | None
    """None if the reviewer gave no answer."""
    findings: Mapping[Severity, int] = {}
    model: str = ""


class GateSummary(FrozenModel):
    """The result of the task gate for one plan."""

    iteration: int
    run_id: str
    outcome: RunOutcome
    reason: str
    tasks: tuple[TaskReport, ...] = ()
    tip: str
    """The commit that holds the accepted tasks, including those of earlier iterations."""


class PlanGateSummary(FrozenModel):
    iteration: int
    run_id: str
    verdict: Literal["PROCEED", "REVISE", "RETHINK"] | None
    """None while a question is waiting."""
    reason: str
    open: tuple[KnownIssue, ...] = ()
    mitigations: tuple[str, ...] = ()


class FinalChecks(FrozenModel):
    """The result of all checks on the merged tree."""

    tree: str
    passed: bool
    reason: str = ""
    confidence: Confidence = Confidence.LOW
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""
    regressions: tuple[str, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    """Findings that a person accepted, and who, how and why."""


class BlastRadius(FrozenModel):
    path: str
    change: str
    risk: RiskMark


class AddedRequirement(FrozenModel):
    """A requirement that the user added to the run."""

    text: str
    is_met: bool
    """Whether the reviewers, or the architects of tasks, approved the change with it among their criteria."""


class RunReport(FrozenModel):
    """The result of `proofstone run`, for people and programs."""

    run_id: str
    request: str
    repository: str
    outcome: RunOutcome
    reason: str
    confidence: Confidence | None = None
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""
    lane: Lane
    lane_reason: str = ""
    branch: str
    commit: str | None = None
    tree: str | None = None
    base_commit: str
    rollback: str = ""
    """The command that reverts the commit."""
    plan_gates: tuple[PlanGateSummary, ...] = ()
    gates: tuple[GateSummary, ...] = ()
    tasks: tuple[TaskReport, ...] = ()
    """The tasks of all plans, in order; `gates` groups them by plan."""
    final: FinalChecks | None = None
    reviews: tuple[ReviewerVerdict, ...] = ()
    single_model: bool = False
    """Whether the reviewers were one model with three foci, which is the recorded fallback."""
    known_issues: tuple[KnownIssue, ...] = ()
    gaps: tuple[str, ...] = ()
    """What was overridden, cut short, or looked at by nobody."""
    requirements: tuple[AddedRequirement, ...] = ()
    """What the user has added since the run began."""
    audit: tuple[AuditFinding, ...] = ()
    """What the auditor finds in the run and its parts."""
    approvals: tuple[ApprovalEntry, ...] = ()
    waiting: ApprovalRequest | None = None
    """The question to the user, if the run waits for an answer."""
    changed: tuple[BlastRadius, ...] = ()
    agents: Mapping[str, str] = {}
    dispatches: int = 0
    spent: BudgetUsage = BudgetUsage()
    cost: Mapping[str, float] = {}
    """What was spent, with the keys of `proofstone gate --json`."""
    elapsed_ms: int = 0
    ledger: str = ""
    directory: str = ""
    """The folder with the documents of the run."""
    bundle: str = ""
    notes: tuple[str, ...] = ()
    next_step: str = ""
    awaits_fix: int = 0
    """The number of the fix that resuming the run orders, if a blocker has halted it: the fix is planned, and a new
    review round begins. 0 if there is none.
    """
    partial: tuple[str, ...] = ()
    """What was accomplished although nothing is committed."""
    next_moves: tuple[str, ...] = ()
    """What the person could do now, if the run has ended without a commit."""
