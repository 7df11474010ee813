"""The steps before there is a plan: research, specification, design and its review. Pure.

A review is one round of all reviewers in parallel, and the decision of the gate about their answers.
"""

from __future__ import annotations

from typing import Final

from proofstone.agents.models import CompletionStatus
from proofstone.agents.roles.models.pipeline import (
    Concern,
    DesignOutput,
    PanelFinding,
    PanelOutput,
    ResearchFocus,
    ResearchOutput,
    ReviewFocus,
    Scope,
    SpecOutput,
)
from proofstone.common.models import Lane, Severity
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import RunMode
from proofstone.pipeline.rules.approvals import post_research, pushback
from proofstone.pipeline.rules.effects import (
    AskDesign,
    AskResearch,
    AskReview,
    AskSpec,
    CountReviews,
    Decided,
    Failed,
    Heard,
    ReviewsCounted,
    Sent,
)
from proofstone.pipeline.rules.reviews import (
    ALONE,
    PANEL,
    ROUNDS,
    Decision,
    Gate,
    Round,
    Word,
    counted,
    decide,
    not_borne_out,
    tally,
)
from proofstone.pipeline.rules.run_state import (
    Course,
    OverError,
    Step,
    Steps,
    approved,
    attended,
    expected,
    heard,
    needed,
    note,
    one,
)


def reviewed(run: Course, scope: Scope, before: Round | None, *, last: bool) -> Steps[tuple[Round, Gate]]:
    """Perform one review round. Each reviewer sees its own findings of the previous round."""
    number = 1 + max((review.round for review in run.reviews if review.scope == scope), default=0)
    foci = ALONE if run.lane is Lane.FIX else PANEL
    results = yield tuple(_review_effect(run, scope, focus, number, _findings_of(before, focus)) for focus in foci)
    review_round = Round(scope, number, tuple(map(_to_word, foci, results)), is_last=last)
    run.reviews += counted(review_round)
    run.single_model = run.single_model or review_round.one_model
    gate = decide(review_round)
    yield from note("review-gate", f"{scope}, round {number}: {gate.text}")
    if gate.decision in (Decision.PASS, Decision.KNOWN_ISSUES):
        yield from _demand_confirmation(run, review_round)
    return review_round, gate


def _demand_confirmation(run: Course, review_round: Round) -> Step:
    """Demand that the ledger confirms the round: if its rows contradict the answers, the run stops."""
    answers = tally(review_round)
    result = yield from one(
        CountReviews(
            review_round.scope, review_round.number, answers, run.now.tip if review_round.scope == "code" else ""
        )
    )
    if problems := not_borne_out(answers, expected(result, ReviewsCounted).rows):
        claim = f"the ledger does not confirm the {review_round.scope} review, round {review_round.number}"
        raise OverError(RunOutcome.HALTED, f"{claim}: {'; '.join(problems)}", learns=False)


def _review_effect(
    run: Course, scope: Scope, focus: ReviewFocus, number: int, earlier: tuple[PanelFinding, ...]
) -> AskReview:
    if scope == "design":
        return AskReview(scope, focus, number, run.criteria, design=run.now.design, earlier=earlier)
    return AskReview(scope, focus, number, run.criteria, tip=run.now.tip, earlier=earlier)


def _findings_of(before: Round | None, focus: ReviewFocus) -> tuple[PanelFinding, ...]:
    answers = before.words if before else ()
    return next((word.findings for word in answers if word.focus is focus), ())


def _to_word(focus: ReviewFocus, result: Sent) -> Word:
    output = heard(result, PanelOutput)
    if isinstance(output, Failed):
        return Word(focus, None, output.why)
    return Word(focus, output, model=result.model if isinstance(result, Heard) else "")


ENOUGH: Final = 2
"""The minimum number of researchers that must answer."""


# Research.


def research(run: Course) -> Step:
    """Run four researchers in parallel; the user may ask for more research once."""
    unheard = yield from _run_research(run, 1)
    if len(run.now.research) < ENOUGH:
        raise OverError(RunOutcome.FAILED, f"insufficient research: {len(run.now.research)} of 4 researchers answered")
    decision = yield from approved(post_research(run.now.research, unheard))
    if decision.option == "expand":
        unheard = yield from _run_research(run, 2, _open_questions(decision.feedback, unheard))
        decision = yield from approved(post_research(run.now.research, unheard, number=2))
    if decision.option == "abort":
        raise OverError(RunOutcome.HALTED, "aborted by the user", learns=False)


