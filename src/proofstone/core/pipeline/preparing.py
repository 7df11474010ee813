"""The steps before there is a plan: research, specification, design, and the review of the design. Pure."""

from __future__ import annotations

from typing import Final

from proofstone.contracts.agent import CompletionStatus
from proofstone.contracts.gate_report import RunOutcome
from proofstone.contracts.pipeline.approval import RunMode
from proofstone.contracts.pipeline.design import DesignOutput
from proofstone.contracts.pipeline.research import ResearchFocus, ResearchOutput
from proofstone.contracts.pipeline.review import PanelOutput
from proofstone.contracts.pipeline.spec import Concern, SpecOutput
from proofstone.contracts.verdict import Severity
from proofstone.core.pipeline.approvals import post_research, pushback
from proofstone.core.pipeline.course import Course, OverError, Step, Steps, approved, attended, needed, note, one
from proofstone.core.pipeline.needs import AskDesign, AskResearch, AskSpec, Decided, Failed
from proofstone.core.pipeline.panel import reviewed
from proofstone.core.pipeline.reviews import ROUNDS, Decision, Gate, Round

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
