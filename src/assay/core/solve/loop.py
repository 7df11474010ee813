"""The task: perceive, plan, pursue, merge, direct, until the controller accepts or abandons. Pure: a generator.

    perceive ──► plan ──► pursue, number by number ──► all matched? ──► merge and verify ──► controller
                  ▲           (sequence N+1 never starts after N failed)    no ─────────────────▲  │
                  └───────────────── PlanDirective ◄───────────────────────────────────────────────┘──► FinalResult

What a role hands to another it says over the bus. Ids are given here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from assay.contracts.solve.answers import FailureOutput, MergeOutput, PerceivedOutput, SolvePlanOutput
from assay.contracts.solve.messages import (
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
from assay.core.gradient import (
    DEFAULT_POLICY,
    Policy,
    Reading,
    Row,
    Weights,
    decide,
    dominant,
    failure_classes,
    gradient_of,
    rationale,
    reading,
)
from assay.core.memory.calibration import Calibration
from assay.core.solve.needs import (
    Answered,
    AskForFailure,
    AskMetaValidator,
    AskPerceiver,
    AskPerson,
    AskPlanner,
    AskTime,
    Elapsed,
    Failed,
    Heard,
    Look,
    Looked,
    Loop,
    Need,
    Pursue,
    Pursued,
    Recall,
    Round,
    Say,
    Sent,
    Solved,
)
from assay.core.solve.plan_rules import Bounds, why_not
from assay.core.solve.verdicts import crashed, failed, judged, looked_at, unjudged

REJECTIONS: Final = 2
"""Plans of one round that are sent back to the planner."""
QUESTIONS: Final = 1
"""That a perceiver may ask."""
_REQUEST: Final = Criterion(criterion="the result is what the person asked for, in their own words")
_PLANNED: Final = "there is a plan that can be taken"

Step = Generator[Need, Sent, None]


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


@dataclass(frozen=True)
class _Merged:
    """What the meta-validator has made of what matched."""

    output: JsonValue
    summary: str
    verdicts: tuple[CriterionVerdict, ...]

    @property
    def verified(self) -> bool:
        return bool(self.verdicts) and not any(one.failed for one in self.verdicts)


def solve(goal: Goal) -> Loop:
    """The loop, to its result."""
    loop = _Loop(goal)
    yield from loop.perceive()
    while True:
        loop.round += 1
        yield from loop.plan()
        yield from loop.pursue()
        merged = yield from loop.merge()
        row = yield from loop.measure(merged)
        if row.directive is DirectiveName.ACCEPT and merged is not None:
            return (yield from loop.accept(merged))
        directive = loop.direct(row)
        yield Round(loop.round, loop.reading, directive, loop.outcomes)
        if row.directive is DirectiveName.ABANDON:
            return (yield from loop.abandon(directive))
        yield Say("controller", "planner", directive)


class _Loop:
    """The loop while it goes on."""

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self.round = 0
        self.outcomes: tuple[SubTaskOutcome, ...] = ()
        self._spec = TaskSpec(task_id=goal.task_id, intent=goal.raw_input, raw_input=goal.raw_input)
        self._criteria: tuple[Criterion, ...] = ()
        self._subtasks: tuple[SubTask, ...] = ()
        """Of this round; none, if it has no plan."""
        self._tried: tuple[SubTask, ...] = ()
        """Of the last round that had one."""
        self._calibration = Calibration()
        self._readings: list[Reading] = []
        self._directives: list[PlanDirective] = []
        self._rejected: list[str] = []
        self._merged_verdicts: tuple[CriterionVerdict, ...] = ()

    @property
    def reading(self) -> Reading:
        return self._readings[-1]

    @property
    def _replans(self) -> int:
        return self.round - 1

    @property
    def _last_directive(self) -> PlanDirective | None:
        return self._directives[-1] if self._directives else None

    # Perceive.

    def perceive(self) -> Step:
        """The person's words are carried on as they are. If nobody perceives, they are the intent."""
        clarification = ""
        for asked in range(QUESTIONS + 1):
            answer = yield AskPerceiver(self.goal.raw_input, clarification)
            if not isinstance(answer, Heard) or not isinstance(answer.output, PerceivedOutput):
                break
            heard = answer.output
            self._spec = self._spec.model_copy(update={"intent": heard.intent, "constraints": heard.constraints})
            if not heard.question.strip() or asked == QUESTIONS:
                break
            said = yield AskPerson(heard.question)
            clarification = said.text if isinstance(said, Answered) else ""
            if not clarification.strip():
                break
        yield Say("perceiver", "planner", self._spec)

    # Plan.

    def plan(self) -> Step:
        calibration = yield Recall(self._spec)
        self._calibration = calibration if isinstance(calibration, Calibration) else Calibration()
        bounds = Bounds(self.goal.tools, self._last_directive, self._calibration, self._tried)
        rejected, of = "", FailureClass.LOGICAL
        self._subtasks, came = (), self.outcomes
        for attempt in range(1, REJECTIONS + 2):
            answer = yield AskPlanner(
                self.round, attempt, self._spec, self._calibration, bounds.directive, self._tried, came, rejected
            )
            if not isinstance(answer, Heard) or not isinstance(answer.output, SolvePlanOutput):
                rejected = answer.why if isinstance(answer, Failed) else "the planner gave no plan"
                of = FailureClass.ENVIRONMENTAL
                break
            wrong = why_not(answer.output, bounds, self._spec.intent)
            if not wrong:
                yield from self._dispatch(answer.output)
                return
            rejected = "; ".join(wrong)
            self._rejected.append(f"round {self.round}: {rejected}")
        self.outcomes = (self._no_plan(rejected, of),)

    def _dispatch(self, plan: SolvePlanOutput) -> Step:
        task = self.goal.task_id
        self._criteria = plan.task_criteria
        self._subtasks = tuple(
            SubTask(
                subtask_id=f"{task}-r{self.round}-s{number}",
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
        self._tried, self.outcomes = self._subtasks, ()
        for subtask in self._subtasks:
            yield Say("planner", "executor", subtask)
        yield Say("planner", "meta_validator", self._manifest)

    @property
    def _manifest(self) -> DispatchManifest:
        return DispatchManifest(
            task_id=self.goal.task_id,
            subtask_ids=tuple(one.subtask_id for one in self._subtasks),
            task_spec=self._spec,
            dispatched_at=self.goal.dispatched_at,
            task_criteria=self._criteria,
        )

    def _no_plan(self, why: str, of: FailureClass) -> SubTaskOutcome:
        """A round without a plan has failed like any other: nothing is near. Plans that were not taken are the
        planner's fault; else it would look like progress to insist on one."""
        missing = CriterionVerdict(
            criterion=_PLANNED, mode=CriterionMode.VERIFIABLE, verdict="fail", failure_class=of, evidence=why
        )
        return SubTaskOutcome(
            subtask_id=f"{self.goal.task_id}-r{self.round}-plan",
            parent_task_id=self.goal.task_id,
            status=OutcomeStatus.FAILED,
            failure_reason=f"there is no plan: {why}",
            criteria_verdicts=(missing,),
        )

    # Pursue.

    def pursue(self) -> Step:
        """Number by number; what waits for something that failed is not begun."""
        blocked = tuple(sorted(Bounds(self.goal.tools, self._last_directive, self._calibration).blocked_tools))
        for number in sorted({one.sequence for one in self._subtasks}):
            together = tuple(one for one in self._subtasks if one.sequence == number)
            came = yield Pursue(self.round, self._spec, together, self.outcomes, blocked)
            if not isinstance(came, Pursued):
                raise TypeError(f"outcomes are wanted, not {came!r}")
            self.outcomes = (*self.outcomes, *_fanned_in(together, came.outcomes))
            if not all(one.matched for one in self.outcomes):
                return

    # Merge.

    def merge(self) -> Generator[Need, Sent, _Merged | None]:
        """The fan-in gate: no model is asked while anything has failed. If in doubt, it is rejected."""
        if not self._subtasks or not all(one.matched for one in self.outcomes):
            return None
        plausible = tuple(one for one in self._criteria if one.mode is CriterionMode.PLAUSIBLE)
        verifiable = tuple(one for one in self._criteria if one.mode is CriterionMode.VERIFIABLE)
        answer = yield AskMetaValidator(self.round, self._manifest, self.outcomes, plausible)
        if not isinstance(answer, Heard) or not isinstance(answer.output, MergeOutput):
            why = answer.why if isinstance(answer, Failed) else "there is no answer"
            return _Merged(None, "", unjudged((*self._criteria, _REQUEST), f"it could not be verified: {why}"))
        merged = answer.output
        verdicts = judged(plausible, merged.verdicts)
        if merged.meets_the_request != "yes":
            doubt = f"{merged.meets_the_request}: {merged.why}"
            verdicts = (*verdicts, failed(_REQUEST, doubt, FailureClass.LOGICAL))
        if verifiable:
            looked = yield Look(f"{self.goal.task_id}-r{self.round}", 1, verifiable, merged.output)
            verdicts = (*verdicts, *looked_at(verifiable, looked.verdicts if isinstance(looked, Looked) else ()))
        return _Merged(merged.output, merged.summary, verdicts)

    # Control.

    def measure(self, merged: _Merged | None) -> Generator[Need, Sent, Row]:
        """What was seen goes to the controller; the row of its table that holds."""
        elapsed = yield AskTime(self.round)
        ms = elapsed.ms if isinstance(elapsed, Elapsed) else 0
        verdicts = merged.verdicts if merged else ()
        verified = merged is not None and merged.verified
        if verified and merged is not None:
            yield Say("meta_validator", "controller", self._summary(merged, ms))
        else:
            yield Say("meta_validator", "controller", self._request(verdicts, ms))
        self._readings.append(
            reading(
                self.outcomes,
                verdicts,
                replans=self._replans,
                elapsed_ms=ms,
                before=self._readings[-1] if self._readings else None,
                weights=self.goal.weights,
                verified=verified,
            )
        )
        self._merged_verdicts = verdicts
        return decide(self.goal.policy, self.reading, self.goal.weights)

    def _summary(self, merged: _Merged, ms: int) -> OutcomeSummary:
        return OutcomeSummary(
            task_id=self.goal.task_id,
            summary=merged.summary,
            output=merged.output,
            elapsed_ms=ms,
            outcomes=self.outcomes,
            merged_verdicts=merged.verdicts,
        )

    def _request(self, verdicts: tuple[CriterionVerdict, ...], ms: int) -> ReplanRequest:
        wrong = [one for one in self.outcomes if not one.matched]
        told = [one.failure_reason or one.subtask_id for one in wrong]
        told += [f"{one.criterion}: {one.evidence}" for one in verdicts if one.failed]
        return ReplanRequest(
            task_id=self.goal.task_id,
            gap_summary="; ".join(told),
            failed_subtasks=tuple(one.subtask_id for one in wrong),
            correction_count=sum(max(0, len(one.gap_trajectory) - 1) for one in self.outcomes),
            elapsed_ms=ms,
            outcomes=self.outcomes,
            merged_verdicts=verdicts,
            recommendation="abandon" if self._replans >= self.goal.weights.max_replans else "replan",
        )

    def direct(self, row: Row) -> PlanDirective:
        it, weights = self.reading, self.goal.weights
        wrong = [one for one in self.outcomes if not one.matched] or list(self.outcomes)
        criteria = [v for one in wrong for v in one.criteria_verdicts if v.failed]
        criteria += [one for one in self._merged_verdicts if one.failed]
        tools = tuple(dict.fromkeys(tool for one in wrong for tool in one.tools))
        targets = tuple(dict.fromkeys(target for one in wrong for target in one.targets))
        blocked_tools, blocked_targets = self._blocked(row, tools, targets)
        directive = PlanDirective(
            task_id=self.goal.task_id,
            loss=it.loss,
            gradient=gradient_of(it, weights),
            directive=row.directive,
            blocked_tools=blocked_tools,
            blocked_targets=blocked_targets,
            failed_criterion=criteria[0].criterion if criteria else "",
            failure_class=dominant(failure_classes(self.outcomes, self._merged_verdicts)),
            budget_pressure=it.loss.Omega,
            grad_l=it.grad_l,
            suggested_alternatives=(f"another target than {', '.join(targets)}",) if row.hint and targets else (),
            rationale=rationale(row, it),
        )
        self._directives.append(directive)
        return directive

    def _blocked(
        self, row: Row, tools: tuple[str, ...], targets: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of the tools and targets of what failed, those that the next plan may not have. One tool is always left. A
        round that has tried nothing lifts nothing."""
        last = self._last_directive
        if last and not self._subtasks:
            return last.blocked_tools, last.blocked_targets
        left = set(self.goal.tools) - set(tools)
        return tools if row.blocks and left else (), targets if row.directive is DirectiveName.CHANGE_PATH else ()

    # The end.

    def accept(self, merged: _Merged) -> Generator[Need, Sent, Solved]:
        result = FinalResult(
            task_id=self.goal.task_id,
            status=FinalStatus.ACCEPTED,
            summary=merged.summary,
            output=merged.output,
            loss=self.reading.loss,
            grad_l=self.reading.grad_l,
            replans=self._replans,
        )
        yield Say("controller", "person", result)
        return self._solved(result)

    def abandon(self, directive: PlanDirective) -> Generator[Need, Sent, Solved]:
        """Not a bare failure: what was done, and what the person could do now. If the planner cannot say, code does."""
        done = [one for one in self.outcomes if one.matched]
        yield Say("controller", "planner", directive)
        answer = yield AskForFailure(self._spec, directive, self.outcomes)
        if isinstance(answer, Heard) and isinstance(answer.output, FailureOutput):
            said = answer.output
            partial, moves, summary = said.partial, said.next_moves, said.summary
        else:
            partial, moves, summary = (), _next_moves(directive), f"abandoned: {directive.rationale}"
        known = tuple(f"{one.subtask_id}: {one.output}" for one in done)
        result = FinalResult(
            task_id=self.goal.task_id,
            status=FinalStatus.PARTIAL if done else FinalStatus.ABANDONED,
            summary=summary,
            loss=self.reading.loss,
            grad_l=self.reading.grad_l,
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
            outcomes=self.outcomes,
            subtasks=self._subtasks,
            rejected=tuple(self._rejected),
        )


def _fanned_in(wanted: Sequence[SubTask], came: Sequence[SubTaskOutcome]) -> tuple[SubTaskOutcome, ...]:
    """One outcome for each subtask, whatever came: one that is missing has failed, and one that nobody asked for is
    left out. So nothing that is lost on the way can hang the task, or pass."""
    found = {one.subtask_id: one for one in reversed(came)}
    return tuple(_outcome_of(one, found.get(one.subtask_id)) for one in wanted)


def _outcome_of(subtask: SubTask, came: SubTaskOutcome | None) -> SubTaskOutcome:
    """What matched shows it, by each of its criteria: else it has not."""
    if came is None:
        why = "its outcome never came"
    elif came.matched and _passed(came) != [one.criterion for one in subtask.success_criteria]:
        why = "its outcome says that it matched, and does not show it"
    else:
        return came
    return SubTaskOutcome(
        subtask_id=subtask.subtask_id,
        parent_task_id=subtask.parent_task_id,
        status=OutcomeStatus.FAILED,
        failure_reason=why,
        criteria_verdicts=crashed(subtask.success_criteria, why),
    )


def _passed(came: SubTaskOutcome) -> list[str]:
    return [one.criterion for one in came.criteria_verdicts if not one.failed]


def _next_moves(directive: PlanDirective) -> tuple[str, ...]:
    """Where nobody else says what could be done."""
    blamed = directive.failed_criterion or "what was asked for"
    first = f"look at what failed first: {blamed}"
    if directive.failure_class is FailureClass.ENVIRONMENTAL:
        return first, "put right what was in the way, and run it again"
    return first, "say the goal more narrowly, or in parts, and run it again"
