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

from proofstone.common.models import Confidence, Lane
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import KnownIssue
from proofstone.pipeline.rules.building import ADDED, Order, build
from proofstone.pipeline.rules.effects import (
    AskKnowledge,
    ChecksCounted,
    Commit,
    Committed,
    CountChecks,
    Delivered,
    Failed,
    Feature,
    Loop,
)
from proofstone.pipeline.rules.preparing import design, research, reviewed, specify
from proofstone.pipeline.rules.reviews import ROUNDS, Decision, Grounds, Round, rate, told, unproven
from proofstone.pipeline.rules.run_state import Course, DeeperError, OverError, Step, Steps, expected, note, one


def deliver(feature: Feature) -> Loop:
    """Perform the run to its end."""
    run = Course(feature)
    while True:
        try:
            yield from _run_lane(run)
            return (yield from _finish(run))
        except DeeperError as deeper:
            run.begin_again(deeper)
        except OverError as end:
            return (yield from _end_early(run, end))


def _run_lane(run: Course) -> Step:
    """Perform all steps of the lane."""
    yield from note("lane", f"{run.lane}: {run.lane_reason}")
    if not run.is_short:
        yield from research(run)
        yield from specify(run)
        yield from design(run)
    yield from _build_and_review(run, Order())


def _build_and_review(run: Course, order: Order) -> Step:
    """Plan, implement, check and review the change."""
    yield from build(run, order)
    if run.lane is not Lane.DOCS:
        yield from _review_code(run)


def _review_code(run: Course) -> Step:
    """Review the code. Findings of the first round are fixed like any other work: planned, implemented and checked as
    tasks.
    """
    previous: Round | None = None
    for number in range(1, ROUNDS["code"] + 1):
        review_round, gate = yield from reviewed(run, "code", previous, last=number == ROUNDS["code"])
        run.now.left_by_code = gate.known_issues
        if gate.decision is Decision.PASS:
            return
        if gate.decision is not Decision.REVISE:
            break
        if review_round.findings:  # without findings, only missing reviewers are dispatched again
            directive = "The code review requires a revision: fix its findings, and change nothing else."
            yield from build(run, Order(directive, told(review_round.findings)))
        previous = review_round
    reason = f"code review: {'; '.join(gate.reasons)}"
    if gate.decision is Decision.HALT:
        raise OverError(RunOutcome.HALTED, reason)
    run.exhausted.append(reason)
    raise OverError(RunOutcome.FAILED, reason)


# The end.


def _finish(run: Course) -> Steps[Delivered]:
    """End the run after everything has passed. The change is committed only with sufficient confidence."""
    confidence, reasons = _rate_run(run)
    if confidence is Confidence.LOW:
        low = OverError(RunOutcome.FAILED, f"nothing was committed because the confidence is low: {'; '.join(reasons)}")
        return (yield from _end_early(run, low))
    if added := (yield from _demand_evidence(run)):
        yield from note("added", f"new requirements to plan: {'; '.join(added)}")
        yield from _build_and_review(run, Order(ADDED, added))
        return (yield from _finish(run))
    yield from _learn(run, "everything passed")
    sent = yield from one(Commit(run.now.tip, confidence))
    if isinstance(sent, Failed):
        return _build_result(run, OverError(RunOutcome.FAILED, f"the commit failed: {sent.why}"))
    if not isinstance(sent, Committed):
        raise TypeError(f"expected a commit, got {sent!r}")
    return _build_result(run, OverError(RunOutcome.PASSED, ""), sent.commit)


def _demand_evidence(run: Course) -> Steps[tuple[str, ...]]:
    """Demand a row for everything that is reported as passed, of the merged tree and of every task in it. Return the
    requirements that the user has added since and that are not planned yet.
    """
    tallies = expected(
        (yield from one(CountChecks(run.iteration, run.now.tip, tuple(run.now.accepted)))), ChecksCounted
    )
    if problems := unproven(tallies.checked):
        raise OverError(RunOutcome.HALTED, f"the ledger does not confirm it: {'; '.join(problems)}", learns=False)
    return tallies.added


def _end_early(run: Course, end: OverError) -> Steps[Delivered]:
    """End the run without a commit. The attempts are still worth learning from."""
    if end.learns and (run.gates or run.exhausted):
        yield from _learn(run, f"{end.outcome}: {end.reason}")
    return _build_result(run, end)


def _learn(run: Course, outcome: str) -> Step:
    """Dispatch the knowledge keeper, except in the short lanes. Its result stops nothing."""
    if not run.is_short:
        findings = (*run.exhausted, *(_issue_line(issue) for issue in run.now.known_issues))
        yield (AskKnowledge(outcome, findings, run.now.tip),)


def _build_result(run: Course, end: OverError, commit: str | None = None) -> Delivered:
    confidence, reasons = _rate_run(run) if run.gates or run.exhausted else (None, ())
    if end.outcome is not RunOutcome.PASSED and confidence is not None:
        low = reasons if confidence is Confidence.LOW else ()
        confidence, reasons = Confidence.LOW, tuple(dict.fromkeys((end.reason, *low)))
    return Delivered(
        outcome=end.outcome,
        reason=end.reason,
        confidence=confidence,
        confidence_reasons=reasons,
        lane=run.lane,
        lane_reason=run.lane_reason,
        tip=run.now.tip,
        commit=commit,
        plan_gates=tuple(run.plan_gates),
        gates=tuple(run.gates),
        final=run.now.final,
        reviews=tuple(run.reviews),
        single_model=run.single_model,
        known_issues=run.now.known_issues,
        waiting=end.waiting,
    )


def _rate_run(run: Course) -> tuple[Confidence, tuple[str, ...]]:
    now = run.now
    open_issues = (*now.left_by_design, *now.left_by_code)
    return rate(Grounds(now.final, tuple(now.accepted), open_issues, tuple(run.exhausted), now.unsure))


def _issue_line(issue: KnownIssue) -> str:
    return f"{issue.severity}: {issue.title} ({issue.source})"
