"""The steps that make the change: plan, plan gate, task gate, all checks on the merged tree, and the controller, which
directs the next plan after a failure. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.roles.models.pipeline import PlannedTask, PlanOutput
from proofstone.agents.roles.models.solve_messages import DirectiveName
from proofstone.common.models import Lane
from proofstone.common.text import counted
from proofstone.gate.models import RunOutcome
from proofstone.gate.rules.direction import figures
from proofstone.pipeline.models.run import FinalChecks, GateSummary, PlanGateSummary
from proofstone.pipeline.rules.approvals import post_planning
from proofstone.pipeline.rules.directing import direct, directive_text, failures, verdicts, weights_for
from proofstone.pipeline.rules.effects import (
    AskPlan,
    CheckAll,
    Checked,
    Implement,
    Implemented,
    PlanVerified,
    VerifyPlan,
    Waiting,
)
from proofstone.pipeline.rules.plan_text import context_of, plan_text, saving, task_ids
from proofstone.pipeline.rules.planning import DEEPER, deeper, left, raised, why_not
from proofstone.pipeline.rules.run_state import (
    Course,
    DeeperError,
    OverError,
    Step,
    Steps,
    approved,
    expected,
    needed,
    note,
    one,
)

REJECTIONS: Final = 2
"""How many plans of one attempt may be rejected and sent back."""
RETURNS: Final = 1
"""How often the plan gate may send back a plan of one iteration."""
ADDED: Final = "The user has added requirements. Plan what they need, and change nothing else."


@dataclass(frozen=True)
class Order:
    """The instructions to a planner: what to do differently, and what went wrong."""

    directive: str = ""
    failures: tuple[str, ...] = ()

    def further(self, directive: str, failures: Iterable[str]) -> Order:
        """Return the order with further instructions; the earlier ones still apply."""
        return Order("\n".join(filter(None, (self.directive, directive))), (*self.failures, *failures))


def build(run: Course, order: Order) -> Step:
    """Build until every planned task and all checks have passed. The change is then in the tip."""
    while True:
        plan, text = yield from _PlanningIteration(run, order).plan()
        gate = yield from _implement(run, plan, text)
        checked = (yield from _run_checks(run)) if gate.outcome is RunOutcome.PASSED else None
        final = checked.checks if checked else None
        if checked is None or not checked.checks.passed:
            order = yield from _direct(run, plan, gate, final)
            continue
        run.now.unlike = ()
        if not checked.added:
            return
        yield from note("added", f"new requirements to plan: {'; '.join(checked.added)}")
        order = Order(ADDED, checked.added)


# Plan.


class _PlanningIteration:
    """One iteration of planning: attempts until a plan is accepted, verified and approved."""

    def __init__(self, run: Course, order: Order) -> None:
        self._run, self._order = run, order
        self._attempt = 0
        self._returns = 0
        self._approval_count = 0
        run.iteration += 1

    def plan(self) -> Steps[tuple[PlanOutput, str]]:
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
            if run.now.plan_agreed or (yield from self._ask_approval(plan)):
                yield from self._record_plan(plan)
                return plan, self._render_text(plan, verified.mitigations)

    def _accepted_plan(self) -> Steps[PlanOutput]:
        """Return a plan that follows the rules. The planner receives the reasons for a rejection."""
        run, order = self._run, self._order
        for _ in range(REJECTIONS + 1):
            self._attempt += 1
            plan = raised(needed(run, (yield from one(self._plan_effect(order))), PlanOutput, "plan"))
            problems = why_not(plan, run.now.spec, run.now.design, met=run.now.met, unlike=run.now.unlike)
            if not problems:
                return plan
            yield from note("not-taken", f"plan {run.iteration}.{self._attempt}: {'; '.join(problems)}")
            order = self._order.further("", problems)
        reason = f"no acceptable plan: {'; '.join(problems)}"
        run.exhausted.append(reason)
        raise OverError(RunOutcome.FAILED, reason)

    def _plan_effect(self, order: Order) -> AskPlan:
        now = self._run.now
        return AskPlan(
            self._run.iteration,
            self._attempt,
            now.spec,
            now.design,
            now.design_reviews,
            order.directive,
            (*now.told, *order.failures),
        )

    def _check_lane(self, plan: PlanOutput) -> Step:
        """Check the lane of the plan. A lane is only left for a deeper one. From a short lane to the whole pipeline,
        everything starts again.
        """
        run = self._run
        if not (reason := left(run.lane, plan)):
            return
        lane = deeper(run.lane, plan)
        if run.is_short and lane in (Lane.STANDARD, Lane.LARGE):
            raise DeeperError(lane, reason)
        yield from run.go_deeper(lane, reason)

    def _verify(self, plan: PlanOutput) -> Steps[PlanGateSummary | None]:
        """Run the plan gate. None means that the plan goes back to its planner, with the objections."""
        run = self._run
        number = len(run.plan_gates) + 1
        result = yield from one(VerifyPlan(number, self._render_text(plan)))
        summary = expected(result, PlanVerified).summary
        run.plan_gates.append(summary)
        run.now.left_by_plan = summary.open
        if summary.verdict is None:
            raise OverError(RunOutcome.NEEDS_HUMAN, summary.reason, Waiting(summary.reason), learns=False)
        yield from note(
            "plan-gate", f"plan {run.iteration}.{self._attempt}: {summary.verdict}: {summary.reason}", summary
        )
        if summary.verdict == "PROCEED":
            return summary
        verdict_text = f"the plan gate decided {summary.verdict}: {summary.reason}"
        if self._returns == RETURNS:
            run.exhausted.append(verdict_text)
            raise OverError(RunOutcome.HALTED, verdict_text)
        self._returns += 1
        objections = (f"{issue.severity}: {issue.title} ({issue.source})" for issue in summary.open)
        mitigations = (f"mitigation: {mitigation}" for mitigation in summary.mitigations)
        self._order = self._order.further(verdict_text, (*objections, *mitigations))
        return None

    def _ask_approval(self, plan: PlanOutput) -> Steps[bool]:
        """Ask the user to approve the plan before anything is built. They may ask for another plan once."""
        run = self._run
        self._approval_count += 1
        request = post_planning(plan, findings=len(run.now.known_issues), number=self._approval_count)
        decision = yield from approved(request)
        if decision.option == "abort":
            raise OverError(RunOutcome.HALTED, "aborted by the user", learns=False)
        run.now.plan_agreed = decision.option == "approve"
        if not run.now.plan_agreed:
            comment = decision.feedback.strip()
            self._order = self._order.further("The user wants another plan.", (comment,) if comment else ())
        return run.now.plan_agreed

    def _record_plan(self, plan: PlanOutput) -> Step:
        """Record the plan that will be implemented, and how much each executor need not read."""
        now, text = self._run.now, f"plan {self._run.iteration}.{self._attempt}: {counted(len(plan.tasks), 'task')}"
        if now.spec is not None and now.design is not None:
            shown, whole = saving(plan, now.spec, now.design)
            text += f"; executors are shown {shown:,} of {whole:,} characters of specification and design"
        yield from note("plan", text, plan)

    def _render_text(self, plan: PlanOutput, mitigations: tuple[str, ...] = ()) -> str:
        run, now = self._run, self._run.now
        constraints = (*now.constraints, *mitigations)
        return plan_text(run.feature, plan, now.spec, now.design, run.iteration, constraints)


# Tasks and checks.


def _implement(run: Course, plan: PlanOutput, text: str) -> Steps[GateSummary]:
    """Run the task gate. If it stops for good, or for a person, the run stops too."""
    now = run.now
    context = tuple((id, context_of(task, now.spec, now.design)) for task, id in _with_ids(plan))
    effect_result = yield from one(Implement(run.iteration, text, now.tip, run.lane, context))
    result = expected(effect_result, Implemented)
    gate, now.plan, now.tip = result.summary, plan, result.summary.tip
    run.elapsed_ms = max(run.elapsed_ms, result.elapsed_ms)
    run.gates.append(gate)
    now.accepted.append(gate)
    if gate.outcome is RunOutcome.NEEDS_HUMAN:
        raise OverError(gate.outcome, gate.reason, Waiting(gate.reason), learns=False)
    if gate.outcome in (RunOutcome.HALTED, RunOutcome.BUDGET_EXHAUSTED):
        raise OverError(gate.outcome, gate.reason, learns=gate.outcome is RunOutcome.HALTED)
    approved_ids = {report.id for report in gate.tasks if report.state is TaskState.APPROVED}
    now.met |= {
        criterion for task, id in _with_ids(plan) if id in approved_ids for criterion in task.acceptance_criteria
    }
    return gate


def _run_checks(run: Course) -> Steps[Checked]:
    """Run all checks on the tip. A change of a higher risk than its lane is checked as deeply as it needs."""
    checked = expected((yield from one(_checks_effect(run))), Checked)
    if checked.left and run.is_short:
        raise DeeperError(Lane.STANDARD, checked.left)
    if checked.left and run.lane is Lane.STANDARD:
        yield from run.go_deeper(Lane.LARGE, checked.left)
        checked = expected((yield from one(_checks_effect(run))), Checked)
    run.now.final = checked.checks
    return checked


def _checks_effect(run: Course) -> CheckAll:
    return CheckAll(run.iteration, run.now.tip, run.lane)


def _with_ids(plan: PlanOutput) -> list[tuple[PlannedTask, str]]:
    return list(zip(plan.tasks, task_ids(plan).values(), strict=True))


# The controller.


def _direct(run: Course, plan: PlanOutput, gate: GateSummary, final: FinalChecks | None) -> Steps[Order]:
    """Return the instructions for the next plan. A short lane has no controller: a failure takes it deeper."""
    problems = failures(gate, final)
    if run.is_short:
        raise DeeperError(DEEPER[DEEPER.index(run.lane) + 1], f"the change failed in the {run.lane} lane", problems)
    now = run.now
    now.failed += 1
    minutes = run.feature.minutes
    direction, now.reading = direct(
        verdicts(plan, gate, final),
        replans=now.failed - 1,
        elapsed_ms=run.elapsed_ms if minutes else 0,
        before=now.reading,
        weights=weights_for(minutes),
    )
    yield from note("direction", f"iteration {run.iteration}: {figures(direction)}: {direction.rationale}", direction)
    if direction.directive is DirectiveName.ABANDON:
        reason = f"abandoned after {now.failed} failed iterations: {problems[0]}"
        run.exhausted.append(reason)
        raise OverError(RunOutcome.FAILED, reason)
    is_new_approach = direction.directive is DirectiveName.BREAK_SYMMETRY
    now.unlike = (*now.unlike, plan) if is_new_approach else ()
    return Order(directive_text(direction), problems)
