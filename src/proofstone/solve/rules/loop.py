"""The task: perceive, plan, pursue, merge, direct, until the controller accepts or abandons. Pure: a generator.

    perceive ──► plan ──► pursue, number by number ──► all matched? ──► merge and verify ──► controller
                  ▲           (sequence N+1 never starts after N failed)    no ─────────────────▲  │
                  └───────────────── PlanDirective ◄───────────────────────────────────────────────┘──► FinalResult

What a role hands to another it says over the bus. Ids are given here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Final

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.roles.models.solve import FailureOutput, PerceivedOutput, SolvePlanOutput
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
from proofstone.solve.rules.directing import Came, Merged, blocked_after, directive_of, fanned_in, merge, next_moves
from proofstone.solve.rules.effects import (
    Answered,
    AskForFailure,
    AskPerceiver,
    AskPerson,
    AskPlanner,
    AskTime,
    Elapsed,
    Failed,
    Heard,
    Loop,
    Need,
    NotTaken,
    Planned,
    Pursue,
    Pursued,
    Recall,
    Round,
    Say,
    Sent,
    Solved,
)
from proofstone.solve.rules.gradient import DEFAULT_POLICY, Policy, Reading, Row, Weights, decide, reading
from proofstone.solve.rules.plan_rules import Blocks, Bounds, why_not
from proofstone.solve.rules.subtask import text_of

REJECTIONS: Final = 2
"""Plans of one round that are sent back to the planner."""
QUESTIONS: Final = 1
"""That a perceiver may ask."""
_PLANNED: Final = "there is a plan that can be taken"

Step = Generator[Need, Sent, None]
Ending = Generator[Need, Sent, Solved]


@dataclass(frozen=True)
class Goal:
    """What is wanted, and with what."""

    task_id: str
    raw_input: str
    tools: tuple[str, ...]
    """That an executor has."""
    dispatched_at: str
    weights: Weights = field(default_factory=Weights)
    policy: Policy = DEFAULT_POLICY


def solve(goal: Goal) -> Loop:
    """The loop, to its result."""
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
        yield Say("controller", "planner", directive)
        if row.directive is DirectiveName.ABANDON:
            return (yield from loop.abandon(directive))


class _Loop:
    """The loop while it goes on."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._spec = TaskSpec(task_id=goal.task_id, intent=goal.raw_input, raw_input=goal.raw_input)
        # Of this round.
        self._round = 0
        self._calibration = Calibration()
        self._rejected: list[str] = []
        self._criteria: tuple[Criterion, ...] = ()
        self._subtasks: tuple[SubTask, ...] = ()
        """None, if it has no plan."""
        self._outcomes: tuple[SubTaskOutcome, ...] = ()
        self._merged = Merged()
        self._elapsed_ms = 0
        # Of all of them.
        self._last = Came()
        """The last plan that there was, and all that has come since."""
        self._plans: list[tuple[SubTask, ...]] = []
        self._all_rejected: list[str] = []
        self._told: list[ReplanRequest | OutcomeSummary] = []
        self._readings: list[Reading] = []
        self._directives: list[PlanDirective] = []
        self._blocks = Blocks()

    @property
    def _replans(self) -> int:
        return self._round - 1

    @property
    def _reading(self) -> Reading:
        return self._readings[-1]

    @property
    def _came(self) -> Came:
        """Of this round."""
        return Came(self._subtasks, self._outcomes, self._merged.verdicts)

    @property
    def _bounds(self) -> Bounds:
        directive = self._directives[-1] if self._directives else None
        return Bounds(self._goal.tools, directive, self._calibration, self._plans, self._blocks)

    # Perceive.

    def perceive(self) -> Step:
        """The person's words are carried on as they are. If nobody perceives, they are the intent."""
        for asked in range(QUESTIONS + 1):
            answer = yield AskPerceiver(self._goal.raw_input, self._spec.clarification)
            if not isinstance(answer, Heard) or not isinstance(answer.output, PerceivedOutput):
                break
            heard = answer.output
            self._spec = self._spec.model_copy(update={"intent": heard.intent, "constraints": heard.constraints})
            if not heard.question.strip() or asked == QUESTIONS:
                break
            said = yield AskPerson(heard.question)
            if not isinstance(said, Answered) or not said.text.strip():
                break
            self._spec = self._spec.model_copy(update={"clarification": said.text})
        yield Say("perceiver", "planner", self._spec)

    # Plan.

    def plan(self) -> Step:
        """A new round, with a plan if there is one that can be taken."""
        self._round += 1
        self._subtasks, self._outcomes, self._merged, self._rejected = (), (), Merged(), []
        calibration = yield Recall(self._spec)
        self._calibration = calibration if isinstance(calibration, Calibration) else Calibration()
        bounds, why, of = self._bounds, "", FailureClass.LOGICAL
        for attempt in range(1, REJECTIONS + 2):
            answer = yield self._question(attempt, bounds, why)
            if not isinstance(answer, Heard) or not isinstance(answer.output, SolvePlanOutput):
                why = answer.why if isinstance(answer, Failed) else "the planner gave no plan"
                of = FailureClass.ENVIRONMENTAL
                break
            wrong = why_not(answer.output, bounds, self._spec.intent, self._spec.raw_input)
            if not wrong:
                yield from self._dispatch(answer.output)
                return
            why = "; ".join(wrong)
            self._rejected.append(why)
            yield NotTaken(self._round, attempt, why)
        self._outcomes = (self._no_plan(why, of),)

    def _question(self, attempt: int, bounds: Bounds, rejected: str) -> AskPlanner:
        return AskPlanner(
            self._round,
            attempt,
            self._spec,
            self._calibration,
            bounds.directive,
            self._last.subtasks,
            self._last.outcomes,
            rejected,
            self._last.merged,
            tuple(sorted(bounds.blocked_tools)),
            tuple(sorted(bounds.blocked_targets)),
        )

    def _dispatch(self, plan: SolvePlanOutput) -> Step:
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
        yield Planned(self._round, self._subtasks)
        for subtask in self._subtasks:
            yield Say("planner", "executor", subtask)
        yield Say("planner", "meta_validator", self._manifest)

    @property
    def _manifest(self) -> DispatchManifest:
        return DispatchManifest(
            task_id=self._goal.task_id,
            subtask_ids=tuple(subtask.subtask_id for subtask in self._subtasks),
            task_spec=self._spec,
            dispatched_at=self._goal.dispatched_at,
            task_criteria=self._criteria,
        )

    def _no_plan(self, why: str, of: FailureClass) -> SubTaskOutcome:
        """A round without a plan has failed like any other: nothing is near. Plans that were not taken are the
        planner's fault; else it would look like progress to insist on one."""
        missing = CriterionVerdict(
            criterion=_PLANNED, mode=CriterionMode.VERIFIABLE, verdict="fail", failure_class=of, evidence=why
        )
        return SubTaskOutcome(
            subtask_id=f"{self._goal.task_id}-r{self._round}-plan",
            parent_task_id=self._goal.task_id,
            status=OutcomeStatus.FAILED,
            failure_reason=f"there is no plan: {why}",
            criteria_verdicts=(missing,),
        )

    # Pursue and merge.

    def pursue(self) -> Step:
        """Number by number; what waits for something that failed is not begun."""
        tools, targets = (tuple(sorted(item)) for item in (self._bounds.blocked_tools, self._bounds.blocked_targets))
        for number in sorted({subtask.sequence for subtask in self._subtasks}):
            together = tuple(subtask for subtask in self._subtasks if subtask.sequence == number)
            came = yield Pursue(self._round, self._spec, together, self._outcomes, tools, targets)
            if not isinstance(came, Pursued):
                raise TypeError(f"outcomes are wanted, not {came!r}")
            self._outcomes = (*self._outcomes, *fanned_in(together, came.outcomes))
            if self._came.failed:
                return

    def merge(self) -> Step:
        """The fan-in gate: nothing is merged, and no model is asked, while anything has failed."""
        if self._subtasks and not self._came.failed:
            self._merged = yield from merge(self._round, self._manifest, self._outcomes)

    # Control.

    def measure(self) -> Generator[Need, Sent, Row]:
        """What was seen goes to the controller; the row of its table that holds."""
        elapsed = yield AskTime(self._round)
        self._elapsed_ms = elapsed.ms if isinstance(elapsed, Elapsed) else 0
        told = self._summary() if self._merged.verified else self._request()
        yield Say("meta_validator", "controller", told)
        self._told.append(told)
        self._readings.append(
            reading(
                self._outcomes,
                self._merged.verdicts,
                replans=self._replans,
                elapsed_ms=self._elapsed_ms,
                before=self._readings[-1] if self._readings else None,
                weights=self._goal.weights,
                verified=self._merged.verified,
            )
        )
        return decide(self._goal.policy, self._reading, self._goal.weights)

    def _summary(self) -> OutcomeSummary:
        return OutcomeSummary(
            task_id=self._goal.task_id,
            summary=self._merged.summary,
            output=self._merged.output,
            elapsed_ms=self._elapsed_ms,
            outcomes=self._outcomes,
            merged_verdicts=self._merged.verdicts,
        )

    def _request(self) -> ReplanRequest:
        failed = self._came.failed
        told = [item.failure_reason or item.subtask_id for item in failed]
        told += [f"{verdict.criterion}: {verdict.evidence}" for verdict in self._merged.verdicts if verdict.failed]
        return ReplanRequest(
            task_id=self._goal.task_id,
            gap_summary="; ".join(told),
            failed_subtasks=tuple(item.subtask_id for item in failed),
            correction_count=sum(max(0, len(outcome.gap_trajectory) - 1) for outcome in self._outcomes),
            elapsed_ms=self._elapsed_ms,
            outcomes=self._outcomes,
            merged_verdicts=self._merged.verdicts,
            recommendation="abandon" if self._replans >= self._goal.weights.max_replans else "replan",
        )

    def direct(self, row: Row) -> Generator[Need, Sent, PlanDirective]:
        """The round ends. What is accepted binds no plan, so it is shown and not kept."""
        goal, came = self._goal, self._came
        self._blocks = blocked_after(row, came, self._blocks, goal.tools)
        directive = directive_of(goal.task_id, row, self._reading, came, self._blocks, goal.weights)
        # Without a plan nothing has changed since the last one: what came of that still stands.
        self._last = came if came.subtasks else replace(self._last, outcomes=(*self._last.outcomes, *came.outcomes))
        if row.directive is not DirectiveName.ACCEPT:
            self._directives.append(directive)
        self._all_rejected += [f"round {self._round}: {why}" for why in self._rejected]
        yield Round(
            self._round,
            self._reading,
            directive,
            self._outcomes,
            self._subtasks,
            self._elapsed_ms,
            tuple(self._rejected),
            came.merged,
        )
        return directive

    # The end.

    def accept(self) -> Ending:
        result = FinalResult(
            task_id=self._goal.task_id,
            status=FinalStatus.ACCEPTED,
            summary=self._merged.summary,
            output=self._merged.output,
            loss=self._reading.loss,
            grad_l=self._reading.grad_l,
            replans=self._replans,
        )
        yield Say("controller", "person", result)
        return self._solved(result)

    def abandon(self, directive: PlanDirective) -> Ending:
        """Not a bare failure: what was done, and what the person could do now. If the planner cannot say, code does."""
        last = self._last
        done = [outcome for outcome in last.outcomes if outcome.matched]
        answer = yield AskForFailure(self._spec, directive, last.outcomes, last.subtasks, last.merged)
        if isinstance(answer, Heard) and isinstance(answer.output, FailureOutput):
            said = answer.output
            partial, moves, summary = said.partial, said.next_moves, said.summary
        else:
            partial, moves, summary = (), next_moves(directive, self._came), directive.rationale
        known = tuple(f"{item.subtask_id}: {text_of(item.output)}" for item in done)
        result = FinalResult(
            task_id=self._goal.task_id,
            status=FinalStatus.PARTIAL if done else FinalStatus.ABANDONED,
            summary=summary,
            loss=self._reading.loss,
            grad_l=self._reading.grad_l,
            replans=self._replans,
            partial=partial if partial and done else known,
            next_moves=moves,
        )
        yield Say("controller", "person", result)
        return self._solved(result)

    def _solved(self, result: FinalResult) -> Solved:
        return Solved(
            result=result,
            spec=self._spec,
            readings=tuple(self._readings),
            directives=tuple(self._directives),
            outcomes=self._outcomes,
            subtasks=self._subtasks,
            rejected=tuple(self._all_rejected),
            rounds=tuple(self._told),
            all_subtasks=tuple(subtask for plan in self._plans for subtask in plan),
        )
