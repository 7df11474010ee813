"""The state of a run, how its steps yield effects, and how a step ends the run early. Pure."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeVar

from proofstone.agents.models import CompletionStatus, Output
from proofstone.agents.roles.models.pipeline import DesignOutput, PanelOutput, PlanOutput, ResearchOutput, SpecOutput
from proofstone.common.models import SHORT, Contract, Lane
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import (
    ApprovalRequest,
    FinalChecks,
    GateSummary,
    KnownIssue,
    PlanGateSummary,
    Reviewed,
)
from proofstone.pipeline.rules.approvals import answer
from proofstone.pipeline.rules.effects import Approve, Decided, Failed, Feature, Heard, Need, Note, Sent, Waiting
from proofstone.solve.rules.gradient import Reading

_T = TypeVar("_T")
_O = TypeVar("_O", bound=Output)
_S = TypeVar("_S")

Steps = Generator[tuple[Need, ...], tuple[Sent, ...], _T]
Step = Steps[None]


class OverError(Exception):
    """Raised by a step to end the run. It is not an error: its caller handles it."""

    def __init__(
        self, outcome: RunOutcome, reason: str, waiting: ApprovalRequest | Waiting | None = None, *, learns: bool = True
    ) -> None:
        super().__init__(reason)
        self.outcome, self.reason, self.waiting = outcome, reason, waiting
        self.learns = learns
        """Whether later runs can learn something from this end."""


class DeeperError(Exception):
    """Raised to start again in a deeper lane."""

    def __init__(self, lane: Lane, reason: str, failures: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.lane, self.why, self.failures = lane, reason, failures


@dataclass
class Attempt:
    """The state that belongs to the current lane; a deeper lane starts with a new one."""

    tip: str
    """The commit that holds the accepted tasks."""
    research: tuple[ResearchOutput, ...] = ()
    spec: SpecOutput | None = None
    design: DesignOutput | None = None
    design_reviews: tuple[PanelOutput, ...] = ()
    constraints: tuple[str, ...] = ()
    """The constraints of every plan, left by the design review."""
    told: tuple[str, ...] = ()
    """What went wrong in the shallower lane."""
    plan_agreed: bool = False
    met: frozenset[str] = frozenset()
    """The criteria that accepted tasks have met."""
    plan: PlanOutput | None = None
    """The last plan that was implemented."""
    unlike: tuple[PlanOutput, ...] = ()
    """Plans that the next plan must differ from."""
    unsure: tuple[str, ...] = ()
    """What could not be determined about the understanding of agents."""
    reading: Reading | None = None
    failed: int = 0
    """The number of iterations that did not pass."""
    final: FinalChecks | None = None
    left_by_design: tuple[KnownIssue, ...] = ()
    left_by_plan: tuple[KnownIssue, ...] = ()
    left_by_code: tuple[KnownIssue, ...] = ()
    accepted: list[GateSummary] = field(default_factory=list)

    @property
    def known_issues(self) -> tuple[KnownIssue, ...]:
        return (*self.left_by_design, *self.left_by_plan, *self.left_by_code)


class Course:
    """A run. Its numbers only grow, so that no two steps have the same name."""

    def __init__(self, feature: Feature) -> None:
        self.feature = feature
        self.lane, self.lane_reason = feature.lane, feature.lane_reason
        self.now = Attempt(tip=feature.base_commit)
        self.iteration = 0
        """The number of the planning iteration: every implemented plan has its own."""
        self.elapsed_ms = 0
        self.plan_gates: list[PlanGateSummary] = []
        self.gates: list[GateSummary] = []
        self.reviews: list[Reviewed] = []
        self.single_model = False
        self.exhausted: list[str] = []

    @property
    def is_short(self) -> bool:
        return self.lane in SHORT

    def begin_again(self, deeper: DeeperError) -> None:
        self.lane, self.lane_reason = deeper.lane, deeper.why
        self.now = Attempt(tip=self.feature.base_commit, told=deeper.failures)

    def go_deeper(self, lane: Lane, reason: str) -> Step:
        """Switch to a deeper lane and keep everything: the deeper lane includes the steps so far."""
        self.lane, self.lane_reason = lane, reason
        yield from note("lane", f"{lane}: {reason}")

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria of the result, as reviewers see them."""
        if self.now.spec is not None:
            return tuple(f"{criterion.id}: {criterion.text}" for criterion in self.now.spec.acceptance_criteria)
        return tuple(criterion for task in (self.now.plan.tasks if self.now.plan else ()) for criterion in task.done)


# Effects.


def one(need: Need) -> Steps[Sent]:
    (sent,) = yield (need,)
    return sent


def note(kind: str, text: str, data: Contract | None = None) -> Step:
    yield (Note(kind, text, data),)


def heard(sent: Sent, kind: type[_O]) -> _O | Failed:
    """Return the answer, or the failure. An agent that reports an error has not answered."""
    if isinstance(sent, Failed):
        if sent.budget:
            raise OverError(RunOutcome.BUDGET_EXHAUSTED, sent.why, learns=False)
        return sent
    output = expected(sent, Heard).output
    if not isinstance(output, kind):
        raise TypeError(f"expected {kind.__name__}, got {type(output).__name__}")
    if output.completion.status is CompletionStatus.ERROR:
        return Failed(output.completion.summary, once=True)
    return output


def attended(run: Course, sent: Sent, kind: type[_O]) -> _O | Failed:
    """Return the answer of an agent whose understanding is checked."""
    if isinstance(sent, Heard):
        run.now.unsure = (*run.now.unsure, *sent.unsure)
    return heard(sent, kind)


def needed(run: Course, sent: Sent, kind: type[_O], subject: str) -> _O:
    """Return an answer that the run cannot continue without."""
    output = attended(run, sent, kind)
    if isinstance(output, Failed):
        raise OverError(RunOutcome.FAILED, f"no {subject}: {output.why}")
    return output


def expected(sent: Sent, kind: type[_S]) -> _S:
    """Return the result of an effect; end the run if it waits for a person."""
    if isinstance(sent, Waiting):
        raise OverError(RunOutcome.NEEDS_HUMAN, sent.question, sent, learns=False)
    if not isinstance(sent, kind):
        raise TypeError(f"expected {kind.__name__}, got {sent!r}")
    return sent


def approved(request: ApprovalRequest, *, by_person: bool = False) -> Steps[Decided]:
    """Return the decision, which is one of the options. If nobody can decide now, the run waits."""
    sent = yield from one(Approve(request, by_person))
    if isinstance(sent, Waiting):
        raise OverError(RunOutcome.NEEDS_HUMAN, sent.question, request, learns=False)
    decision = expected(sent, Decided)
    answer(request, decision.option)
    return decision
