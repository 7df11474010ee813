"""The effects that the pipeline yields, their results, and the final result.

The loop yields a tuple of effects, which are performed in parallel, and receives a tuple of results in the same order.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from proofstone.agents.roles.models.gate import CheckSummary
from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import (
    Concern,
    DesignOutput,
    PanelFinding,
    PanelOutput,
    ResearchFocus,
    ResearchOutput,
    ReviewFocus,
    ReviewScope,
    SpecOutput,
)
from proofstone.common.models import Confidence, ConfidenceReason, Lane
from proofstone.common.serialization import AnyModel, serializable
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import (
    ApprovalRequest,
    FinalChecks,
    ForbiddenByMemory,
    GateSummary,
    KnownIssue,
    PlanGateSummary,
    ReviewerVerdict,
    RunMode,
)
from proofstone.pipeline.rules.reviews import CheckTally, ReviewTally
from proofstone.runtime.rules import EffectDone


@dataclass(frozen=True)
class PipelineGoal:
    """The request, and how to pursue it."""

    run_id: str
    slug: str
    request: str
    lane: Lane
    lane_reason: str
    mode: RunMode = RunMode.AUTONOMOUS
    proceed_on_pushback: bool = False
    base_commit: str = ""
    minutes: float = 0.0
    """The time limit of the run; 0 means no limit, and then time adds no pressure."""
    concerns: tuple[Concern, ...] = ()
    """What the engine has to say about the request before anybody works on it."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """The weights and thresholds of the controller that differ from its defaults."""
    forbidden: ForbiddenByMemory = field(default_factory=ForbiddenByMemory)
    """What plans must not use, because earlier runs have failed with it."""


# Effects.


@serializable("pipeline.ask_research")
@dataclass(frozen=True)
class AskResearch:
    """Dispatch a researcher. Result: a reply with a ResearchOutput, or a failure."""

    focus: ResearchFocus
    round: int
    """2 if the user asked for more research."""
    questions: tuple[str, ...] = ()
    attempt: int = 1
    """2 if the first dispatch got no answer."""


@serializable("pipeline.ask_spec")
@dataclass(frozen=True)
class AskSpec:
    """Dispatch the specifier. Result: a reply with a SpecOutput, or a failure."""

    round: int
    research: tuple[ResearchOutput, ...]
    answers: tuple[str, ...] = ()


@serializable("pipeline.ask_design")
@dataclass(frozen=True)
class AskDesign:
    """Dispatch the designer. Result: a reply with a DesignOutput, or a failure."""

    round: int
    spec: SpecOutput
    research: tuple[ResearchOutput, ...]
    reviews: tuple[PanelOutput, ...] = ()
    revise: str = ""
    """What the designer itself said must be revised."""


@serializable("pipeline.ask_plan")
@dataclass(frozen=True)
class AskPlan:
    """Dispatch the planner. Result: a reply with a PlanOutput, or a failure."""

    iteration: int
    attempt: int
    """The attempt within this iteration: more than 1, if the previous plan was rejected."""
    spec: SpecOutput | None
    """None in the short lanes, where the request takes its place."""
    design: DesignOutput | None
    reviews: tuple[PanelOutput, ...] = ()
    directive: str = ""
    failures: tuple[str, ...] = ()


@serializable("pipeline.ask_review")
@dataclass(frozen=True)
class AskReview:
    """Dispatch a reviewer. Result: a reply with a PanelOutput, or a failure."""

    scope: ReviewScope
    focus: ReviewFocus
    round: int
    criteria: tuple[str, ...] = ()
    design: DesignOutput | None = None
    """The design to review; for code, the engine adds a diff."""
    tip: str = ""
    """The commit that holds the change, in a code review."""
    earlier: tuple[PanelFinding, ...] = ()
    risk: RiskMark | None = None
    """The highest risk of the files that were planned, in a code review."""
    results: tuple[str, ...] = ()
    """The criteria of the accepted tasks, each with what shows it."""
    reports: tuple[str, ...] = ()
    """How each accepted task was implemented."""
    open_findings: tuple[str, ...] = ()
    """What the design review and the plan gate left open."""


@serializable("pipeline.ask_knowledge")
@dataclass(frozen=True)
class AskKnowledge:
    """Dispatch the knowledge keeper. Result: a reply with a KnowledgeOutput, or a failure, which stops nothing."""

    outcome: str
    findings: tuple[str, ...]
    tip: str
    failures: tuple[str, ...] = ()
    """What failed on the way, also what was put right since."""
    number: int = 1
    """More than 1 if the run had halted before, and went on with a fix."""


@serializable("pipeline.ask_for_approval")
@dataclass(frozen=True)
class AskForApproval:
    """Ask for an approval. Result: the decision, or a pending answer, for which the run stops."""

    request: ApprovalRequest
    by_person: bool = False
    """Whether only a person may decide: then even an autonomous run does not take the default."""


@serializable("pipeline.await_fix")
@dataclass(frozen=True)
class AwaitFix:
    """Ask whether a person has ordered the fix of what blocks the run. Result: the order, or a pending answer, with
    which the run halts.
    """

    number: int
    """How many fixes must have been ordered, including this one."""


@serializable("pipeline.verify_plan")
@dataclass(frozen=True)
class VerifyPlan:
    """Run the plan gate. Result: the summary of the gate, or a pending answer."""

    iteration: int
    """How many plans of this run the plan gate has received, including this one."""
    text: str
    """The plan, as the task gate reads it."""


@serializable("pipeline.implement")
@dataclass(frozen=True)
class Implement:
    """Run the task gate, starting from a commit. Result: the summary of the gate, or a pending answer."""

    iteration: int
    text: str
    base: str
    lane: Lane
    context: tuple[tuple[str, str], ...] = ()
    """By task id: the parts of the specification and the design that its executor sees."""


@serializable("pipeline.run_all_checks")
@dataclass(frozen=True)
class RunAllChecks:
    """Run all checks on the merged tree. Result: the checks."""

    iteration: int
    tip: str
    lane: Lane
    """The lane of the change. The checks also find out whether the change stays in its lane."""


@serializable("pipeline.count_reviews")
@dataclass(frozen=True)
class CountReviews:
    """Count the reviews of a round in the ledger. Result: the counts."""

    scope: ReviewScope
    round: int
    said: ReviewTally
    """The received verdicts, which the rows must confirm."""
    tip: str = ""
    """The commit that holds the change, in a code review."""


@serializable("pipeline.count_checks")
@dataclass(frozen=True)
class CountChecks:
    """Count the checks of the merged tree and of each accepted task in the ledger. Result: the counts."""

    iteration: int
    tip: str
    gates: tuple[GateSummary, ...]


@serializable("pipeline.commit_change")
@dataclass(frozen=True)
class CommitChange:
    """Make the one commit. Result: the commit, or a failure."""

    tip: str
    confidence: Confidence


@serializable("pipeline.record_note")
@dataclass(frozen=True)
class RecordNote:
    """Record a decision and tell the observer. Result: an acknowledgement."""

    kind: str
    """The kind of note: `lane`, `concern`, `overridden`, `unheard`, `revision`, `review-gate`, `resolved`,
    `not-taken`, `plan`, `plan-gate`, `direction`.
    """
    text: str
    data: AnyModel | None = None


PipelineEffect = (
    AskResearch
    | AskSpec
    | AskDesign
    | AskPlan
    | AskReview
    | AskKnowledge
    | AskForApproval
    | AwaitFix
    | VerifyPlan
    | Implement
    | RunAllChecks
    | CountReviews
    | CountChecks
    | CommitChange
    | RecordNote
)
AskAgent = AskResearch | AskSpec | AskDesign | AskPlan | AskReview | AskKnowledge


# Results.


@serializable("pipeline.agent_reply")
@dataclass(frozen=True)
class AgentReply:
    output: AnyModel
    model: str = ""
    """The model that answered, by its own name."""
    uncertainties: tuple[str, ...] = ()
    """What could not be determined about the agent's understanding."""


