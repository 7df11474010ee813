"""A run while it goes on: what is known of it so far, how its steps ask, and how a step ends the run early. Pure."""

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
    """The run ends here. Nobody's fault: it is how a step says so to whoever called it."""

    def __init__(
        self, outcome: RunOutcome, reason: str, waiting: ApprovalRequest | Waiting | None = None, *, learns: bool = True
    ) -> None:
        super().__init__(reason)
        self.outcome, self.reason, self.waiting = outcome, reason, waiting
        self.learns = learns
        """Whether there is something in it for the next run to know."""


class DeeperError(Exception):
    """The run begins again in a deeper lane."""

    def __init__(self, lane: Lane, why: str, failures: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.lane, self.why, self.failures = lane, why, failures


@dataclass
class Attempt:
    """What belongs to the lane that the run is in: with a deeper one it begins anew."""

    tip: str
    """The commit that holds what was accepted."""
    research: tuple[ResearchOutput, ...] = ()
    spec: SpecOutput | None = None
    design: DesignOutput | None = None
    design_reviews: tuple[PanelOutput, ...] = ()
    constraints: tuple[str, ...] = ()
    """That bind every plan: what the design review left."""
    told: tuple[str, ...] = ()
    """What went wrong in the shallower lane."""
    plan_agreed: bool = False
    met: frozenset[str] = frozenset()
    """Criteria that accepted tasks have met."""
    plan: PlanOutput | None = None
    """The last that was implemented."""
    unlike: tuple[PlanOutput, ...] = ()
    """That the next plan must not be nearly the same as."""
    unsure: tuple[str, ...] = ()
    """What nobody could say of those who were heard."""
    reading: Reading | None = None
    failed: int = 0
    """Iterations that did not pass."""
    final: FinalChecks | None = None
    left_by_design: tuple[KnownIssue, ...] = ()
    left_by_plan: tuple[KnownIssue, ...] = ()
    left_by_code: tuple[KnownIssue, ...] = ()
    accepted: list[GateSummary] = field(default_factory=list)

    @property
    def known_issues(self) -> tuple[KnownIssue, ...]:
        return (*self.left_by_design, *self.left_by_plan, *self.left_by_code)


class Course:
    """The run. Numbers only ever grow, so that no two of its steps go by the same name."""

    def __init__(self, feature: Feature) -> None:
        self.feature = feature
        self.lane, self.lane_reason = feature.lane, feature.lane_reason
        self.now = Attempt(tip=feature.base_commit)
        self.iteration = 0
        """Of planning: every plan that is implemented has its own."""
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

    def go_deeper(self, lane: Lane, why: str) -> Step:
        """Without losing anything: what was done is what the deeper lane does as well."""
        self.lane, self.lane_reason = lane, why
        yield from note("lane", f"{lane}: {why}")

    @property
    def criteria(self) -> tuple[str, ...]:
        """What must hold in the end, as reviewers are told."""
        if self.now.spec is not None:
            return tuple(f"{item.id}: {item.text}" for item in self.now.spec.acceptance_criteria)
        return tuple(item for task in (self.now.plan.tasks if self.now.plan else ()) for item in task.done)


# Asking.


def one(need: Need) -> Steps[Sent]:
    (sent,) = yield (need,)
    return sent


def note(kind: str, text: str, data: Contract | None = None) -> Step:
    yield (Note(kind, text, data),)


def heard(sent: Sent, kind: type[_O]) -> _O | Failed:
    """The answer, or why there is none. An agent that says it cannot has not answered."""
    if isinstance(sent, Failed):
        if sent.budget:
            raise OverError(RunOutcome.BUDGET_EXHAUSTED, sent.why, learns=False)
        return sent
    output = expected(sent, Heard).output
    if not isinstance(output, kind):
        raise TypeError(f"{kind.__name__} is wanted, not {type(output).__name__}")
    if output.completion.status is CompletionStatus.ERROR:
        return Failed(output.completion.summary, once=True)
    return output


def attended(run: Course, sent: Sent, kind: type[_O]) -> _O | Failed:
    """The same, of somebody whose understanding is looked at."""
    if isinstance(sent, Heard):
        run.now.unsure = (*run.now.unsure, *sent.unsure)
    return heard(sent, kind)


def needed(run: Course, sent: Sent, kind: type[_O], what: str) -> _O:
    """The answer, without which nothing goes on."""
    output = attended(run, sent, kind)
    if isinstance(output, Failed):
        raise OverError(RunOutcome.FAILED, f"no {what}: {output.why}")
    return output


def expected(sent: Sent, kind: type[_S]) -> _S:
    """What is sent, where a question waits for somebody or not."""
    if isinstance(sent, Waiting):
        raise OverError(RunOutcome.NEEDS_HUMAN, sent.question, sent, learns=False)
    if not isinstance(sent, kind):
        raise TypeError(f"{kind.__name__} is wanted, not {sent!r}")
    return sent


def approved(request: ApprovalRequest, *, by_person: bool = False) -> Steps[Decided]:
    """What was decided; it is one of the options. If nobody can say, the run waits."""
    sent = yield from one(Approve(request, by_person))
    if isinstance(sent, Waiting):
        raise OverError(RunOutcome.NEEDS_HUMAN, sent.question, request, learns=False)
    decided = expected(sent, Decided)
    answer(request, decided.option)
    return decided
