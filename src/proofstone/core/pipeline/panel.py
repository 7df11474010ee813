"""Asking the reviewers: a round of them at once, and what the gate makes of their words. Pure."""

from __future__ import annotations

from proofstone.contracts.gate_report import RunOutcome
from proofstone.contracts.lane import Lane
from proofstone.contracts.pipeline.review import PanelFinding, PanelOutput, ReviewFocus, Scope
from proofstone.core.pipeline.course import Course, OverError, Step, Steps, expected, heard, note, one
from proofstone.core.pipeline.evidence import not_borne_out, tally
from proofstone.core.pipeline.needs import AskReview, CountReviews, Failed, Heard, ReviewsCounted, Sent
from proofstone.core.pipeline.reviews import ALONE, PANEL, Decision, Gate, Round, Word, counted, decide


def reviewed(run: Course, scope: Scope, before: Round | None, *, last: bool) -> Steps[tuple[Round, Gate]]:
    """One round. Each reviewer is shown what they found in the round before."""
    number = 1 + max((one.round for one in run.reviews if one.scope == scope), default=0)
    foci = ALONE if run.lane is Lane.FIX else PANEL
    sent = yield tuple(_question(run, scope, focus, number, _of(before, focus)) for focus in foci)
    it = Round(scope, number, tuple(map(_word, foci, sent)), is_last=last)
    run.reviews += counted(it)
    run.single_model = run.single_model or it.one_model
    gate = decide(it)
    yield from note("review-gate", f"{scope}, round {number}: {gate.text}")
    if gate.decision in (Decision.PASS, Decision.KNOWN_ISSUES):
        yield from _borne_out(run, it)
    return it, gate


def _borne_out(run: Course, it: Round) -> Step:
    """A gate goes by the ledger's rows: where they say something else than was heard, nothing goes on."""
    said = tally(it)
    sent = yield from one(CountReviews(it.scope, it.number, said, run.now.tip if it.scope == "code" else ""))
    if wrong := not_borne_out(said, expected(sent, ReviewsCounted).rows):
        what = f"the ledger does not bear out the {it.scope} review, round {it.number}"
        raise OverError(RunOutcome.HALTED, f"{what}: {'; '.join(wrong)}", learns=False)


def _question(
    run: Course, scope: Scope, focus: ReviewFocus, number: int, earlier: tuple[PanelFinding, ...]
) -> AskReview:
    if scope == "design":
        return AskReview(scope, focus, number, run.criteria, design=run.now.design, earlier=earlier)
    return AskReview(scope, focus, number, run.criteria, tip=run.now.tip, earlier=earlier)


def _of(before: Round | None, focus: ReviewFocus) -> tuple[PanelFinding, ...]:
    words = before.words if before else ()
    return next((word.findings for word in words if word.focus is focus), ())


def _word(focus: ReviewFocus, sent: Sent) -> Word:
    output = heard(sent, PanelOutput)
    if isinstance(output, Failed):
        return Word(focus, None, output.why)
    return Word(focus, output, model=sent.model if isinstance(sent, Heard) else "")
