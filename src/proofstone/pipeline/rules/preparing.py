"""The steps before there is a plan: research, specification, design and its review. Pure.

A review is one round of all reviewers in parallel, and the decision of the gate about their answers.
"""

from __future__ import annotations

from dataclasses import replace
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
    ReviewScope,
    SpecOutput,
)
from proofstone.common.models import Severity
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import RunMode
from proofstone.pipeline.rules.approvals import (
    build_pushback_request,
    build_request_pushback,
    build_research_request,
)
from proofstone.pipeline.rules.effects import (
    AgentFailure,
    AgentReply,
    ApprovalDecision,
    AskDesign,
    AskResearch,
    AskReview,
    AskSpec,
    CountReviews,
    PipelineEffectResult,
    ReviewCounts,
)
from proofstone.pipeline.rules.review_material import (
    find_highest_risk,
    list_criterion_results,
    list_implementation_reports,
)
from proofstone.pipeline.rules.reviews import (
    FULL_PANEL,
    MAX_REVIEW_ROUNDS,
    SINGLE_REVIEWER_PANEL,
    ReviewerAnswer,
    ReviewGateDecision,
    ReviewGateResult,
    ReviewRound,
    count_answers,
    decide_review,
    find_contradictions,
    to_reviewer_verdicts,
)
from proofstone.pipeline.rules.run_state import (
    PipelineStep,
    PipelineSteps,
    RunEndedError,
    RunState,
    ask_for_approval,
    await_fix,
    demand_no_revision,
    demand_reply,
    demand_result,
    perform_effect,
    read_reply,
    read_supervised_reply,
    record_decision_note,
    record_revision,
)


def run_review_round(
    run: RunState, scope: ReviewScope, before: ReviewRound | None, *, last: bool
) -> PipelineSteps[tuple[ReviewRound, ReviewGateResult]]:
    """Perform one review round. Each reviewer sees its own findings of the previous round."""
    number = 1 + max((review.round for review in run.reviews if review.scope == scope), default=0)
    foci = SINGLE_REVIEWER_PANEL if run.is_short else FULL_PANEL
    results = yield tuple(_review_effect(run, scope, focus, number, _findings_of(before, focus)) for focus in foci)
    carried = tuple(finding.title for finding in run.lane_state.open_criticals) if scope == "code" else ()
    review_round = ReviewRound(scope, number, tuple(map(_to_word, foci, results)), is_last=last, carried=carried)
    for result in results:
        run.add_gaps(*(result.uncertainties if isinstance(result, AgentReply) else ()))
    run.reviews += to_reviewer_verdicts(review_round)
    run.single_model = run.single_model or review_round.is_one_model
    gate = decide_review(review_round)
    yield from record_decision_note("review-gate", f"{scope}, round {number}: {gate.text}")
    if gate.decision in (ReviewGateDecision.PASS, ReviewGateDecision.KNOWN_ISSUES):
        yield from _demand_confirmation(run, review_round)
    return review_round, gate


def _demand_confirmation(run: RunState, review_round: ReviewRound) -> PipelineStep:
    """Demand that the ledger confirms the round: if its rows contradict the answers, the run stops."""
    answers = count_answers(review_round)
    result = yield from perform_effect(
        CountReviews(
            review_round.scope, review_round.number, answers, run.lane_state.tip if review_round.scope == "code" else ""
        )
    )
    if problems := find_contradictions(answers, demand_result(result, ReviewCounts).rows):
        claim = f"the ledger does not confirm the {review_round.scope} review, round {review_round.number}"
        raise RunEndedError(RunOutcome.HALTED, f"{claim}: {'; '.join(problems)}", is_instructive=False)


def _review_effect(
    run: RunState, scope: ReviewScope, focus: ReviewFocus, number: int, earlier: tuple[PanelFinding, ...]
) -> AskReview:
    now = run.lane_state
    if scope == "design":
        return AskReview(scope, focus, number, run.criteria, design=now.design, earlier=earlier)
    return AskReview(
        scope,
        focus,
        number,
        run.code_criteria,
        tip=now.tip,
        earlier=earlier,
        risk=find_highest_risk(now.plan) if now.plan else None,
        results=list_criterion_results(now.accepted),
        reports=list_implementation_reports(now.accepted),
        open_findings=tuple(
            f"{issue.severity}: {issue.title} ({issue.source})" for issue in (*now.design_issues, *now.plan_issues)
        ),
    )


def _findings_of(before: ReviewRound | None, focus: ReviewFocus) -> tuple[PanelFinding, ...]:
    answers = before.answers if before else ()
    return next((word.findings for word in answers if word.focus is focus), ())


