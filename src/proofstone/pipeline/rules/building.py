"""The steps that make the change: plan, plan gate, task gate, all checks on the merged tree, and the controller, which
directs the next plan after a failure. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from proofstone.agents.models import CompletionStatus
from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.roles.models.pipeline import PlannedTask, PlanOutput
from proofstone.agents.roles.models.solve_messages import DirectiveName
from proofstone.common.models import Lane
from proofstone.common.text import pluralize
from proofstone.gate.models import RunOutcome
from proofstone.gate.rules.direction import format_figures
from proofstone.pipeline.models.run import FinalChecks, GateSummary, PlanGateSummary
from proofstone.pipeline.rules.approvals import build_planning_request
from proofstone.pipeline.rules.directing import (
    build_verdicts,
    build_weights,
    decide_direction,
    describe_failures,
    format_directive,
)
from proofstone.pipeline.rules.effects import (
    AskPlan,
    Implement,
    MergedCheckResult,
    PendingAnswer,
    PlanGateResult,
    RunAllChecks,
    TaskGateResult,
    VerifyPlan,
)
from proofstone.pipeline.rules.plan_pointers import drop_dead_pointers
from proofstone.pipeline.rules.plan_text import (
    assign_task_ids,
    count_context_chars,
    render_plan_text,
    render_task_context,
)
from proofstone.pipeline.rules.planning import (
    LANES_BY_DEPTH,
    explain_lane_exit,
    find_deeper_lane,
    find_plan_problems,
    raise_plan_risks,
)
from proofstone.pipeline.rules.run_state import (
    DeeperLaneError,
    PipelineStep,
    PipelineSteps,
    RunEndedError,
    RunState,
    ask_for_approval,
    demand_no_revision,
    demand_reply,
    demand_result,
    perform_effect,
    record_decision_note,
    record_revision,
)
from proofstone.plans.models import Plan

MAX_REJECTED_PLANS: Final = 2
"""How many plans of one attempt may be rejected and sent back."""
MAX_RETURNS: Final = 1
"""How often the plan gate may send back a plan of one iteration."""
AMENDMENT_DIRECTIVE: Final = "The user has added requirements. Plan what they need, and change nothing else."


@dataclass(frozen=True)
class PlanningOrder:
    """The instructions to a planner: what to do differently, and what went wrong."""

    directive: str = ""
    failures: tuple[str, ...] = ()

    def extend(self, directive: str, failures: Iterable[str]) -> PlanningOrder:
        """Return the order with further instructions; the earlier ones still apply."""
        return PlanningOrder("\n".join(filter(None, (self.directive, directive))), (*self.failures, *failures))


def build_change(run: RunState, order: PlanningOrder) -> PipelineStep:
    """Build until every planned task and all checks have passed. The change is then in the tip."""
    while True:
        plan, text = yield from _PlanningIteration(run, order).plan()
        gate = yield from _implement(run, plan, text)
        checked = (yield from _run_checks(run)) if gate.outcome is RunOutcome.PASSED else None
        final = checked.checks if checked else None
        if checked is None or not checked.checks.passed:
            order = yield from _direct(run, plan, gate, final)
            continue
        run.lane_state.rejected_plans = ()
        if not checked.added:
            return
        yield from record_decision_note("added", f"new requirements to plan: {'; '.join(checked.added)}")
        order = PlanningOrder(AMENDMENT_DIRECTIVE, checked.added)


# Plan.


class _PlanningIteration:
    """One iteration of planning: attempts until a plan is accepted, verified and approved."""

    def __init__(self, run: RunState, order: PlanningOrder) -> None:
        self._run, self._order = run, order
        self._attempt = 0
        self._returns = 0
        self._approval_count = 0
        run.iteration += 1

    def plan(self) -> PipelineSteps[tuple[PlanOutput, str]]:
        """Return the plan, and its text as the task gate reads it."""
        run = self._run
        while True:
            plan = yield from self._accepted_plan()
            yield from self._check_lane(plan)
            if run.is_short:
                yield from self._record_plan(plan)
                return plan, self._render_text(plan)
            verified = yield from self._verify(plan)
            if verified is None:
                continue
            if run.lane_state.is_plan_approved or (yield from self._ask_approval(plan)):
                yield from self._record_plan(plan)
                return plan, self._render_text(plan, verified.mitigations)

    def _accepted_plan(self) -> PipelineSteps[PlanOutput]:
        """Return a plan that follows the rules. The planner receives the reasons for a rejection."""
        run, order = self._run, self._order
        for _ in range(MAX_REJECTED_PLANS + 1):
            self._attempt += 1
            plan = raise_plan_risks(
                demand_reply(run, (yield from perform_effect(self._plan_effect(order))), PlanOutput, "plan")
            )
            if plan.completion.status is CompletionStatus.NEEDS_REVISION and not run.has_revised("planner"):
                said = yield from record_revision(run, "planner", plan.completion.summary)
                order = self._order.extend("", (said,))
                problems: tuple[str, ...] = (said,)
                continue
            yield from demand_no_revision(run, "planner", plan.completion)
            plan, dropped = drop_dead_pointers(plan, run.lane_state.spec, run.lane_state.design)
            for note in dropped:
                yield from record_decision_note("mended", f"plan {run.iteration}.{self._attempt}: {note}")
            problems = find_plan_problems(
                plan,
                run.lane_state.spec,
                run.lane_state.design,
                met=run.lane_state.met_criteria,
                unlike=run.lane_state.rejected_plans,
                forbidden=run.feature.forbidden,
            )
            if not problems:
                return plan
            yield from record_decision_note("not-taken", f"plan {run.iteration}.{self._attempt}: {'; '.join(problems)}")
            order = self._order.extend("", problems)
        reason = f"no acceptable plan: {'; '.join(problems)}"
        run.exhausted_loops.append(reason)
        raise RunEndedError(RunOutcome.FAILED, reason)

    def _plan_effect(self, order: PlanningOrder) -> AskPlan:
        now = self._run.lane_state
        return AskPlan(
            self._run.iteration,
            self._attempt,
            now.spec,
            now.design,
            now.design_reviews,
            order.directive,
            (*now.earlier_failures, *order.failures),
        )

    def _check_lane(self, plan: PlanOutput) -> PipelineStep:
        """Check the lane of the plan. A lane is only left for a deeper one. From a short lane to the whole pipeline,
        everything starts again.
        """
        run = self._run
        if not (reason := explain_lane_exit(run.lane, plan)):
            return
        lane = find_deeper_lane(run.lane, plan)
        if run.is_short and lane in (Lane.STANDARD, Lane.LARGE):
            raise DeeperLaneError(lane, reason)
        yield from run.go_deeper(lane, reason)

    def _verify(self, plan: PlanOutput) -> PipelineSteps[PlanGateSummary | None]:
        """Run the plan gate. None means that the plan goes back to its planner, with the objections."""
        run = self._run
        number = len(run.plan_gates) + 1
        result = yield from perform_effect(VerifyPlan(number, self._render_text(plan)))
        summary = demand_result(result, PlanGateResult).summary
        run.plan_gates.append(summary)
        run.lane_state.plan_issues = summary.open
        if summary.verdict is None:
            raise RunEndedError(
                RunOutcome.NEEDS_HUMAN, summary.reason, PendingAnswer(summary.reason), is_instructive=False
            )
        yield from record_decision_note(
            "plan-gate", f"plan {run.iteration}.{self._attempt}: {summary.verdict}: {summary.reason}", summary
        )
        if summary.verdict == "PROCEED":
            return summary
        verdict_text = f"the plan gate decided {summary.verdict}: {summary.reason}"
        if self._returns == MAX_RETURNS:
            run.exhausted_loops.append(verdict_text)
            raise RunEndedError(RunOutcome.HALTED, verdict_text)
        self._returns += 1
        objections = (f"{issue.severity}: {issue.title} ({issue.source})" for issue in summary.open)
        mitigations = (f"mitigation: {mitigation}" for mitigation in summary.mitigations)
        self._order = self._order.extend(verdict_text, (*objections, *mitigations))
        return None

    def _ask_approval(self, plan: PlanOutput) -> PipelineSteps[bool]:
        """Ask the user to approve the plan before anything is built. They may ask for another plan once."""
        run = self._run
        self._approval_count += 1
        request = build_planning_request(plan, findings=len(run.lane_state.known_issues), number=self._approval_count)
        decision = yield from ask_for_approval(request)
        if decision.option == "abort":
            raise RunEndedError(RunOutcome.HALTED, "aborted by the user", is_instructive=False)
        run.lane_state.is_plan_approved = decision.option == "approve"
        if not run.lane_state.is_plan_approved:
            comment = decision.feedback.strip()
            self._order = self._order.extend("The user wants another plan.", (comment,) if comment else ())
        return run.lane_state.is_plan_approved

    def _record_plan(self, plan: PlanOutput) -> PipelineStep:
        """Record the plan that will be implemented, and how much each executor need not read."""
        now, text = (
            self._run.lane_state,
            f"plan {self._run.iteration}.{self._attempt}: {pluralize(len(plan.tasks), 'task')}",
        )
        if now.spec is not None and now.design is not None:
            shown, whole = count_context_chars(plan, now.spec, now.design)
            text += f"; executors are shown {shown:,} of {whole:,} characters of specification and design"
        yield from record_decision_note("plan", text, plan)

    def _render_text(self, plan: PlanOutput, mitigations: tuple[str, ...] = ()) -> str:
        run, now = self._run, self._run.lane_state
        constraints = (*now.constraints, *mitigations)
        return render_plan_text(run.feature, plan, now.spec, now.design, run.iteration, constraints)


# Tasks and checks.


def _implement(run: RunState, plan: PlanOutput, text: str) -> PipelineSteps[GateSummary]:
    """Run the task gate. If it stops for good, or for a person, the run stops too."""
    now = run.lane_state
    context = tuple((id, render_task_context(task, now.spec, now.design)) for task, id in _with_ids(plan))
    effect_result = yield from perform_effect(Implement(run.iteration, text, now.tip, run.lane, context))
    result = demand_result(effect_result, TaskGateResult)
    gate, now.plan, now.tip = result.summary, plan, result.summary.tip
    run.elapsed_ms = max(run.elapsed_ms, result.elapsed_ms)
    run.gates.append(gate)
    now.accepted.append(gate)
    if gate.outcome is RunOutcome.NEEDS_HUMAN:
        raise RunEndedError(gate.outcome, gate.reason, PendingAnswer(gate.reason), is_instructive=False)
    if gate.outcome in (RunOutcome.HALTED, RunOutcome.BUDGET_EXHAUSTED):
        raise RunEndedError(gate.outcome, gate.reason, is_instructive=gate.outcome is RunOutcome.HALTED)
    approved_ids = {report.id for report in gate.tasks if report.state is TaskState.APPROVED}
    now.met_criteria |= {
        criterion for task, id in _with_ids(plan) if id in approved_ids for criterion in task.acceptance_criteria
    }
    return gate


def select_accepted_tasks(plan: Plan, gate: GateSummary) -> Plan:
    """Return the plan with the tasks whose work was accepted. What a failed or skipped task was to be verified by says
    nothing about the work of the others.
    """
    accepted = {report.id for report in gate.tasks if report.state is TaskState.APPROVED}
    return plan.model_copy(update={"tasks": tuple(task for task in plan.tasks if task.id in accepted)})


def _run_checks(run: RunState) -> PipelineSteps[MergedCheckResult]:
    """Run all checks on the tip. A change of a higher risk than its lane is checked as deeply as it needs."""
    checked = demand_result((yield from perform_effect(_checks_effect(run))), MergedCheckResult)
    if checked.lane_left_reason and run.is_short:
        raise DeeperLaneError(Lane.STANDARD, checked.lane_left_reason)
    if checked.lane_left_reason and run.lane is Lane.STANDARD:
        yield from run.go_deeper(Lane.LARGE, checked.lane_left_reason)
        checked = demand_result((yield from perform_effect(_checks_effect(run))), MergedCheckResult)
    run.lane_state.final, run.lane_state.requirements = checked.checks, checked.requirements
    return checked


def _checks_effect(run: RunState) -> RunAllChecks:
    return RunAllChecks(run.iteration, run.lane_state.tip, run.lane)


def _with_ids(plan: PlanOutput) -> list[tuple[PlannedTask, str]]:
    return list(zip(plan.tasks, assign_task_ids(plan).values(), strict=True))


# The controller.


def _direct(
    run: RunState, plan: PlanOutput, gate: GateSummary, final: FinalChecks | None
) -> PipelineSteps[PlanningOrder]:
    """Return the instructions for the next plan. A short lane has no controller: a failure takes it deeper."""
    problems = describe_failures(gate, final)
    if run.is_short:
        raise DeeperLaneError(
            LANES_BY_DEPTH[LANES_BY_DEPTH.index(run.lane) + 1], f"the change failed in the {run.lane} lane", problems
        )
    now = run.lane_state
    now.failed_iterations += 1
    minutes = run.feature.minutes
    direction, now.measurement = decide_direction(
        build_verdicts(plan, gate, final),
        replans=now.failed_iterations - 1,
        elapsed_ms=run.elapsed_ms if minutes else 0,
        before=now.measurement,
        weights=build_weights(minutes, run.feature.weights),
    )
    yield from record_decision_note(
        "direction", f"iteration {run.iteration}: {format_figures(direction)}: {direction.rationale}", direction
    )
    if direction.directive is DirectiveName.ABANDON:
        reason = f"abandoned after {now.failed_iterations} failed iterations: {problems[0]}"
        run.exhausted_loops.append(reason)
        raise RunEndedError(RunOutcome.FAILED, reason)
    is_new_approach = direction.directive is DirectiveName.BREAK_SYMMETRY
    now.rejected_plans = (*now.rejected_plans, plan) if is_new_approach else ()
    return PlanningOrder(format_directive(direction), problems)
