"""The state of a run, how its steps yield effects, and how a step ends the run early. Pure."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeVar

from proofstone.agents.models import Completion, CompletionStatus, RoleOutput
from proofstone.agents.roles.models.pipeline import (
    DesignOutput,
    PanelFinding,
    PanelOutput,
    PlanOutput,
    ResearchOutput,
    SpecOutput,
)
from proofstone.common.models import SHORT_LANES, FrozenModel, Lane
from proofstone.gate.models import CriterionResult, CriterionStatus, RunOutcome
from proofstone.pipeline.models.run import (
    ApprovalRequest,
    FinalChecks,
    GateSummary,
    KnownIssue,
    PlanGateSummary,
    ReviewerVerdict,
)
from proofstone.pipeline.rules.approvals import build_revision_request, validate_option
from proofstone.pipeline.rules.effects import (
    AgentFailure,
    AgentReply,
    ApprovalDecision,
    AskForApproval,
    AwaitFix,
    FixOrdered,
    PendingAnswer,
    PipelineEffect,
    PipelineEffectResult,
    PipelineGoal,
    RecordNote,
)
from proofstone.solve.rules.gradient import Measurement

_T = TypeVar("_T")
_O = TypeVar("_O", bound=RoleOutput)
_S = TypeVar("_S")

PipelineSteps = Generator[tuple[PipelineEffect, ...], tuple[PipelineEffectResult, ...], _T]
PipelineStep = PipelineSteps[None]


class RunEndedError(Exception):
    """Raised by a step to end the run. It is not an error: its caller handles it."""

    def __init__(
        self,
        outcome: RunOutcome,
        reason: str,
        waiting: ApprovalRequest | PendingAnswer | None = None,
        *,
        is_instructive: bool = True,
        awaits_fix: int = 0,
    ) -> None:
        super().__init__(reason)
        self.outcome, self.reason, self.waiting = outcome, reason, waiting
        self.is_instructive = is_instructive
        """Whether later runs can learn something from this end."""
        self.awaits_fix = awaits_fix
        """The number of the fix that a person orders by resuming the run; 0 if there is none."""


class DeeperLaneError(Exception):
    """Raised to start again in a deeper lane."""

    def __init__(self, lane: Lane, reason: str, failures: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.lane, self.why, self.failures = lane, reason, failures


@dataclass
class LaneState:
    """The state that belongs to the current lane; a deeper lane starts with a new one."""

    tip: str
    """The commit that holds the accepted tasks."""
    research: tuple[ResearchOutput, ...] = ()
    spec: SpecOutput | None = None
    design: DesignOutput | None = None
    design_reviews: tuple[PanelOutput, ...] = ()
    constraints: tuple[str, ...] = ()
    """The constraints of every plan, left by the design review."""
    earlier_failures: tuple[str, ...] = ()
    """What went wrong in the shallower lane."""
    is_plan_approved: bool = False
    met_criteria: frozenset[str] = frozenset()
    """The criteria that accepted tasks have met."""
    plan: PlanOutput | None = None
    """The last plan that was implemented."""
    rejected_plans: tuple[PlanOutput, ...] = ()
    """Plans that the next plan must differ from."""
    uncertainties: tuple[str, ...] = ()
    """What could not be determined about the understanding of agents."""
    measurement: Measurement | None = None
    failed_iterations: int = 0
    """The number of iterations that did not pass."""
    final: FinalChecks | None = None
    gaps: tuple[str, ...] = ()
    """What was overridden, cut short, or looked at by nobody. Each lowers the confidence."""
    requirements: tuple[str, ...] = ()
    """The requirements that the user has added, as far as the last checks knew them."""
    open_criticals: tuple[PanelFinding, ...] = ()
    """Critical findings that the design review left open. The code reviewers must say that they are resolved."""
    design_issues: tuple[KnownIssue, ...] = ()
    plan_issues: tuple[KnownIssue, ...] = ()
    code_issues: tuple[KnownIssue, ...] = ()
    accepted: list[GateSummary] = field(default_factory=list)

    @property
    def known_issues(self) -> tuple[KnownIssue, ...]:
        return (*self.design_issues, *self.plan_issues, *self.code_issues)


class RunState:
    """A run. Its numbers only grow, so that no two steps have the same name."""

    def __init__(self, feature: PipelineGoal) -> None:
        self.feature = feature
        self.lane, self.lane_reason = feature.lane, feature.lane_reason
        self.lane_state = LaneState(tip=feature.base_commit)
        self.iteration = 0
        """The number of the planning iteration: every implemented plan has its own."""
        self.elapsed_ms = 0
        self.plan_gates: list[PlanGateSummary] = []
        self.gates: list[GateSummary] = []
        self.reviews: list[ReviewerVerdict] = []
        self.single_model = False
        self.design_round = 0
        self.revision_questions = 0
        self.revised: list[str] = []
        """The agents that said that their own answer must be revised, and were asked again."""
        self.exhausted_loops: list[str] = []
        self.fixes = 0
        """How many fixes a person has ordered after a blocker."""
        self.answers: tuple[str, ...] = ()
        """What the user said about the concerns that the engine had about the request."""
        self.has_asked_about_request = False

    def has_revised(self, agent: str) -> bool:
        """Return whether the agent has revised its answer because it said so itself."""
        return agent in self.revised

    def add_gaps(self, *gaps: str) -> None:
        self.lane_state.gaps = tuple(dict.fromkeys((*self.lane_state.gaps, *gaps)))

    def record_judges(self, judges: tuple[str, ...]) -> None:
        """Record that the reviewers of the code have judged the criteria that no check and no architect has."""
        judged = {gate.run_id: _add_judges(gate, judges) for gate in self.lane_state.accepted}
        self.lane_state.accepted = [judged[gate.run_id] for gate in self.lane_state.accepted]
        self.gates = [judged.get(gate.run_id, gate) for gate in self.gates]

    @property
    def is_short(self) -> bool:
        return self.lane in SHORT_LANES

    def restart_in_lane(self, deeper: DeeperLaneError) -> None:
        self.lane, self.lane_reason = deeper.lane, deeper.why
        self.lane_state = LaneState(tip=self.feature.base_commit, earlier_failures=deeper.failures)

    def go_deeper(self, lane: Lane, reason: str) -> PipelineStep:
        """Switch to a deeper lane and keep everything: the deeper lane includes the steps so far."""
        self.lane, self.lane_reason = lane, reason
        yield from record_decision_note("lane", f"{lane}: {reason}")

    @property
    def unjudged_criteria(self) -> tuple[str, ...]:
        """The criteria of accepted tasks that no check shows and no architect judged, and the added requirements."""
        unjudged = (
            result.criterion
            for gate in self.lane_state.accepted
            for task in gate.tasks
            for result in task.criteria
            if result.status is CriterionStatus.UNJUDGED
        )
        return tuple(dict.fromkeys((*unjudged, *self.lane_state.requirements)))

    @property
    def code_criteria(self) -> tuple[str, ...]:
        """What the reviewers of the code judge."""
        return tuple(
            dict.fromkeys(
                (
                    *self.criteria,
                    *(f"added by the user: {requirement}" for requirement in self.lane_state.requirements),
                    *map(write_carried_criterion, self.lane_state.open_criticals),
                )
            )
        )

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria of the result, as reviewers see them."""
        if self.lane_state.spec is not None:
            return tuple(f"{criterion.id}: {criterion.text}" for criterion in self.lane_state.spec.acceptance_criteria)
        return tuple(
            criterion
            for task in (self.lane_state.plan.tasks if self.lane_state.plan else ())
            for criterion in task.done
        )


