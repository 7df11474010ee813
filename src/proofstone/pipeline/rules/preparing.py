"""Asking the reviewers: a round of them at once, and what the gate makes of their words. Pure.

The steps before there is a plan: research, specification, design, and the review of the design. Pure.
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
    """One round. Each reviewer is shown what they found in the round before."""
    number = 1 + max((review.round for review in run.reviews if review.scope == scope), default=0)
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


ENOUGH: Final = 2
"""Researchers that must be heard."""


# Research.


def research(run: Course) -> Step:
    """Four at once; the person may have it expanded, once."""
    unheard = yield from _researched(run, 1)
    if len(run.now.research) < ENOUGH:
        raise OverError(RunOutcome.FAILED, f"insufficient research: {len(run.now.research)} of 4 were heard")
    decided = yield from approved(post_research(run.now.research, unheard))
    if decided.option == "expand":
        unheard = yield from _researched(run, 2, _questions(decided.feedback, unheard))
        decided = yield from approved(post_research(run.now.research, unheard, number=2))
    if decided.option == "abort":
        raise OverError(RunOutcome.HALTED, "aborted by the person", learns=False)


def _researched(run: Course, number: int, questions: tuple[str, ...] = ()) -> Steps[tuple[ResearchFocus, ...]]:
    """Those who were not heard, asked once more if they were asked once only; what the others have found is added to
    what there is."""
    came = yield from _asked(run, tuple(AskResearch(focus, number, questions) for focus in ResearchFocus))
    failed = tuple(focus for focus, answer in came.items() if isinstance(answer, Failed) and answer.once)
    if failed:
        came |= yield from _asked(run, tuple(AskResearch(focus, number, questions, attempt=2) for focus in failed))
    unheard: list[ResearchFocus] = []
    for focus, answer in came.items():
        if isinstance(answer, Failed):
            unheard.append(focus)
            yield from note("unheard", f"research on {focus}: {answer.why}")
        else:
            run.now.research = (*run.now.research, answer)
    return tuple(unheard)


def _asked(run: Course, needs: tuple[AskResearch, ...]) -> Steps[dict[ResearchFocus, ResearchOutput | Failed]]:
    sent = yield needs
    return {need.focus: _done(attended(run, each, ResearchOutput)) for need, each in zip(needs, sent, strict=True)}


def _done(answer: ResearchOutput | Failed) -> ResearchOutput | Failed:
    """A researcher is done or is not: there is nothing that another would have to revise first."""
    if isinstance(answer, Failed) or answer.completion.status is CompletionStatus.DONE:
        return answer
    return Failed(f"{answer.completion.status}: {answer.completion.summary}", once=True)


def _questions(feedback: str, unheard: tuple[ResearchFocus, ...]) -> tuple[str, ...]:
    """What is open: what the person wants to know, and what nobody has looked at."""
    asked = (feedback.strip(),) if feedback.strip() else ()
    return (*asked, *(f"nobody has looked at {focus} yet" for focus in unheard))


# Specification.


def specify(run: Course) -> Step:
    """A specification, and what becomes of the concerns in it."""
    spec = needed(run, (yield from one(AskSpec(1, run.now.research))), SpecOutput, "specification")
    decided = yield from _weighed(run, spec.pushback, 1)
    if decided is not None and decided.option == "modify":
        said = (decided.feedback.strip(),) if decided.feedback.strip() else ()
        answers = (*said, *(f"the concern was: {concern.concern}" for concern in spec.pushback))
        spec = needed(run, (yield from one(AskSpec(2, run.now.research, answers))), SpecOutput, "specification")
        decided = yield from _weighed(run, spec.pushback, 2)
    if decided is not None and decided.option == "abandon":
        raise OverError(RunOutcome.HALTED, "abandoned by the person", learns=False)
    run.now.spec = spec


def _weighed(run: Course, concerns: tuple[Concern, ...], number: int) -> Steps[Decided | None]:
    """What was decided about them; None: nobody had to. A blocker is for a person, whatever the mode."""
    for concern in concerns:
        yield from note("concern", f"{concern.severity}: {concern.concern}", concern)
    grave = any(concern.severity is Severity.BLOCKER for concern in concerns)
    by_person = grave and not run.feature.proceed_on_pushback
    if not concerns or (run.feature.mode is RunMode.AUTONOMOUS and not by_person):
        return None
    return (yield from approved(pushback(concerns, number=number), by_person=by_person))


# Design.


def design(run: Course) -> Step:
    """A design, reviewed and revised once if need be. What is left then binds the plan."""
    yield from _designed(run, 1)
    before: Round | None = None
    for number in range(1, ROUNDS["design"] + 1):
        it, gate = yield from reviewed(run, "design", before, last=number == ROUNDS["design"])
        run.now.design_reviews, run.now.left_by_design = it.outputs, gate.known_issues
        if gate.decision is not Decision.REVISE:
            break
        if it.findings:  # where nobody has found anything, there is only somebody to be asked again
            yield from _designed(run, number + 1, it.outputs)
        before = it
    _goes_on(run, it, gate)


def _designed(run: Course, number: int, reviews: tuple[PanelOutput, ...] = ()) -> Step:
    if run.now.spec is None:
        raise TypeError("there is no specification to design for")
    question = AskDesign(number, run.now.spec, run.now.research, reviews)
    run.now.design = needed(run, (yield from one(question)), DesignOutput, "design")


def _goes_on(run: Course, it: Round, gate: Gate) -> None:
    reason = f"design review: {'; '.join(gate.reasons)}"
    if gate.decision is Decision.HALT:
        raise OverError(RunOutcome.HALTED, reason)
    if gate.decision is Decision.UNHEARD:
        run.exhausted.append(reason)
        raise OverError(RunOutcome.FAILED, reason)
    if gate.decision is Decision.KNOWN_ISSUES:
        run.now.constraints = tuple(f"{found.title}: {found.recommendation}" for _, found in it.findings)
