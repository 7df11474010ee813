"""The effects that the pipeline yields, their results, and the final result.

The loop yields a tuple of effects, which are performed in parallel, and receives a tuple of results in the same order.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from proofstone.agents.roles.models.pipeline import (
    DesignOutput,
    PanelFinding,
    PanelOutput,
    ResearchFocus,
    ResearchOutput,
    ReviewFocus,
    Scope,
    SpecOutput,
)
from proofstone.common.models import Confidence, Contract, Lane
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import (
    ApprovalRequest,
    FinalChecks,
    GateSummary,
    KnownIssue,
    PlanGateSummary,
    Reviewed,
    RunMode,
)
from proofstone.pipeline.rules.reviews import CheckTally, ReviewTally


@dataclass(frozen=True)
class Feature:
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


# Effects.


@dataclass(frozen=True)
class AskResearch:
    """Dispatch a researcher. Result: a reply with a ResearchOutput, or a failure."""

    focus: ResearchFocus
    round: int
    """2 if the user asked for more research."""
    questions: tuple[str, ...] = ()
    attempt: int = 1
    """2 if the first dispatch got no answer."""


@dataclass(frozen=True)
class AskSpec:
    """Dispatch the specifier. Result: a reply with a SpecOutput, or a failure."""

    round: int
    research: tuple[ResearchOutput, ...]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class AskDesign:
    """Dispatch the designer. Result: a reply with a DesignOutput, or a failure."""

    round: int
    spec: SpecOutput
    research: tuple[ResearchOutput, ...]
    reviews: tuple[PanelOutput, ...] = ()


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


@dataclass(frozen=True)
class AskReview:
    """Dispatch a reviewer. Result: a reply with a PanelOutput, or a failure."""

    scope: Scope
    focus: ReviewFocus
    round: int
    criteria: tuple[str, ...] = ()
    design: DesignOutput | None = None
    """The design to review; for code, the engine adds a diff."""
    tip: str = ""
    """The commit that holds the change, in a code review."""
    earlier: tuple[PanelFinding, ...] = ()


@dataclass(frozen=True)
class AskKnowledge:
    """Dispatch the knowledge keeper. Result: a reply with a KnowledgeOutput, or a failure, which stops nothing."""

    outcome: str
    findings: tuple[str, ...]
    tip: str


@dataclass(frozen=True)
class Approve:
    """Ask for an approval. Result: the decision, or a pending answer, for which the run stops."""

    request: ApprovalRequest
    by_person: bool = False
    """Whether only a person may decide: then even an autonomous run does not take the default."""


@dataclass(frozen=True)
class VerifyPlan:
    """Run the plan gate. Result: the summary of the gate, or a pending answer."""

    iteration: int
    """How many plans of this run the plan gate has received, including this one."""
    text: str
    """The plan, as the task gate reads it."""


@dataclass(frozen=True)
class Implement:
    """Run the task gate, starting from a commit. Result: the summary of the gate, or a pending answer."""

    iteration: int
    text: str
    base: str
    lane: Lane
    context: tuple[tuple[str, str], ...] = ()
    """By task id: the parts of the specification and the design that its executor sees."""


@dataclass(frozen=True)
class CheckAll:
    """Run all checks on the merged tree. Result: the checks."""

    iteration: int
    tip: str
    lane: Lane
    """The lane of the change. The checks also find out whether the change stays in its lane."""


@dataclass(frozen=True)
class CountReviews:
    """Count the reviews of a round in the ledger. Result: the counts."""

    scope: Scope
    round: int
    said: ReviewTally
    """The received verdicts, which the rows must confirm."""
    tip: str = ""
    """The commit that holds the change, in a code review."""


@dataclass(frozen=True)
class CountChecks:
    """Count the checks of the merged tree and of each accepted task in the ledger. Result: the counts."""

    iteration: int
    tip: str
    gates: tuple[GateSummary, ...]


@dataclass(frozen=True)
class Commit:
    """Make the one commit. Result: the commit, or a failure."""

    tip: str
    confidence: Confidence


@dataclass(frozen=True)
class Note:
    """Record a decision and tell the observer. Result: an acknowledgement."""

    kind: str
    """The kind of note: `lane`, `concern`, `unheard`, `review-gate`, `not-taken`, `plan`, `plan-gate`, `direction`."""
    text: str
    data: Contract | None = None


Need = (
    AskResearch
    | AskSpec
    | AskDesign
    | AskPlan
    | AskReview
    | AskKnowledge
    | Approve
    | VerifyPlan
    | Implement
    | CheckAll
    | CountReviews
    | CountChecks
    | Commit
    | Note
)
AskAgent = AskResearch | AskSpec | AskDesign | AskPlan | AskReview | AskKnowledge


# Results.


@dataclass(frozen=True)
class Heard:
    output: Contract
    model: str = ""
    """The model that answered, by its own name."""
    unsure: tuple[str, ...] = ()
    """What could not be determined about the agent's understanding."""


@dataclass(frozen=True)
class Failed:
    why: str
    budget: bool = False
    """Whether the budget of the run is spent, so that no other agent is dispatched either."""
    once: bool = False
    """Whether the agent was dispatched only once, so that another attempt may succeed."""


@dataclass(frozen=True)
class Decided:
    option: str
    feedback: str = ""
    """The comment of the user."""


@dataclass(frozen=True)
class Waiting:
    """The run waits for an answer of a person."""

    question: str
    how: str = ""
    """The command to answer with."""


@dataclass(frozen=True)
class PlanVerified:
    summary: PlanGateSummary


@dataclass(frozen=True)
class Implemented:
    summary: GateSummary
    elapsed_ms: int = 0


@dataclass(frozen=True)
class Checked:
    checks: FinalChecks
    left: str = ""
    """Why the change has left its lane, if it has: a file of a higher risk than planned."""
    added: tuple[str, ...] = ()
    """Requirements that the user has added since, and that no plan contains and no task has taken in."""


@dataclass(frozen=True)
class ReviewsCounted:
    rows: ReviewTally


@dataclass(frozen=True)
class ChecksCounted:
    checked: tuple[CheckTally, ...]
    added: tuple[str, ...] = ()
    """Requirements that were added since the checks."""


@dataclass(frozen=True)
class Committed:
    commit: str


@dataclass(frozen=True)
class Noted:
    pass


Sent = (
    Heard
    | Failed
    | Decided
    | Waiting
    | PlanVerified
    | Implemented
    | Checked
    | ReviewsCounted
    | ChecksCounted
    | Committed
    | Noted
)


@dataclass(frozen=True)
class Delivered:
    """The final result of a run."""

    outcome: RunOutcome
    reason: str
    confidence: Confidence | None
    confidence_reasons: tuple[str, ...]
    lane: Lane
    lane_reason: str
    tip: str
    commit: str | None = None
    plan_gates: tuple[PlanGateSummary, ...] = ()
    gates: tuple[GateSummary, ...] = ()
    final: FinalChecks | None = None
    reviews: tuple[Reviewed, ...] = ()
    single_model: bool = False
    known_issues: tuple[KnownIssue, ...] = ()
    waiting: ApprovalRequest | Waiting | None = None


Loop = Generator[tuple[Need, ...], tuple[Sent, ...], Delivered]