def _add_judges(gate: GateSummary, judges: tuple[str, ...]) -> GateSummary:
    def judge(result: CriterionResult) -> CriterionResult:
        is_open = result.status is CriterionStatus.UNJUDGED
        update = {"status": CriterionStatus.JUDGED, "judged_by": judges}
        return result.model_copy(update=update) if is_open else result

    tasks = tuple(task.model_copy(update={"criteria": tuple(map(judge, task.criteria))}) for task in gate.tasks)
    return gate.model_copy(update={"tasks": tasks})


def write_carried_criterion(finding: PanelFinding) -> str:
    """Write a critical finding of the design review as a criterion of the code."""
    return (
        f"critical finding of the design review, still open: “{finding.title}”: {finding.recommendation} "
        "Name it under `resolved` only if the change resolves it."
    )


# Effects.


def perform_effect(need: PipelineEffect) -> PipelineSteps[PipelineEffectResult]:
    (sent,) = yield (need,)
    return sent


def record_decision_note(kind: str, text: str, data: FrozenModel | None = None) -> PipelineStep:
    yield (RecordNote(kind, text, data),)


def read_reply(sent: PipelineEffectResult, kind: type[_O]) -> _O | AgentFailure:
    """Return the answer, or the failure. An agent that reports an error has not answered."""
    if isinstance(sent, AgentFailure):
        if sent.is_budget_exhausted:
            raise RunEndedError(RunOutcome.BUDGET_EXHAUSTED, sent.why, is_instructive=False)
        return sent
    output = demand_result(sent, AgentReply).output
    if not isinstance(output, kind):
        raise TypeError(f"expected {kind.__name__}, got {type(output).__name__}")
    if output.completion.status is CompletionStatus.ERROR:
        return AgentFailure(output.completion.summary, was_asked_once=True)
    return output


