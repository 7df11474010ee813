"""Whatever anybody answers: the loop ends, and nothing that failed is accepted."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionMode,
    DirectiveName,
    DispatchManifest,
    FinalResult,
    FinalStatus,
    OutcomeSummary,
    Predicate,
    PredicateKind,
    ReplanRequest,
    SubTask,
)
from proofstone.agents.rules.routes import is_allowed
from proofstone.runtime.rules import EffectDone
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskForFailureReport,
    AskMetaValidator,
    AskPerceiver,
    AskPerson,
    AskPlanner,
    AskValidator,
    CheckCriteria,
    CriteriaVerdicts,
    ElapsedTime,
    MeasureTime,
    PublishMessage,
    PursueSubtasks,
    RecallMemory,
    ReportPlan,
    ReportRejectedPlan,
    ReportRound,
    SolveAgentReply,
    SubtaskOutcomes,
    UserReply,
)
from proofstone.solve.rules.gradient import POLICIES, LossWeights
from tests.solve.talk import (
    ENVIRONMENTAL,
    LOGICAL,
    OUT,
    RAW,
    TOOLS,
    Asked,
    Given,
    Talk,
    came,
    converse,
    crash,
    done,
    draft,
    failure,
    goal,
    judgement,
    merge,
    messages,
    perceived,
    plan,
    plausible,
    seen,
    verifiable,
    well,
)
from tests.talk import needs

ACCEPT = DirectiveName.ACCEPT
BLOCKING = (DirectiveName.BREAK_SYMMETRY, DirectiveName.CHANGE_APPROACH)
CLASSES = st.sampled_from([*[None] * 6, LOGICAL, ENVIRONMENTAL])
SAYS_SO = Criterion(
    criterion="it says so",
    mode=CriterionMode.VERIFIABLE,
    predicate=Predicate(kind=PredicateKind.OUTPUT_CONTAINS, text="moved"),
)
CRITERIA = st.lists(
    st.sampled_from(
        [plausible("alpha holds"), plausible("beta holds"), verifiable("it builds"), verifiable("it runs"), SAYS_SO]
    ),
    min_size=1,
    max_size=3,
).map(tuple)
DRAFTS = st.builds(
    lambda criteria, sequence, tools, files: draft(*criteria, sequence=sequence, tools=tools, files=files),
    CRITERIA,
    st.integers(1, 2),
    st.lists(st.sampled_from(TOOLS), min_size=1, max_size=2).map(tuple),
    st.lists(st.sampled_from(["x", "y/z", "y"]), max_size=2).map(tuple),
)
PLANS = st.builds(
    lambda drafts, criteria: plan(*drafts, criteria=criteria), st.lists(DRAFTS, min_size=1, max_size=3), CRITERIA
)
NOTHING: st.SearchStrategy[Given] = st.sampled_from([OUT, EffectDone(), SolveAgentReply(perceived())])
"""Of no use to anybody but a perceiver."""


def _seldom(useless: st.SearchStrategy[Given], *useful: st.SearchStrategy[Given]) -> st.SearchStrategy[Given]:
    return st.integers(0, 9).flatmap(lambda drawn: useless if drawn == 0 else st.one_of(*useful))


def answers(need: Asked) -> st.SearchStrategy[Given]:
    """What might be sent."""
    match need:
        case AskPerceiver():
            return st.sampled_from(
                [
                    OUT,
                    EffectDone(),
                    SolveAgentReply(plan()),
                    SolveAgentReply(perceived("x")),
                    SolveAgentReply(perceived("y", "?")),
                ]
            )
        case AskPerson():
            return st.sampled_from([EffectDone(), UserReply(""), UserReply("that one")])
        case RecallMemory():
            return st.sampled_from(
                [EffectDone(), Calibration(), Calibration(blocked_tools=("grep",), blocked_targets=("y",))]
            )
        case AskPlanner():
            return _seldom(NOTHING, PLANS.map(SolveAgentReply))
        case PursueSubtasks(subtasks=of):
            lost = st.lists(st.sampled_from([*map(came, of), *(came(one, id="t9") for one in of)]), max_size=3)
            return _seldom(lost.map(lambda found: SubtaskOutcomes(tuple(found))), st.just(EffectDone()))
        case AskExecutor(subtask=of):
            used = done(*of.tools, targets=of.files, id=of.subtask_id)
            return _seldom(st.sampled_from([crash(), crash(may=True), done("curl")]), st.just(used))
        case AskValidator(criteria=criteria):
            judged = st.lists(CLASSES, max_size=len(criteria) + 1).map(lambda words: SolveAgentReply(judgement(*words)))
            return _seldom(NOTHING, judged, st.just(well(need)))
        case CheckCriteria(criteria=criteria):
            found = st.lists(CLASSES, min_size=len(criteria), max_size=len(criteria))
            return _seldom(
                st.just(CriteriaVerdicts(())), found.map(lambda classes: seen(criteria, *classes)), st.just(well(need))
            )
        case AskMetaValidator(criteria=criteria):
            meets = st.sampled_from(["yes", "yes", "yes", "no", "ambiguous"])
            merged = st.builds(
                lambda words, meets: SolveAgentReply(merge(*words, meets=meets)),
                st.lists(CLASSES, max_size=len(criteria)),
                meets,
            )
            return _seldom(NOTHING, merged, st.just(well(need)))
        case MeasureTime():
            return st.one_of(st.just(EffectDone()), st.integers(0, 10**6).map(ElapsedTime))
        case AskForFailureReport():
            return st.sampled_from([OUT, EffectDone(), SolveAgentReply(failure())])
        case _:
            return st.just(EffectDone())


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, Talk]:
    replans = draw(st.integers(0, 4))
    about = goal(weights=LossWeights(max_replans=replans), policy=draw(st.sampled_from(sorted(POLICIES))))
    return replans, converse(about, lambda need: draw(answers(need)))


@settings(max_examples=150, deadline=None)
@given(runs())
def test_whatever_is_answered(run: tuple[int, Talk]) -> None:
    replans, talk = run
    result = talk.end.result
    assert talk.rounds() <= replans + 1
    assert result.replans == talk.rounds() - 1
    assert (result.loss.D == 0) == (result.status is FinalStatus.ACCEPTED)
    assert talk.end.spec.raw_input == RAW
    assert messages(talk, FinalResult) == [result]
    assert talk.names[-1] == "controller → person: FinalResult"
    assert bool(result.next_moves) == (result.status is not FinalStatus.ACCEPTED)
    _every_message_is_on_a_route(talk)
    _ids_are_unique(talk)
    _nothing_starts_after_a_failure(talk)
    _only_what_matched_is_merged(talk)
    _what_is_blocked_is_not_planned(talk)
    _what_is_accepted_was_verified(talk)
    _every_look_has_a_name_of_its_own(talk)
    _whoever_looks_on_hears_all(talk)
    _what_is_left_is_what_was_said(talk)


def _every_look_has_a_name_of_its_own(talk: Talk) -> None:
    names = [(one.where, one.attempt) for one in needs(talk, CheckCriteria)]
    assert len(names) == len(set(names))


def _whoever_looks_on_hears_all(talk: Talk) -> None:
    rounds = needs(talk, ReportRound)
    assert [one.number for one in rounds] == list(range(1, talk.rounds() + 1))
    assert [one.reading for one in rounds] == list(talk.end.readings)
    assert [one.round for one in needs(talk, ReportPlan)] == [one.number for one in rounds if one.subtasks]
    assert [(one.round, one.why) for one in needs(talk, ReportRejectedPlan)] == [
        (one.number, why) for one in rounds for why in one.rejected
    ]


def _what_is_left_is_what_was_said(talk: Talk) -> None:
    assert list(talk.end.all_subtasks) == messages(talk, SubTask)
    assert [one for one in talk.end.rounds if isinstance(one, ReplanRequest)] == messages(talk, ReplanRequest)
    assert [one for one in talk.end.rounds if isinstance(one, OutcomeSummary)] == messages(talk, OutcomeSummary)
    assert [one.directive for one in needs(talk, ReportRound) if one.directive.directive is not ACCEPT] == [
        *talk.end.directives
    ]


def _every_message_is_on_a_route(talk: Talk) -> None:
    assert all(is_allowed(one.sender, one.recipient, type(one.message).__name__) for one in needs(talk, PublishMessage))


def _ids_are_unique(talk: Talk) -> None:
    ids = [one.subtask_id for one in messages(talk, SubTask)]
    assert len(ids) == len(set(ids))
    assert ids == [id for one in messages(talk, DispatchManifest) for id in one.subtask_ids]


def _nothing_starts_after_a_failure(talk: Talk) -> None:
    for one in needs(talk, PursueSubtasks):
        assert all(before.is_matched for before in one.before)
        waited_for = [other for other in needs(talk, PursueSubtasks) if other.round == one.round]
        earlier = {
            of.subtask_id for other in waited_for for of in other.subtasks if of.sequence < one.subtasks[0].sequence
        }
        assert {before.subtask_id for before in one.before} == earlier


def _only_what_matched_is_merged(talk: Talk) -> None:
    for one in needs(talk, AskMetaValidator):
        assert all(outcome.is_matched for outcome in one.outcomes)
        assert {outcome.subtask_id for outcome in one.outcomes} == set(one.manifest.subtask_ids)
        assert not any(criterion.command or criterion.predicate for criterion in one.criteria)
        assert not any(seen.is_failed for seen in one.seen)


def _what_is_blocked_is_not_planned(talk: Talk) -> None:
    for number in range(1, talk.rounds() + 1):
        asked = [one for one in needs(talk, AskPlanner) if one.round == number]
        assert 1 <= len(asked) <= 3
    for one in needs(talk, PursueSubtasks):
        assert not set(one.blocked_tools) & {tool for of in one.subtasks for tool in of.tools}
        assert {"run", "write", "edit"} - set(one.blocked_tools)
    for directive in talk.end.directives:
        assert not directive.blocked_tools or directive.directive in BLOCKING
        assert not directive.blocked_targets or directive.directive is DirectiveName.CHANGE_PATH


def _what_is_accepted_was_verified(talk: Talk) -> None:
    if talk.end.result.status is not FinalStatus.ACCEPTED:
        assert talk.directives[-1] is DirectiveName.ABANDON
        return
    (summary,) = messages(talk, OutcomeSummary)
    assert summary.merged_verdicts
    assert not any(one.is_failed for one in summary.merged_verdicts)
    assert all(one.is_matched for one in summary.outcomes)
    assert {one.subtask_id for one in summary.outcomes} == {one.subtask_id for one in talk.end.subtasks}
    assert talk.directives.count(DirectiveName.ABANDON) == 0