@serializable("pipeline.agent_failure")
@dataclass(frozen=True)
class AgentFailure:
    why: str
    is_budget_exhausted: bool = False
    """Whether the budget of the run is spent, so that no other agent is dispatched either."""
    was_asked_once: bool = False
    """Whether the agent was dispatched only once, so that another attempt may succeed."""


@serializable("pipeline.approval_decision")
@dataclass(frozen=True)
class ApprovalDecision:
    option: str
    feedback: str = ""
    """The comment of the user."""


@serializable("pipeline.pending_answer")
@dataclass(frozen=True)
class PendingAnswer:
    """The run waits for an answer of a person."""

    question: str
    command: str = ""
    """The command to answer with."""


@serializable("pipeline.fix_ordered")
@dataclass(frozen=True)
class FixOrdered:
    """A person has resumed the halted run, so that what blocks it is fixed and reviewed again."""


@serializable("pipeline.plan_gate_result")
@dataclass(frozen=True)
class PlanGateResult:
    summary: PlanGateSummary


@serializable("pipeline.task_gate_result")
@dataclass(frozen=True)
class TaskGateResult:
    summary: GateSummary
    elapsed_ms: int = 0


@serializable("pipeline.merged_check_result")
@dataclass(frozen=True)
class MergedCheckResult:
    checks: FinalChecks
    lane_left_reason: str = ""
    """Why the change has left its lane, if it has: a file of a higher risk than planned."""
    added: tuple[str, ...] = ()
    """Requirements that the user has added since, and that no plan contains and no task has taken in."""
    reviewed: tuple[CheckSummary, ...] = ()
    """The verdict of each check, for the reviewers."""
    requirements: tuple[str, ...] = ()
    """All requirements that the user has added so far. The reviewers judge whether they are met."""


