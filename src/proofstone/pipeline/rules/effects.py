"""What the pipeline asks for, what it is sent, and what is left when it has ended.

The loop yields a tuple of needs, which are met at the same time, and is sent a tuple of answers in their order.
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
    """What is wanted, and how it is gone about."""

    run_id: str
    slug: str
    request: str
    lane: Lane
    lane_reason: str
    mode: RunMode = RunMode.AUTONOMOUS
    proceed_on_pushback: bool = False
    base_commit: str = ""
    minutes: float = 0.0
    """That the run may take; 0: as long as it takes, and then time puts no pressure on it."""


# What the loop asks for.


@dataclass(frozen=True)
class AskResearch:
    """Sent back: Heard with a ResearchOutput, or Failed."""

    focus: ResearchFocus
    round: int
    """2: the person wants it expanded."""
    questions: tuple[str, ...] = ()
    attempt: int = 1
    """2: they were asked before, and not heard."""


@dataclass(frozen=True)
class AskSpec:
    """Sent back: Heard with a SpecOutput, or Failed."""

    round: int
    research: tuple[ResearchOutput, ...]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class AskDesign:
    """Sent back: Heard with a DesignOutput, or Failed."""

    round: int
    spec: SpecOutput
    research: tuple[ResearchOutput, ...]
    reviews: tuple[PanelOutput, ...] = ()


@dataclass(frozen=True)
class AskPlan:
    """Sent back: Heard with a PlanOutput, or Failed."""

    iteration: int
    attempt: int
    """Of this iteration: more than 1, if the plan before was not taken."""
    spec: SpecOutput | None
    """None, in the short lanes: there the request stands for it."""
    design: DesignOutput | None
    reviews: tuple[PanelOutput, ...] = ()
    directive: str = ""
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class AskReview:
    """Sent back: Heard with a PanelOutput, or Failed."""

    scope: Scope
    focus: ReviewFocus
    round: int
    criteria: tuple[str, ...] = ()
    design: DesignOutput | None = None
    """Of a design review; code is shown as a diff, which the engine makes."""
    tip: str = ""
    """Of a code review: the commit that holds the change."""
    earlier: tuple[PanelFinding, ...] = ()


@dataclass(frozen=True)
class AskKnowledge:
    """Sent back: Heard with a KnowledgeOutput, or Failed. It holds nothing up."""

    outcome: str
    findings: tuple[str, ...]
    tip: str


@dataclass(frozen=True)
class Approve:
    """Sent back: Decided, or Waiting: nobody here can say, and the run stops until somebody has."""

    request: ApprovalRequest
    by_person: bool = False
    """Nobody else may decide: not even an autonomous run takes the default."""


@dataclass(frozen=True)
class VerifyPlan:
    """The plan gate. Sent back: PlanVerified, or Waiting."""

    iteration: int
    """Of the plan gate: how many plans of this run it has been given, this one among them."""
    text: str
    """The plan, as the task gate reads it."""


@dataclass(frozen=True)
class Implement:
    """The task gate, from a commit on. Sent back: Implemented, or Waiting."""

    iteration: int
    text: str
    base: str
    lane: Lane
    context: tuple[tuple[str, str], ...] = ()
    """By task id: what of specification and design its executor is shown."""


@dataclass(frozen=True)
class CheckAll:
    """The whole cascade on the merged tree. Sent back: Checked."""

    iteration: int
    tip: str
    lane: Lane
    """How deep it is looked into; whether the change keeps to it is seen here, too."""


@dataclass(frozen=True)
class CountReviews:
    """What the ledger holds of a round of reviews. Sent back: ReviewsCounted."""

    scope: Scope
    round: int
    said: ReviewTally
    """What was heard, which the rows must bear out."""
    tip: str = ""
    """Of a code review: the commit that holds the change."""


@dataclass(frozen=True)
class CountChecks:
    """What the ledger holds of the merged tree's checks and of each accepted task's. Sent back: ChecksCounted."""

    iteration: int
    tip: str
    gates: tuple[GateSummary, ...]


@dataclass(frozen=True)
class Commit:
    """The one commit. Sent back: Committed, or Failed."""

    tip: str
    confidence: Confidence


@dataclass(frozen=True)
class Note:
    """Something for the record and for whoever looks on. Sent back: Noted."""

    kind: str
    """`lane`, `concern`, `unheard`, `review-gate`, `not-taken`, `plan`, `plan-gate`, `direction`."""
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


# What it is sent.


@dataclass(frozen=True)
class Heard:
    output: Contract
    model: str = ""
    """Who answered, as they call themselves."""
    unsure: tuple[str, ...] = ()
    """What nobody could say of how they have understood what they were asked."""


@dataclass(frozen=True)
class Failed:
    why: str
    budget: bool = False
    """The run's budget is spent: nobody else is asked either."""
    once: bool = False
    """They were asked once only: another time may fare better."""


@dataclass(frozen=True)
class Decided:
    option: str
    feedback: str = ""
    """What the person said beside it."""


@dataclass(frozen=True)
class Waiting:
    """Somebody must say something first."""

    question: str
    how: str = ""
    """The command to say it with."""


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
    """Why the change has left its lane, if it has: a file of a higher risk than was planned."""
    added: tuple[str, ...] = ()
    """What the person has added meanwhile, and no plan holds and no task has taken in."""


@dataclass(frozen=True)
class ReviewsCounted:
    rows: ReviewTally


@dataclass(frozen=True)
class ChecksCounted:
    checked: tuple[CheckTally, ...]
    added: tuple[str, ...] = ()
    """As with Checked: what came since."""


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
    """What it came to."""

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