def read_supervised_reply(run: RunState, sent: PipelineEffectResult, kind: type[_O]) -> _O | AgentFailure:
    """Return the answer of an agent whose understanding is checked."""
    if isinstance(sent, AgentReply):
        run.lane_state.uncertainties = (*run.lane_state.uncertainties, *sent.uncertainties)
    return read_reply(sent, kind)


def demand_reply(run: RunState, sent: PipelineEffectResult, kind: type[_O], subject: str) -> _O:
    """Return an answer that the run cannot continue without."""
    output = read_supervised_reply(run, sent, kind)
    if isinstance(output, AgentFailure):
        raise RunEndedError(RunOutcome.FAILED, f"no {subject}: {output.why}")
    return output


def record_revision(run: RunState, agent: str, said: str) -> PipelineSteps[str]:
    """Record that an agent says that its own answer must be revised. It is asked once more, with these words."""
    run.revised.append(agent)
    text = f"you said that your answer needs a revision: {said}"
    yield from record_decision_note("revision", f"the {agent} says NEEDS_REVISION: {said}")
    return text


def demand_no_revision(run: RunState, agent: str, completion: Completion) -> PipelineStep:
    """Ask a person how to go on if the agent still says that its answer must be revised."""
    if completion.status is not CompletionStatus.NEEDS_REVISION:
        return
    run.revision_questions += 1
    gap = f"the {agent} says NEEDS_REVISION about its own answer: {completion.summary}"
    yield from record_decision_note("revision", gap)
    request = build_revision_request(agent, completion.summary, number=run.revision_questions)
    decision = yield from ask_for_approval(request, by_person=True)
    if decision.option == "abort":
        raise RunEndedError(RunOutcome.HALTED, f"aborted by the user: {gap}", is_instructive=False)
    run.add_gaps(f"{gap}; the user went on with it")


def await_fix(run: RunState, reason: str) -> PipelineStep:
    """Halt the run because of a blocker, unless a person has ordered that it is fixed."""
    sent = yield from perform_effect(AwaitFix(run.fixes + 1))
    if isinstance(sent, PendingAnswer):
        raise RunEndedError(RunOutcome.HALTED, reason, awaits_fix=run.fixes + 1)
    demand_result(sent, FixOrdered)
    run.fixes += 1
    yield from record_decision_note("fix", f"ordered by a person: {reason}")


def demand_result(sent: PipelineEffectResult, kind: type[_S]) -> _S:
    """Return the result of an effect; end the run if it waits for a person."""
    if isinstance(sent, PendingAnswer):
        raise RunEndedError(RunOutcome.NEEDS_HUMAN, sent.question, sent, is_instructive=False)
    if not isinstance(sent, kind):
        raise TypeError(f"expected {kind.__name__}, got {sent!r}")
    return sent


def ask_for_approval(request: ApprovalRequest, *, by_person: bool = False) -> PipelineSteps[ApprovalDecision]:
    """Return the decision, which is one of the options. If nobody can decide now, the run waits."""
    sent = yield from perform_effect(AskForApproval(request, by_person))
    if isinstance(sent, PendingAnswer):
        raise RunEndedError(RunOutcome.NEEDS_HUMAN, sent.question, request, is_instructive=False)
    decision = demand_result(sent, ApprovalDecision)
    validate_option(request, decision.option)
    return decision
