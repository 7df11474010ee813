"""From a request to a commit, or an honest refusal. Pure: it decides everything and does nothing itself.

    research ×4 ─►[approve]─► specification ─► design ─► review ×3 ─► plan ─► plan gate ─►[approve]─► tasks
                                                                       ▲                               │
                                        controller ─► directive ───────┤ ◄── anything failed ──────────┤
                                                                       │                               ▼
                                                     findings ─────────┘ ◄── code review ×3 ◄── whole cascade
                                                                                    ▼
                                                                           knowledge ─► commit

The short lanes begin with the plan and have neither plan gate nor approvals: `docs` ends without a review, `fix` with
one reviewer. A plan, a change or a failure that leaves its lane begins again in a deeper one.

Every loop has a bound, and every end a name. Nothing is committed but the very tip on which the whole cascade has
passed, after its review gate has.
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
    """The run, to its end."""
    run = Course(feature)
    while True:
        try:
            yield from _through(run)
            return (yield from _delivered(run))
        except DeeperError as deeper:
            run.begin_again(deeper)
        except OverError as over:
            return (yield from _over(run, over))


def _through(run: Course) -> Step:
    """The lane, from end to end."""
    yield from note("lane", f"{run.lane}: {run.lane_reason}")
    if not run.is_short:
        yield from research(run)
        yield from specify(run)
        yield from design(run)
    yield from _built(run, Order())


def _built(run: Course, order: Order) -> Step:
    """Planned, done, checked and reviewed."""
    yield from build(run, order)
    if run.lane is not Lane.DOCS:
        yield from _review_code(run)


def _review_code(run: Course) -> Step:
    """What the first round finds is put right as any other work: planned, done and checked as tasks."""
    before: Round | None = None
    for number in range(1, ROUNDS["code"] + 1):
        it, gate = yield from reviewed(run, "code", before, last=number == ROUNDS["code"])
        run.now.left_by_code = gate.known_issues
        if gate.decision is Decision.PASS:
            return
        if gate.decision is not Decision.REVISE:
            break
        if it.findings:  # where nobody has found anything, there is only somebody to be asked again
            directive = "The code review asks for a revision: put right what it found, and change nothing else."
            yield from build(run, Order(directive, told(it.findings)))
        before = it
    reason = f"code review: {'; '.join(gate.reasons)}"
    if gate.decision is Decision.HALT:
        raise OverError(RunOutcome.HALTED, reason)
    run.exhausted.append(reason)
    raise OverError(RunOutcome.FAILED, reason)


# The end.


def _delivered(run: Course) -> Steps[Delivered]:
    """Everything has passed. Only what one can be sure enough of is committed."""
    confidence, reasons = _rated(run)
    if confidence is Confidence.LOW:
        low = OverError(RunOutcome.FAILED, f"nothing is committed, as the confidence is low: {'; '.join(reasons)}")
        return (yield from _over(run, low))
    if added := (yield from _proven(run)):
        yield from note("added", f"more is to be planned: {'; '.join(added)}")
        yield from _built(run, Order(ADDED, added))
        return (yield from _delivered(run))
    yield from _learned(run, "everything passed")
    sent = yield from one(Commit(run.now.tip, confidence))
    if isinstance(sent, Failed):
        return _end(run, OverError(RunOutcome.FAILED, f"it could not be committed: {sent.why}"))
    if not isinstance(sent, Committed):
        raise TypeError(f"a commit is wanted, not {sent!r}")
    return _end(run, OverError(RunOutcome.PASSED, ""), sent.commit)


def _proven(run: Course) -> Steps[tuple[str, ...]]:
    """What is said to have passed has a row that says so: of the merged tree, and of every task that is in it. Sent
    back: what the person has added meanwhile, which nobody has planned."""
    counted = expected(
        (yield from one(CountChecks(run.iteration, run.now.tip, tuple(run.now.accepted)))), ChecksCounted
    )
    if wrong := unproven(counted.checked):
        raise OverError(RunOutcome.HALTED, f"the ledger does not bear it out: {'; '.join(wrong)}", learns=False)
    return counted.added


def _over(run: Course, over: OverError) -> Steps[Delivered]:
    """Nothing is committed. What was tried is still worth knowing."""
    if over.learns and (run.gates or run.exhausted):
        yield from _learned(run, f"{over.outcome}: {over.reason}")
    return _end(run, over)


def _learned(run: Course, outcome: str) -> Step:
    """It holds nothing up: whatever is sent is for the record. The short lanes leave it out."""
    if not run.is_short:
        findings = (*run.exhausted, *(_told(issue) for issue in run.now.known_issues))
        yield (AskKnowledge(outcome, findings, run.now.tip),)


def _end(run: Course, over: OverError, commit: str | None = None) -> Delivered:
    confidence, reasons = _rated(run) if run.gates or run.exhausted else (None, ())
    if over.outcome is not RunOutcome.PASSED and confidence is not None:
        low = reasons if confidence is Confidence.LOW else ()
        confidence, reasons = Confidence.LOW, tuple(dict.fromkeys((over.reason, *low)))
    return Delivered(
        outcome=over.outcome,
        reason=over.reason,
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
        waiting=over.waiting,
    )


def _rated(run: Course) -> tuple[Confidence, tuple[str, ...]]:
    now = run.now
    left = (*now.left_by_design, *now.left_by_code)
    return rate(Grounds(now.final, tuple(now.accepted), left, tuple(run.exhausted), now.unsure))


def _told(issue: KnownIssue) -> str:
    return f"{issue.severity}: {issue.title} ({issue.source})"