def _to_word(focus: ReviewFocus, result: PipelineEffectResult) -> ReviewerAnswer:
    output = read_reply(result, PanelOutput)
    if isinstance(output, AgentFailure):
        return ReviewerAnswer(focus, None, output.why)
    return ReviewerAnswer(focus, output, model=result.model if isinstance(result, AgentReply) else "")


MIN_RESEARCHERS: Final = 2
"""The minimum number of researchers that must answer."""


# Research.


def run_research_step(run: RunState) -> PipelineStep:
    """Run four researchers in parallel; the user may ask for more research once."""
    unheard = yield from _run_research(run, 1)
    if len(run.lane_state.research) < MIN_RESEARCHERS:
        raise RunEndedError(
            RunOutcome.FAILED, f"insufficient research: {len(run.lane_state.research)} of 4 researchers answered"
        )
    decision = yield from ask_for_approval(build_research_request(run.lane_state.research, unheard))
    if decision.option == "expand":
        unheard = yield from _run_research(run, 2, _open_questions(decision.feedback, unheard))
        decision = yield from ask_for_approval(build_research_request(run.lane_state.research, unheard, number=2))
    if decision.option == "abort":
        raise RunEndedError(RunOutcome.HALTED, "aborted by the user", is_instructive=False)
    heard = {report.focus for report in run.lane_state.research}
    run.add_gaps(*(f"nobody answered for the research on {focus}" for focus in unheard if focus not in heard))


def _run_research(
    run: RunState, number: int, questions: tuple[str, ...] = ()
) -> PipelineSteps[tuple[ResearchFocus, ...]]:
    """Dispatch the researchers, and those without an answer once more, if they were dispatched only once. Add the
    answers to the research, and return the foci without an answer.
    """
    answers = yield from _dispatch_researchers(
        run, tuple(AskResearch(focus, number, questions) for focus in ResearchFocus)
    )
    failed = tuple(
        focus for focus, answer in answers.items() if isinstance(answer, AgentFailure) and answer.was_asked_once
    )
    if failed:
        answers |= yield from _dispatch_researchers(
            run, tuple(AskResearch(focus, number, questions, attempt=2) for focus in failed)
        )
    unheard: list[ResearchFocus] = []
    for focus, answer in answers.items():
        if isinstance(answer, AgentFailure):
            unheard.append(focus)
            yield from record_decision_note("unheard", f"research on {focus}: {answer.why}")
        else:
            run.lane_state.research = (*run.lane_state.research, answer)
    return tuple(unheard)


def _dispatch_researchers(
    run: RunState, effects: tuple[AskResearch, ...]
) -> PipelineSteps[dict[ResearchFocus, ResearchOutput | AgentFailure]]:
    results = yield effects
    return {
        effect.focus: _demand_done(read_supervised_reply(run, result, ResearchOutput))
        for effect, result in zip(effects, results, strict=True)
    }


def _demand_done(answer: ResearchOutput | AgentFailure) -> ResearchOutput | AgentFailure:
    """Return a failure unless the research is done: nothing else would have to be revised first."""
    if isinstance(answer, AgentFailure) or answer.completion.status is CompletionStatus.DONE:
        return answer
    return AgentFailure(f"{answer.completion.status}: {answer.completion.summary}", was_asked_once=True)


def _open_questions(feedback: str, unheard: tuple[ResearchFocus, ...]) -> tuple[str, ...]:
    """Return the open questions: the user's, and the foci without an answer."""
    question = (feedback.strip(),) if feedback.strip() else ()
    return (*question, *(f"there is no research on {focus} yet" for focus in unheard))


# The request, before anybody works on it.


def decide_request_concerns(run: RunState) -> PipelineStep:
    """Put the engine's concerns about the request to the user, once in a run. On its own, the run records them."""
    concerns = run.feature.concerns
    if not concerns or run.has_asked_about_request:
        return
    run.has_asked_about_request = True
    for concern in concerns:
        yield from record_decision_note("concern", f"{concern.severity}: {concern.concern}", concern)
    if run.feature.mode is RunMode.AUTONOMOUS:
        return
    decision = yield from ask_for_approval(build_request_pushback(concerns))
    if decision.option == "abandon":
        raise RunEndedError(RunOutcome.HALTED, "abandoned by the user", is_instructive=False)
    if decision.option == "modify":
        run.answers = (decision.feedback.strip(), *(f"the concern is: {concern.concern}" for concern in concerns))


# Specification.