def _run_research(run: Course, number: int, questions: tuple[str, ...] = ()) -> Steps[tuple[ResearchFocus, ...]]:
    """Dispatch the researchers, and those without an answer once more, if they were dispatched only once. Add the
    answers to the research, and return the foci without an answer.
    """
    answers = yield from _dispatch_researchers(
        run, tuple(AskResearch(focus, number, questions) for focus in ResearchFocus)
    )
    failed = tuple(focus for focus, answer in answers.items() if isinstance(answer, Failed) and answer.once)
    if failed:
        answers |= yield from _dispatch_researchers(
            run, tuple(AskResearch(focus, number, questions, attempt=2) for focus in failed)
        )
    unheard: list[ResearchFocus] = []
    for focus, answer in answers.items():
        if isinstance(answer, Failed):
            unheard.append(focus)
            yield from note("unheard", f"research on {focus}: {answer.why}")
        else:
            run.now.research = (*run.now.research, answer)
    return tuple(unheard)


def _dispatch_researchers(
    run: Course, effects: tuple[AskResearch, ...]
) -> Steps[dict[ResearchFocus, ResearchOutput | Failed]]:
    results = yield effects
    return {
        effect.focus: _demand_done(attended(run, result, ResearchOutput))
        for effect, result in zip(effects, results, strict=True)
    }


def _demand_done(answer: ResearchOutput | Failed) -> ResearchOutput | Failed:
    """Return a failure unless the research is done: nothing else would have to be revised first."""
    if isinstance(answer, Failed) or answer.completion.status is CompletionStatus.DONE:
        return answer
    return Failed(f"{answer.completion.status}: {answer.completion.summary}", once=True)


def _open_questions(feedback: str, unheard: tuple[ResearchFocus, ...]) -> tuple[str, ...]:
    """Return the open questions: the user's, and the foci without an answer."""
    question = (feedback.strip(),) if feedback.strip() else ()
    return (*question, *(f"there is no research on {focus} yet" for focus in unheard))


# Specification.


def specify(run: Course) -> Step:
    """Write a specification, and decide about its concerns."""
    spec = needed(run, (yield from one(AskSpec(1, run.now.research))), SpecOutput, "specification")
    decision = yield from _decide_concerns(run, spec.pushback, 1)
    if decision is not None and decision.option == "modify":
        comment = (decision.feedback.strip(),) if decision.feedback.strip() else ()
        answers = (*comment, *(f"the concern is: {concern.concern}" for concern in spec.pushback))
        spec = needed(run, (yield from one(AskSpec(2, run.now.research, answers))), SpecOutput, "specification")
        decision = yield from _decide_concerns(run, spec.pushback, 2)
    if decision is not None and decision.option == "abandon":
        raise OverError(RunOutcome.HALTED, "abandoned by the user", learns=False)
    run.now.spec = spec


def _decide_concerns(run: Course, concerns: tuple[Concern, ...], number: int) -> Steps[Decided | None]:
    """Return the decision about the concerns; None if none was needed. Only a person decides about a blocker, in every
    mode.
    """
    for concern in concerns:
        yield from note("concern", f"{concern.severity}: {concern.concern}", concern)
    is_blocked = any(concern.severity is Severity.BLOCKER for concern in concerns)
    by_person = is_blocked and not run.feature.proceed_on_pushback
    if not concerns or (run.feature.mode is RunMode.AUTONOMOUS and not by_person):
        return None
    return (yield from approved(pushback(concerns, number=number), by_person=by_person))


# Design.


def design(run: Course) -> Step:
    """Make a design, review it, and revise it once if necessary. The remaining findings bind the plan."""
    yield from _make_design(run, 1)
    previous: Round | None = None
    for number in range(1, ROUNDS["design"] + 1):
        review_round, gate = yield from reviewed(run, "design", previous, last=number == ROUNDS["design"])
        run.now.design_reviews, run.now.left_by_design = review_round.outputs, gate.known_issues
        if gate.decision is not Decision.REVISE:
            break
        if review_round.findings:  # without findings, only missing reviewers are dispatched again
            yield from _make_design(run, number + 1, review_round.outputs)
        previous = review_round
    _demand_continuation(run, review_round, gate)


def _make_design(run: Course, number: int, reviews: tuple[PanelOutput, ...] = ()) -> Step:
    if run.now.spec is None:
        raise TypeError("there is no specification for the design")
    question = AskDesign(number, run.now.spec, run.now.research, reviews)
    run.now.design = needed(run, (yield from one(question)), DesignOutput, "design")


def _demand_continuation(run: Course, review_round: Round, gate: Gate) -> None:
    reason = f"design review: {'; '.join(gate.reasons)}"
    if gate.decision is Decision.HALT:
        raise OverError(RunOutcome.HALTED, reason)
    if gate.decision is Decision.UNHEARD:
        run.exhausted.append(reason)
        raise OverError(RunOutcome.FAILED, reason)
    if gate.decision is Decision.KNOWN_ISSUES:
        run.now.constraints = tuple(
            f"{finding.title}: {finding.recommendation}" for _, finding in review_round.findings
        )