@serializable("pipeline.review_counts")
@dataclass(frozen=True)
class ReviewCounts:
    rows: ReviewTally


@serializable("pipeline.check_counts")
@dataclass(frozen=True)
class CheckCounts:
    checked: tuple[CheckTally, ...]
    added: tuple[str, ...] = ()
    """Requirements that were added since the checks."""


@serializable("pipeline.commit_result")
@dataclass(frozen=True)
class CommitResult:
    commit: str


PipelineEffectResult = (
    AgentReply
    | AgentFailure
    | ApprovalDecision
    | PendingAnswer
    | FixOrdered
    | PlanGateResult
    | TaskGateResult
    | MergedCheckResult
    | ReviewCounts
    | CheckCounts
    | CommitResult
    | EffectDone
)


@dataclass(frozen=True)
class PipelineResult:
    """The final result of a run."""

    outcome: RunOutcome
    reason: str
    confidence: Confidence | None
    reasons: tuple[ConfidenceReason, ...]
    lane: Lane
    lane_reason: str
    tip: str
    commit: str | None = None
    plan_gates: tuple[PlanGateSummary, ...] = ()
    gates: tuple[GateSummary, ...] = ()
    final: FinalChecks | None = None
    reviews: tuple[ReviewerVerdict, ...] = ()
    single_model: bool = False
    known_issues: tuple[KnownIssue, ...] = ()
    gaps: tuple[str, ...] = ()
    """What was overridden, cut short, or looked at by nobody."""
    requirements: tuple[str, ...] = ()
    """The requirements that the user has added and that the reviewers were asked about."""
    waiting: ApprovalRequest | PendingAnswer | None = None
    awaits_fix: int = 0
    """The number of the fix that resuming the run orders, if a blocker has halted it; else 0."""


PipelineWorkflow = Generator[tuple[PipelineEffect, ...], tuple[PipelineEffectResult, ...], PipelineResult]