def run_specification_step(run: RunState) -> PipelineStep:
    """Write a specification, and decide about its concerns."""
    spec = yield from _ask_spec(run, 1)
    if spec.completion.status is CompletionStatus.NEEDS_REVISION:
        said = yield from record_revision(run, "specifier", spec.completion.summary)
        spec = yield from _ask_spec(run, 2, (said,))
        yield from demand_no_revision(run, "specifier", spec.completion)
    decision = yield from _decide_concerns(run, spec.pushback, 1)
    if decision is not None and decision.option == "modify":
        comment = (decision.feedback.strip(),) if decision.feedback.strip() else ()
        answers = (*comment, *(f"the concern is: {concern.concern}" for concern in spec.pushback))
        spec = yield from _ask_spec(run, 3 if run.has_revised("specifier") else 2, answers)
        yield from demand_no_revision(run, "specifier", spec.completion)
        decision = yield from _decide_concerns(run, spec.pushback, 2)
    if decision is not None and decision.option == "abandon":
        raise RunEndedError(RunOutcome.HALTED, "abandoned by the user", is_instructive=False)
    for concern in spec.pushback:
        if concern.severity is Severity.BLOCKER:
            who = "the user" if decision is not None else "--proceed-on-pushback"
            gap = f"{who} overrode a blocker of the specifier: {concern.concern}"
            run.add_gaps(gap)
            yield from record_decision_note("overridden", gap)
    run.lane_state.spec = spec


def _ask_spec(run: RunState, number: int, answers: tuple[str, ...] = ()) -> PipelineSteps[SpecOutput]:
    question = AskSpec(number, run.lane_state.research, (*run.answers, *answers))
    return demand_reply(run, (yield from perform_effect(question)), SpecOutput, "specification")


def _decide_concerns(
    run: RunState, concerns: tuple[Concern, ...], number: int
) -> PipelineSteps[ApprovalDecision | None]:
    """Return the decision about the concerns; None if none was needed. Only a person decides about a blocker, in every
    mode.
    """
    for concern in concerns:
        yield from record_decision_note("concern", f"{concern.severity}: {concern.concern}", concern)
    is_blocked = any(concern.severity is Severity.BLOCKER for concern in concerns)
    by_person = is_blocked and not run.feature.proceed_on_pushback
    if not concerns or (run.feature.mode is RunMode.AUTONOMOUS and not by_person):
        return None
    return (yield from ask_for_approval(build_pushback_request(concerns, number=number), by_person=by_person))


# Design.


def run_design_step(run: RunState) -> PipelineStep:
    """Make a design, review it, and revise it once if necessary. The remaining findings bind the plan."""
    yield from _make_design(run)
    previous: ReviewRound | None = None
    rounds = 0
    while True:
        rounds += 1
        review_round, gate = yield from run_review_round(
            run, "design", previous, last=rounds == MAX_REVIEW_ROUNDS["design"]
        )
        run.lane_state.design_reviews, run.lane_state.design_issues = review_round.outputs, gate.known_issues
        if gate.decision is ReviewGateDecision.HALT:
            yield from await_fix(run, f"design review: {'; '.join(gate.reasons)}")
            rounds = 0  # what a person has ordered is reviewed like a new design
        elif gate.decision is not ReviewGateDecision.REVISE:
            break
        if review_round.findings:  # without findings, only missing reviewers are dispatched again
            yield from _make_design(run, review_round.outputs)
        previous = review_round
    _demand_continuation(run, review_round, gate)


def _make_design(run: RunState, reviews: tuple[PanelOutput, ...] = ()) -> PipelineStep:
    if run.lane_state.spec is None:
        raise TypeError("there is no specification for the design")
    run.design_round += 1
    question = AskDesign(run.design_round, run.lane_state.spec, run.lane_state.research, reviews)
    design = demand_reply(run, (yield from perform_effect(question)), DesignOutput, "design")
    if design.completion.status is CompletionStatus.NEEDS_REVISION and not run.has_revised("designer"):
        said = yield from record_revision(run, "designer", design.completion.summary)
        run.design_round += 1
        question = replace(question, round=run.design_round, revise=said)
        design = demand_reply(run, (yield from perform_effect(question)), DesignOutput, "design")
    yield from demand_no_revision(run, "designer", design.completion)
    run.lane_state.design = design


def _demand_continuation(run: RunState, review_round: ReviewRound, gate: ReviewGateResult) -> None:
    reason = f"design review: {'; '.join(gate.reasons)}"
    if gate.decision is ReviewGateDecision.UNHEARD:
        run.exhausted_loops.append(reason)
        raise RunEndedError(RunOutcome.FAILED, reason)
    if gate.decision is ReviewGateDecision.KNOWN_ISSUES:
        run.lane_state.constraints = tuple(
            f"{finding.title}: {finding.recommendation}" for _, finding in review_round.findings
        )
        run.lane_state.open_criticals = review_round.criticals
