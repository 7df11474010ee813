"""The whole run, from a request to a commit or a refusal. Pure: it decides everything and performs nothing.

    research ×4 ─►[approve]─► specification ─► design ─► review ×3 ─► plan ─► plan gate ─►[approve]─► tasks
                                                                       ▲                               │
                                        controller ─► directive ───────┤ ◄── anything failed ──────────┤
                                                                       │                               ▼
                                                     findings ─────────┘ ◄── code review ×3 ◄──── all checks
                                                                                    ▼
                                                                           knowledge ─► commit

The short lanes begin with the plan and have neither plan gate nor approvals: `docs` ends without a review, `fix` with
one reviewer. If a plan, a change or a failure leaves its lane, the run starts again in a deeper one.

Every loop has a limit, and every end a name. The run commits only the exact tip on which all checks and the review gate
have passed.
"""

from __future__ import annotations

from proofstone.common.models import Confidence, ConfidenceRating, Lane, Severity, rate_confidence
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import KnownIssue
from proofstone.pipeline.rules.building import AMENDMENT_DIRECTIVE, PlanningOrder, build_change
from proofstone.pipeline.rules.directing import describe_all_failures
from proofstone.pipeline.rules.effects import (
    AgentFailure,
    AskKnowledge,
    CheckCounts,
    CommitChange,
    CommitResult,
    CountChecks,
    PipelineGoal,
    PipelineResult,
    PipelineWorkflow,
)
from proofstone.pipeline.rules.preparing import (
    decide_request_concerns,
    run_design_step,
    run_research_step,
    run_review_round,
    run_specification_step,
)
from proofstone.pipeline.rules.reviews import (
    MAX_REVIEW_ROUNDS,
    ConfidenceGrounds,
    ReviewGateDecision,
    ReviewRound,
    describe_findings,
    find_unproven_checks,
    rate_pipeline_run,
)
from proofstone.pipeline.rules.run_state import (
    DeeperLaneError,
    PipelineStep,
    PipelineSteps,
    RunEndedError,
    RunState,
    await_fix,
    demand_result,
    perform_effect,
    record_decision_note,
)


def deliver(feature: PipelineGoal) -> PipelineWorkflow:
    """Perform the run to its end."""
    run = RunState(feature)
    while True:
        try:
            yield from _run_lane(run)
            return (yield from _finish(run))
        except DeeperLaneError as deeper:
            run.restart_in_lane(deeper)
        except RunEndedError as end:
            return (yield from _end_early(run, end))


def _run_lane(run: RunState) -> PipelineStep:
    """Perform all steps of the lane."""
    yield from record_decision_note("lane", f"{run.lane}: {run.lane_reason}")
    yield from decide_request_concerns(run)
    if not run.is_short:
        yield from run_research_step(run)
        yield from run_specification_step(run)
        yield from run_design_step(run)
    yield from _build_and_review(run, PlanningOrder("", run.answers) if run.is_short else PlanningOrder())


def _build_and_review(run: RunState, order: PlanningOrder) -> PipelineStep:
    """Plan, implement, check and review the change."""
    yield from build_change(run, order)
    if run.lane is not Lane.DOCS or run.unjudged_criteria:  # somebody must judge what no check shows
        yield from _review_code(run)


def _review_code(run: RunState) -> PipelineStep:
    """Review the code. Findings of the first round are fixed like any other work: planned, implemented and checked as
    tasks.
    """
    previous: ReviewRound | None = None
    rounds = 0
    while True:
        rounds += 1
        review_round, gate = yield from run_review_round(
            run, "code", previous, last=rounds == MAX_REVIEW_ROUNDS["code"]
        )
        run.lane_state.code_issues = gate.known_issues
        if gate.decision is ReviewGateDecision.PASS:
            yield from _close_criticals(run, review_round)
            run.record_judges(tuple(f"reviewer:{word.focus}" for word in review_round.answers if word.is_approval))
            return
        reason = f"code review: {'; '.join(gate.reasons)}"
        if gate.decision is ReviewGateDecision.HALT:
            yield from await_fix(run, reason)
            rounds = 0  # what a person has ordered is reviewed like a new change
        elif gate.decision is not ReviewGateDecision.REVISE:
            run.exhausted_loops.append(reason)
            raise RunEndedError(RunOutcome.FAILED, reason)
        if review_round.findings:  # without findings, only missing reviewers are dispatched again
            directive = "The code review requires a revision: fix its findings, and change nothing else."
            yield from build_change(run, PlanningOrder(directive, describe_findings(review_round.findings)))
        previous = review_round


