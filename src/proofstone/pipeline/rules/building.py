"""The steps that make the change: plan, plan gate, task gate, the whole cascade on the merged tree, and the controller,
which directs the next plan when one did not pass. Pure.
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
"""How often a plan that is not taken is sent back, before there is none."""
RETURNS: Final = 1
"""How often the plan gate sends a plan of one iteration back."""
ADDED: Final = "The person has added something since. Plan what it takes, and change nothing else."


@dataclass(frozen=True)
class Order:
    """What a planner is told to do differently, and what went wrong."""

    directive: str = ""
    failures: tuple[str, ...] = ()

    def further(self, directive: str, failures: Iterable[str]) -> Order:
        """What is said besides; what was said before still holds."""
        return Order("\n".join(filter(None, (self.directive, directive))), (*self.failures, *failures))


def build(run: Course, order: Order) -> Step:
    """Until everything that was planned has passed, and the whole of it: then the change stands in the tip."""
    while True:
        plan, text = yield from _Planning(run, order).plan()
        gate = yield from _implemented(run, plan, text)
        checked = (yield from _checked(run)) if gate.outcome is RunOutcome.PASSED else None
        final = checked.checks if checked else None
        if checked is None or not checked.checks.passed:
            order = yield from _directed(run, plan, gate, final)
            continue
        run.now.unlike = ()
        if not checked.added:
            return
        yield from note("added", f"more is to be planned: {'; '.join(checked.added)}")
        order = Order(ADDED, checked.added)


# Plan.


class _Planning:
    """One iteration of planning: attempts, until a plan is taken, verified and agreed to."""

    def __init__(self, run: Course, order: Order) -> None:
        self._run, self._order = run, order
        self._attempt = 0
        self._returned = 0
        self._asked_person = 0
        run.iteration += 1

    def plan(self) -> Steps[tuple[PlanOutput, str]]:
        """The plan, and its text as the task gate reads it."""
        run = self._run
        while True:
            plan = yield from self._taken()
            yield from self._kept_to_lane(plan)
            if run.is_short:
                yield from self._told(plan)
                return plan, self._text(plan)
            verified = yield from self._verified(plan)
            if verified is None:
                continue
            if run.now.plan_agreed or (yield from self._agreed(plan)):
                yield from self._told(plan)
                return plan, self._text(plan, verified.mitigations)

    def _taken(self) -> Steps[PlanOutput]:
        """A plan that keeps to the rules. Why one does not, its planner is told."""
        run, order = self._run, self._order
        for _ in range(REJECTIONS + 1):
            self._attempt += 1
            plan = raised(needed(run, (yield from one(self._question(order))), PlanOutput, "plan"))
            wrong = why_not(plan, run.now.spec, run.now.design, met=run.now.met, unlike=run.now.unlike)
            if not wrong:
                return plan
            yield from note("not-taken", f"plan {run.iteration}.{self._attempt}: {'; '.join(wrong)}")
            order = self._order.further("", wrong)
        reason = f"no plan that could be taken: {'; '.join(wrong)}"
        run.exhausted.append(reason)
        raise OverError(RunOutcome.FAILED, reason)

    def _question(self, order: Order) -> AskPlan:
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

    def _kept_to_lane(self, plan: PlanOutput) -> Step:
        """A lane is only ever left for a deeper one. From a short one to the whole pipeline all begins anew."""
        run = self._run
        if not (why := left(run.lane, plan)):
            return
        lane = deeper(run.lane, plan)
        if run.is_short and lane in (Lane.STANDARD, Lane.LARGE):
            raise DeeperError(lane, why)
        yield from run.go_deeper(lane, why)

    def _verified(self, plan: PlanOutput) -> Steps[PlanGateSummary | None]:
        """The plan gate's word; None: the plan goes back to its planner, with what stands against it."""
        run = self._run
        number = len(run.plan_gates) + 1
        sent = yield from one(VerifyPlan(number, self._text(plan)))
        summary = expected(sent, PlanVerified).summary
        run.plan_gates.append(summary)
        run.now.left_by_plan = summary.open
        if summary.verdict is None:
            raise OverError(RunOutcome.NEEDS_HUMAN, summary.reason, Waiting(summary.reason), learns=False)
        yield from note(
            "plan-gate", f"plan {run.iteration}.{self._attempt}: {summary.verdict}: {summary.reason}", summary
        )
        if summary.verdict == "PROCEED":
            return summary
        said = f"the plan gate says {summary.verdict}: {summary.reason}"
        if self._returned == RETURNS:
            run.exhausted.append(said)
            raise OverError(RunOutcome.HALTED, said)
        self._returned += 1
        against = (f"{issue.severity}: {issue.title} ({issue.source})" for issue in summary.open)
        mitigations = (f"mitigation: {mitigation}" for mitigation in summary.mitigations)
        self._order = self._order.further(said, (*against, *mitigations))
        return None

    def _agreed(self, plan: PlanOutput) -> Steps[bool]:
        """Whether the person agrees, before anything is built. They may want another plan, once."""
        run = self._run
        self._asked_person += 1
        request = post_planning(plan, findings=len(run.now.known_issues), number=self._asked_person)
        decided = yield from approved(request)
        if decided.option == "abort":
            raise OverError(RunOutcome.HALTED, "aborted by the person", learns=False)
        run.now.plan_agreed = decided.option == "approve"
        if not run.now.plan_agreed:
            said = decided.feedback.strip()
            self._order = self._order.further("The person wants another plan.", (said,) if said else ())
        return run.now.plan_agreed

    def _told(self, plan: PlanOutput) -> Step:
        """For the record: what will be implemented, and how much of it each executor need not read."""
        now, told = self._run.now, f"plan {self._run.iteration}.{self._attempt}: {counted(len(plan.tasks), 'task')}"
        if now.spec is not None and now.design is not None:
            shown, whole = saving(plan, now.spec, now.design)
            told += f"; executors are shown {shown:,} of {whole:,} characters of specification and design"
        yield from note("plan", told, plan)

    def _text(self, plan: PlanOutput, mitigations: tuple[str, ...] = ()) -> str:
        run, now = self._run, self._run.now
        constraints = (*now.constraints, *mitigations)
        return plan_text(run.feature, plan, now.spec, now.design, run.iteration, constraints)


