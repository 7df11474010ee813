"""The task: perceive, plan, pursue, merge, direct, until the controller accepts or abandons. Pure: a generator.

    perceive ──► plan ──► pursue, number by number ──► all matched? ──► merge and verify ──► controller
                  ▲           (sequence N+1 never starts after N failed)    no ─────────────────▲  │
                  └───────────────── PlanDirective ◄───────────────────────────────────────────────┘──► FinalResult

Roles send each other messages on the bus. All ids are assigned here.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Final

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.roles.models.solve import FailureOutput, PerceiveOutput, SolvePlanOutput
from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    DispatchManifest,
    FailureClass,
    FinalResult,
    FinalStatus,
    OutcomeStatus,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.solve.rules.directing import (
    MergedResult,
    RoundResult,
    build_directive,
    fan_in,
    merge_outcomes,
    suggest_next_moves,
    update_blocks,
)
from proofstone.solve.rules.effects import (
    AskForFailureReport,
    AskPerceiver,
    AskPerson,
    AskPlanner,
    ElapsedTime,
    MeasureTime,
    PublishMessage,
    PursueSubtasks,
    RecallMemory,
    ReportPlan,
    ReportRejectedPlan,
    ReportRound,
    SolveAgentFailure,
    SolveAgentReply,
    SolveEffect,
    SolveEffectResult,
    SolveResult,
    SolveWorkflow,
    SubtaskOutcomes,
    UserReply,
)
from proofstone.solve.rules.gradient import (
    DEFAULT_POLICY,
    LossWeights,
    Measurement,
    Policy,
    PolicyRow,
    decide,
    measure_round,
)
from proofstone.solve.rules.plan_rules import Blocks, PlanConstraints, find_solve_plan_problems
from proofstone.solve.rules.subtask import format_output

MAX_PLAN_REJECTIONS: Final = 2
"""How many plans of one round may be rejected and sent back to the planner."""
MAX_QUESTIONS: Final = 1
"""How many questions a perceiver may ask."""
_PLAN_CRITERION: Final = "there is an acceptable plan"

LoopStep = Generator[SolveEffect, SolveEffectResult, None]
LoopEnd = Generator[SolveEffect, SolveEffectResult, SolveResult]


@dataclass(frozen=True)
class SolveGoal:
    """The goal, and the means to pursue it."""

    task_id: str
    raw_input: str
    tools: tuple[str, ...]
    """The tools of an executor."""
    dispatched_at: str
    weights: LossWeights = field(default_factory=LossWeights)
    policy: Policy = DEFAULT_POLICY


def solve(goal: SolveGoal) -> SolveWorkflow:
    """Run the loop to its result."""
    loop = _Loop(goal)
    yield from loop.perceive()
    while True:
        yield from loop.plan()
        yield from loop.pursue()
        yield from loop.merge()
        row = yield from loop.measure()
        directive = yield from loop.direct(row)
        if row.directive is DirectiveName.ACCEPT:
            return (yield from loop.accept())
        yield PublishMessage("controller", "planner", directive)
        if row.directive is DirectiveName.ABANDON:
            return (yield from loop.abandon(directive))


class _Loop:
    """The state of the loop."""

    def __init__(self, goal: SolveGoal) -> None:
        self._goal = goal
        self._spec = TaskSpec(task_id=goal.task_id, intent=goal.raw_input, raw_input=goal.raw_input)
        # The state of the current round.
        self._round = 0
        self._calibration = Calibration()
        self._rejected: list[str] = []
        self._criteria: tuple[Criterion, ...] = ()
        self._subtasks: tuple[SubTask, ...] = ()
        """Empty if the round has no plan."""
        self._outcomes: tuple[SubTaskOutcome, ...] = ()
        self._merged = MergedResult()
        self._elapsed_ms = 0
        # The state of all rounds.
        self._last_result = RoundResult()
        """The last plan, with all outcomes since."""
        self._plans: list[tuple[SubTask, ...]] = []
        self._all_rejected: list[str] = []
        self._reports: list[ReplanRequest | OutcomeSummary] = []
        self._readings: list[Measurement] = []
        self._directives: list[PlanDirective] = []
        self._blocks = Blocks()

    @property
    def _replans(self) -> int:
        return self._round - 1

    @property
    def _reading(self) -> Measurement:
        return self._readings[-1]

    @property
    def _result(self) -> RoundResult:
        """The result of the current round."""
        return RoundResult(self._subtasks, self._outcomes, self._merged.verdicts)

    @property
    def _bounds(self) -> PlanConstraints:
        directive = self._directives[-1] if self._directives else None
        return PlanConstraints(self._goal.tools, directive, self._calibration, self._plans, self._blocks)

    # Perceive.

    def perceive(self) -> LoopStep:
        """Perceive the intent. The user's words are passed on unchanged; without a perceiver they are the intent."""
        for count in range(MAX_QUESTIONS + 1):
            answer = yield AskPerceiver(self._goal.raw_input, self._spec.clarification)
            if not isinstance(answer, SolveAgentReply) or not isinstance(answer.output, PerceiveOutput):
                break
            perceived = answer.output
            self._spec = self._spec.model_copy(
                update={"intent": perceived.intent, "constraints": perceived.constraints}
            )
            if not perceived.question.strip() or count == MAX_QUESTIONS:
                break
            reply = yield AskPerson(perceived.question)
            if not isinstance(reply, UserReply) or not reply.text.strip():
                break
            self._spec = self._spec.model_copy(update={"clarification": reply.text})
        yield PublishMessage("perceiver", "planner", self._spec)

    # Plan.

    def plan(self) -> LoopStep:
        """Start a new round, with a plan if the planner makes an acceptable one."""
        self._round += 1
        self._subtasks, self._outcomes, self._merged, self._rejected = (), (), MergedResult(), []
        calibration = yield RecallMemory(self._spec)
        self._calibration = calibration if isinstance(calibration, Calibration) else Calibration()
        bounds, reason, failure_class = self._bounds, "", FailureClass.LOGICAL
        for attempt in range(1, MAX_PLAN_REJECTIONS + 2):
            answer = yield self._ask_planner(attempt, bounds, reason)
            if not isinstance(answer, SolveAgentReply) or not isinstance(answer.output, SolvePlanOutput):
                reason = answer.why if isinstance(answer, SolveAgentFailure) else "the planner gave no plan"
                failure_class = FailureClass.ENVIRONMENTAL
                break
            problems = find_solve_plan_problems(answer.output, bounds, self._spec.intent, self._spec.raw_input)
            if not problems:
                yield from self._accept_plan(answer.output)
                return
            reason = "; ".join(problems)
            self._rejected.append(reason)
            yield ReportRejectedPlan(self._round, attempt, reason)
        self._outcomes = (self._missing_plan_outcome(reason, failure_class),)

    def _ask_planner(self, attempt: int, bounds: PlanConstraints, rejected: str) -> AskPlanner:
        return AskPlanner(
            self._round,
            attempt,
            self._spec,
            self._calibration,
            bounds.directive,
            self._last_result.subtasks,
            self._last_result.outcomes,
            rejected,
            self._last_result.merged,
            tuple(sorted(bounds.blocked_tools)),
            tuple(sorted(bounds.blocked_targets)),
        )

    def _accept_plan(self, plan: SolvePlanOutput) -> LoopStep:
        task = self._goal.task_id
        self._criteria = plan.task_criteria
        self._subtasks = tuple(
            SubTask(
                subtask_id=f"{task}-r{self._round}-s{number}",
                parent_task_id=task,
                intent=draft.intent,
                success_criteria=draft.success_criteria,
                context=draft.context,
                sequence=draft.sequence,
                tools=draft.tools,
                files=draft.files,
            )
            for number, draft in enumerate(plan.subtasks, start=1)
        )
        self._plans.append(self._subtasks)
        yield ReportPlan(self._round, self._subtasks)
        for subtask in self._subtasks:
            yield PublishMessage("planner", "executor", subtask)
        yield PublishMessage("planner", "meta_validator", self._manifest)

    @property
    def _manifest(self) -> DispatchManifest:
        return DispatchManifest(
            task_id=self._goal.task_id,
            subtask_ids=tuple(subtask.subtask_id for subtask in self._subtasks),
            task_spec=self._spec,
            dispatched_at=self._goal.dispatched_at,
            task_criteria=self._criteria,
        )

    def _missing_plan_outcome(self, reason: str, failure_class: FailureClass) -> SubTaskOutcome:
        """Return the outcome of a round without a plan, which has failed like any other. Rejected plans are the
        planner's fault; otherwise insisting on one would look like progress.
        """
        missing = CriterionVerdict(
            criterion=_PLAN_CRITERION,
            mode=CriterionMode.VERIFIABLE,
            verdict="fail",
            failure_class=failure_class,
            evidence=reason,
        )
        return SubTaskOutcome(
            subtask_id=f"{self._goal.task_id}-r{self._round}-plan",
            parent_task_id=self._goal.task_id,
            status=OutcomeStatus.FAILED,
            failure_reason=f"there is no plan: {reason}",
            criteria_verdicts=(missing,),
        )

    # Pursue and merge.

    def pursue(self) -> LoopStep:
        """Pursue the subtasks in the order of their sequence; subtasks after a failed number never start."""
        tools, targets = (tuple(sorted(names)) for names in (self._bounds.blocked_tools, self._bounds.blocked_targets))
        for number in sorted({subtask.sequence for subtask in self._subtasks}):
            group = tuple(subtask for subtask in self._subtasks if subtask.sequence == number)
            result = yield PursueSubtasks(self._round, self._spec, group, self._outcomes, tools, targets)
            if not isinstance(result, SubtaskOutcomes):
                raise TypeError(f"expected outcomes, got {result!r}")
            self._outcomes = (*self._outcomes, *fan_in(group, result.outcomes))
            if self._result.failed_outcomes:
                return

    def merge(self) -> LoopStep:
        """Merge the outcomes, unless anything has failed: then nothing is merged and no model is asked."""
        if self._subtasks and not self._result.failed_outcomes:
            self._merged = yield from merge_outcomes(self._round, self._manifest, self._outcomes)

    # Control.

    def measure(self) -> Generator[SolveEffect, SolveEffectResult, PolicyRow]:
        """Report to the controller, and return the row of its policy that decides."""
        elapsed = yield MeasureTime(self._round)
        self._elapsed_ms = elapsed.ms if isinstance(elapsed, ElapsedTime) else 0
        report = self._build_summary() if self._merged.is_verified else self._build_replan_request()
        yield PublishMessage("meta_validator", "controller", report)
        self._reports.append(report)
        self._readings.append(
            measure_round(
                self._outcomes,
                self._merged.verdicts,
                replans=self._replans,
                elapsed_ms=self._elapsed_ms,
                before=self._readings[-1] if self._readings else None,
                weights=self._goal.weights,
                verified=self._merged.is_verified,
            )
        )
        return decide(self._goal.policy, self._reading, self._goal.weights)

    def _build_summary(self) -> OutcomeSummary:
        return OutcomeSummary(
            task_id=self._goal.task_id,
            summary=self._merged.summary,
            output=self._merged.output,
            elapsed_ms=self._elapsed_ms,
            outcomes=self._outcomes,
            merged_verdicts=self._merged.verdicts,
        )

    def _build_replan_request(self) -> ReplanRequest:
        failed = self._result.failed_outcomes
        gaps = [outcome.failure_reason or outcome.subtask_id for outcome in failed]
        gaps += [f"{verdict.criterion}: {verdict.evidence}" for verdict in self._merged.verdicts if verdict.is_failed]
        return ReplanRequest(
            task_id=self._goal.task_id,
            gap_summary="; ".join(gaps),
            failed_subtasks=tuple(outcome.subtask_id for outcome in failed),
            correction_count=sum(max(0, len(outcome.gap_trajectory) - 1) for outcome in self._outcomes),
            elapsed_ms=self._elapsed_ms,
            outcomes=self._outcomes,
            merged_verdicts=self._merged.verdicts,
            recommendation="abandon" if self._replans >= self._goal.weights.max_replans else "replan",
        )

    def direct(self, row: PolicyRow) -> Generator[SolveEffect, SolveEffectResult, PlanDirective]:
        """End the round. An accepting directive binds no later plan, so it is shown but not kept."""
        goal, result = self._goal, self._result
        self._blocks = update_blocks(row, result, self._blocks, goal.tools)
        directive = build_directive(goal.task_id, row, self._reading, result, self._blocks, goal.weights)
        # Without a plan nothing has changed since the last one, so its outcomes still count.
        self._last_result = (
            result
            if result.subtasks
            else replace(self._last_result, outcomes=(*self._last_result.outcomes, *result.outcomes))
        )
        if row.directive is not DirectiveName.ACCEPT:
            self._directives.append(directive)
        self._all_rejected += [f"round {self._round}: {reason}" for reason in self._rejected]
        yield ReportRound(
            self._round,
            self._reading,
            directive,
            self._outcomes,
            self._subtasks,
            self._elapsed_ms,
            tuple(self._rejected),
            result.merged,
        )
        return directive

    # The end.

    def accept(self) -> LoopEnd:
        result = FinalResult(
            task_id=self._goal.task_id,
            status=FinalStatus.ACCEPTED,
            summary=self._merged.summary,
            output=self._merged.output,
            loss=self._reading.loss,
            grad_l=self._reading.grad_l,
            replans=self._replans,
        )
        yield PublishMessage("controller", "person", result)
        return self._build_solved(result)

    def abandon(self, directive: PlanDirective) -> LoopEnd:
        """End without success: report what was achieved and what the user could do next. If the planner cannot say,
        code does.
        """
        last = self._last_result
        matched = [outcome for outcome in last.outcomes if outcome.is_matched]
        answer = yield AskForFailureReport(self._spec, directive, last.outcomes, last.subtasks, last.merged)
        if isinstance(answer, SolveAgentReply) and isinstance(answer.output, FailureOutput):
            failure = answer.output
            partial, moves, summary = failure.partial, failure.next_moves, failure.summary
        else:
            partial, moves, summary = (), suggest_next_moves(directive, self._result), directive.rationale
        achieved = tuple(f"{outcome.subtask_id}: {format_output(outcome.output)}" for outcome in matched)
        result = FinalResult(
            task_id=self._goal.task_id,
            status=FinalStatus.PARTIAL if matched else FinalStatus.ABANDONED,
            summary=summary,
            loss=self._reading.loss,
            grad_l=self._reading.grad_l,
            replans=self._replans,
            partial=partial if partial and matched else achieved,
            next_moves=moves,
        )
        yield PublishMessage("controller", "person", result)
        return self._build_solved(result)

    def _build_solved(self, result: FinalResult) -> SolveResult:
        return SolveResult(
            result=result,
            spec=self._spec,
            readings=tuple(self._readings),
            directives=tuple(self._directives),
            outcomes=self._outcomes,
            subtasks=self._subtasks,
            rejected=tuple(self._all_rejected),
            rounds=tuple(self._reports),
            all_subtasks=tuple(subtask for plan in self._plans for subtask in plan),
        )