def _close_criticals(run: RunState, review_round: ReviewRound) -> PipelineStep:
    """Close the critical findings of the design review: the code reviewers say that the change resolves them."""
    now, titles = run.lane_state, set(review_round.carried)
    for title in review_round.carried:
        yield from record_decision_note("resolved", f"critical finding of the design review: {title}")
    now.open_criticals = ()
    now.design_issues = tuple(
        issue for issue in now.design_issues if not (issue.severity is Severity.CRITICAL and issue.title in titles)
    )


# The end.


def _finish(run: RunState) -> PipelineSteps[PipelineResult]:
    """End the run after everything has passed. The change is committed only with sufficient confidence."""
    confidence, reasons = _rate_run(run)
    if confidence is None or confidence is Confidence.LOW:
        low = RunEndedError(
            RunOutcome.FAILED,
            f"nothing was committed because the confidence is low: {'; '.join(reason.reason for reason in reasons)}",
        )
        return (yield from _end_early(run, low))
    if added := (yield from _demand_evidence(run)):
        yield from record_decision_note("added", f"new requirements to plan: {'; '.join(added)}")
        yield from _build_and_review(run, PlanningOrder(AMENDMENT_DIRECTIVE, added))
        return (yield from _finish(run))
    yield from _learn(run, "everything passed")
    sent = yield from perform_effect(CommitChange(run.lane_state.tip, confidence))
    if isinstance(sent, AgentFailure):
        return _build_result(run, RunEndedError(RunOutcome.FAILED, f"the commit failed: {sent.why}"))
    if not isinstance(sent, CommitResult):
        raise TypeError(f"expected a commit, got {sent!r}")
    return _build_result(run, RunEndedError(RunOutcome.PASSED, ""), sent.commit)


def _demand_evidence(run: RunState) -> PipelineSteps[tuple[str, ...]]:
    """Demand a row for everything that is reported as passed, of the merged tree and of every task in it. Return the
    requirements that the user has added since and that are not planned yet.
    """
    tallies = demand_result(
        (yield from perform_effect(CountChecks(run.iteration, run.lane_state.tip, tuple(run.lane_state.accepted)))),
        CheckCounts,
    )
    if problems := find_unproven_checks(tallies.checked):
        raise RunEndedError(
            RunOutcome.HALTED, f"the ledger does not confirm it: {'; '.join(problems)}", is_instructive=False
        )
    return tallies.added


def _end_early(run: RunState, end: RunEndedError) -> PipelineSteps[PipelineResult]:
    """End the run without a commit. The attempts are still worth learning from."""
    if end.is_instructive and (run.gates or run.exhausted_loops):
        yield from _learn(run, f"{end.outcome}: {end.reason}")
    return _build_result(run, end)


def _learn(run: RunState, outcome: str) -> PipelineStep:
    """Dispatch the knowledge keeper, except in the short lanes. Its result stops nothing."""
    if not run.is_short:
        findings = (*run.exhausted_loops, *(_issue_line(issue) for issue in run.lane_state.known_issues))
        failures = describe_all_failures(run.gates)
        yield (AskKnowledge(outcome, findings, run.lane_state.tip, failures, run.fixes + 1),)


def _build_result(run: RunState, end: RunEndedError, commit: str | None = None) -> PipelineResult:
    confidence, reasons = _rate_run(run) if run.gates or run.exhausted_loops else ConfidenceRating(None)
    if end.outcome is not RunOutcome.PASSED and confidence is not None:
        confidence, reasons = rate_confidence(low=(end.reason, *(reasons if confidence is Confidence.LOW else ())))
    return PipelineResult(
        outcome=end.outcome,
        reason=end.reason,
        confidence=confidence,
        reasons=reasons,
        lane=run.lane,
        lane_reason=run.lane_reason,
        tip=run.lane_state.tip,
        commit=commit,
        plan_gates=tuple(run.plan_gates),
        gates=tuple(run.gates),
        final=run.lane_state.final,
        reviews=tuple(run.reviews),
        single_model=run.single_model,
        known_issues=run.lane_state.known_issues,
        gaps=tuple(dict.fromkeys((*run.lane_state.gaps, *run.lane_state.uncertainties))),
        requirements=run.lane_state.requirements,
        waiting=end.waiting,
        awaits_fix=end.awaits_fix,
    )


def _rate_run(run: RunState) -> ConfidenceRating:
    now = run.lane_state
    open_issues = (*now.design_issues, *now.code_issues)
    return rate_pipeline_run(
        ConfidenceGrounds(
            now.final,
            tuple(now.accepted),
            open_issues,
            tuple(run.exhausted_loops),
            gaps=now.gaps,
            unsure=now.uncertainties,
        )
    )


def _issue_line(issue: KnownIssue) -> str:
    seen = f": {issue.evidence}" if issue.evidence else ""
    return f"{issue.severity}: {issue.title} ({issue.source}){seen}"