# Tasks, and the whole of them.


def _implemented(run: Course, plan: PlanOutput, text: str) -> Steps[GateSummary]:
    """What the task gate made of the plan. Where it stopped for good, or for a person, the run does too."""
    now = run.now
    context = tuple((id, context_of(task, now.spec, now.design)) for task, id in _with_ids(plan))
    sent = yield from one(Implement(run.iteration, text, now.tip, run.lane, context))
    came = expected(sent, Implemented)
    gate, now.plan, now.tip = came.summary, plan, came.summary.tip
    run.elapsed_ms = max(run.elapsed_ms, came.elapsed_ms)
    run.gates.append(gate)
    now.accepted.append(gate)
    if gate.outcome is RunOutcome.NEEDS_HUMAN:
        raise OverError(gate.outcome, gate.reason, Waiting(gate.reason), learns=False)
    if gate.outcome in (RunOutcome.HALTED, RunOutcome.BUDGET_EXHAUSTED):
        raise OverError(gate.outcome, gate.reason, learns=gate.outcome is RunOutcome.HALTED)
    done = {report.id for report in gate.tasks if report.state is TaskState.APPROVED}
    now.met |= {criterion for task, id in _with_ids(plan) if id in done for criterion in task.acceptance_criteria}
    return gate


def _checked(run: Course) -> Steps[Checked]:
    """The whole cascade, on the tip. A change of a higher risk than its lane is looked at as deep as it needs."""
    checked = expected((yield from one(_check(run))), Checked)
    if checked.left and run.is_short:
        raise DeeperError(Lane.STANDARD, checked.left)
    if checked.left and run.lane is Lane.STANDARD:
        yield from run.go_deeper(Lane.LARGE, checked.left)
        checked = expected((yield from one(_check(run))), Checked)
    run.now.final = checked.checks
    return checked


def _check(run: Course) -> CheckAll:
    return CheckAll(run.iteration, run.now.tip, run.lane)


def _with_ids(plan: PlanOutput) -> list[tuple[PlannedTask, str]]:
    return list(zip(plan.tasks, task_ids(plan).values(), strict=True))


# The controller.


def _directed(run: Course, plan: PlanOutput, gate: GateSummary, final: FinalChecks | None) -> Steps[Order]:
    """What the next plan must do differently. A short lane has no controller: a failure takes it deeper."""
    wrong = failures(gate, final)
    if run.is_short:
        raise DeeperError(DEEPER[DEEPER.index(run.lane) + 1], f"it failed in the {run.lane} lane", wrong)
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
        reason = f"abandoned after {now.failed} iterations that did not pass: {wrong[0]}"
        run.exhausted.append(reason)
        raise OverError(RunOutcome.FAILED, reason)
    anew = direction.directive is DirectiveName.BREAK_SYMMETRY
    now.unlike = (*now.unlike, plan) if anew else ()
    return Order(directive_text(direction), wrong)
