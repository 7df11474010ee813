"""How subtasks are pursued and merged: nothing is lost on the way, and nothing passes that was not seen."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionMode,
    CriterionVerdict,
    DispatchManifest,
    FinalStatus,
    OutcomeSummary,
    Predicate,
    PredicateKind,
    ReplanRequest,
)
from proofstone.runtime.rules import EffectDone
from proofstone.solve.rules.effects import (
    AskMetaValidator,
    AskPlanner,
    CheckCriteria,
    CriteriaVerdicts,
    PursueSubtasks,
    SolveAgentReply,
    SubtaskOutcomes,
)
from proofstone.solve.rules.loop import solve
from tests.rows import each_row
from tests.solve.talk import (
    ENVIRONMENTAL,
    LOGICAL,
    ONCE,
    OUT,
    TWO_STEPS,
    WRONG,
    Asked,
    Given,
    Script,
    Scripted,
    came,
    crash,
    draft,
    follow,
    goal,
    merge,
    messages,
    perceived,
    plan,
    plausible,
    seen,
    verifiable,
    word,
)
from tests.talk import needs

# Pursue.


def test_numbers_are_pursued_one_after_another_and_those_of_one_number_together() -> None:
    three = plan(draft(sequence=2), draft(), draft(sequence=2))
    talk = follow({"plan 1.1": three})
    first, second = needs(talk, PursueSubtasks)
    assert [one.subtask_id for one in first.subtasks] == ["t1-r1-s2"]
    assert [one.subtask_id for one in second.subtasks] == ["t1-r1-s1", "t1-r1-s3"]
    assert first.before == ()
    assert [one.subtask_id for one in second.before] == ["t1-r1-s2"]


@pytest.mark.parametrize("broken", [{"judge r1-s1": WRONG}, {"execute r1-s1": crash()}, {"judge r1-s1": OUT}])
@pytest.mark.seed("control-loop", "sequence")
def test_the_next_number_never_starts_after_one_has_failed(broken: Script) -> None:
    talk = follow({"plan 1.1": TWO_STEPS, **broken}, ONCE)
    assert not [one for one in talk.names if "r1-s2" in one]
    assert [one.subtask_id for one in talk.end.outcomes] == ["t1-r1-s1"]


def test_one_of_several_that_failed_is_enough() -> None:
    three = plan(draft(), draft(), draft(sequence=2))
    talk = follow({"plan 1.1": three, "judge r1-s1": WRONG}, ONCE)
    assert [one.subtask_id for one in talk.end.outcomes] == ["t1-r1-s1", "t1-r1-s2"]
    assert len(needs(talk, PursueSubtasks)) == 1


def _lost(need: Asked) -> Given:
    return SubtaskOutcomes(())


def _foreign(need: Asked) -> Given:
    assert isinstance(need, PursueSubtasks)
    return SubtaskOutcomes(tuple(came(one, id=f"{one.subtask_id}0") for one in need.subtasks))


def _of_another_round(need: Asked) -> Given:
    assert isinstance(need, PursueSubtasks)
    return SubtaskOutcomes(tuple(came(one, id=one.subtask_id.replace("r1", "r0")) for one in need.subtasks))


def _without_the_last(need: Asked) -> Given:
    assert isinstance(need, PursueSubtasks)
    return SubtaskOutcomes(tuple(map(came, need.subtasks[:-1])))


@pytest.mark.parametrize("sent", [_lost, _foreign, _of_another_round, _without_the_last])
def test_an_outcome_that_never_came_neither_hangs_nor_passes(sent: Scripted) -> None:
    talk = follow(
        {"plan 1.1": plan(draft(), draft(plausible("alpha holds"), verifiable("beta holds"))), "pursue 1": sent}, ONCE
    )
    lost = talk.end.outcomes[-1]
    assert [one.subtask_id for one in talk.end.outcomes] == ["t1-r1-s1", "t1-r1-s2"]
    assert (lost.is_matched, lost.failure_reason) == (False, "its outcome is missing")
    assert [(one.criterion, one.failure_class) for one in lost.criteria_verdicts] == [
        ("alpha holds", ENVIRONMENTAL),
        ("beta holds", ENVIRONMENTAL),
    ]
    assert not needs(talk, AskMetaValidator)
    assert talk.end.result.loss.D > 0


def _shown_by(*verdicts: CriterionVerdict) -> Scripted:
    def sent(need: Asked) -> Given:
        assert isinstance(need, PursueSubtasks)
        return SubtaskOutcomes(
            tuple(came(one).model_copy(update={"criteria_verdicts": verdicts}) for one in need.subtasks)
        )

    return sent


BOTH = (plausible("alpha holds"), verifiable("beta holds"))


@each_row(
    "sent",
    [
        _shown_by(),
        _shown_by(*seen(BOTH[:1]).verdicts),
        _shown_by(*seen((*BOTH, plausible("another"))).verdicts),
        _shown_by(*seen((BOTH[0], plausible("another"))).verdicts),
        _shown_by(*seen(BOTH, None, LOGICAL).verdicts),
    ],
)
def test_an_outcome_that_says_it_matched_and_does_not_show_it_has_failed(sent: Scripted) -> None:
    talk = follow({"plan 1.1": plan(draft(*BOTH)), "pursue 1": sent}, ONCE)
    (outcome,) = talk.end.outcomes
    assert outcome.failure_reason == "its outcome claims a match without proof"
    assert not needs(talk, AskMetaValidator)
    assert talk.end.result.status is FinalStatus.ABANDONED


def test_an_outcome_that_nobody_asked_for_is_left_out() -> None:
    def more(need: Asked) -> Given:
        assert isinstance(need, PursueSubtasks)
        (one,) = need.subtasks
        return SubtaskOutcomes((came(one, matched=False, id="t1-r9-s9"), came(one), came(one, matched=False)))

    talk = follow({"pursue 1": more})
    assert [(one.subtask_id, one.is_matched) for one in talk.end.outcomes] == [("t1-r1-s1", True)]
    assert talk.end.result.status is FinalStatus.ACCEPTED


def test_a_pursuit_that_is_answered_with_something_else_is_a_fault_of_the_engine() -> None:
    loop = solve(goal())
    need = next(loop)
    while not isinstance(need, PursueSubtasks):
        need = loop.send(SolveAgentReply(plan()) if isinstance(need, AskPlanner) else EffectDone())
    with pytest.raises(TypeError, match="expected outcomes"):
        loop.send(EffectDone())


# Merge.


@pytest.mark.parametrize("broken", [{"judge r1-s2": WRONG}, {"execute r1-s2": crash()}, {"pursue 1": _lost}])
@pytest.mark.seed("control-loop", "fan-in")
def test_the_meta_validator_is_not_asked_while_anything_has_failed(broken: Script) -> None:
    talk = follow({"plan 1.1": plan(draft(), draft()), **broken}, ONCE)
    assert not needs(talk, AskMetaValidator)
    assert messages(talk, ReplanRequest)
    assert not messages(talk, OutcomeSummary)


@each_row(
    ("answer", "failed"),
    [
        (merge(meets="ambiguous", why="it may be"), "what the user asked for"),
        (merge(meets="no", why="it is not"), "what the user asked for"),
        (merge(LOGICAL), "both hold equally many customers"),
        (merge(word(1, evidence=" ")), "both hold equally many customers"),
        (merge(word(2)), "both hold equally many customers"),
        (OUT, "what the user asked for"),
        (SolveAgentReply(perceived()), "what the user asked for"),
        (EffectDone(), "what the user asked for"),
    ],
)
def test_a_merge_that_is_not_verified_is_rejected_and_its_distance_is_not_0(answer: Scripted, failed: str) -> None:
    talk = follow({"merge": answer}, ONCE)
    (request,) = messages(talk, ReplanRequest)
    assert failed in request.gap_summary
    assert not request.failed_subtasks
    assert any(one.is_failed for one in request.merged_verdicts)
    assert not messages(talk, OutcomeSummary)
    assert talk.end.result.loss.D > 0
    assert talk.end.result.status is FinalStatus.PARTIAL


@pytest.mark.seed("control-loop", "fan-in")
def test_doubt_is_a_logical_failure_that_says_why() -> None:
    talk = follow({"merge": merge(meets="ambiguous", why="two readings")}, ONCE)
    wrong = [one for one in messages(talk, ReplanRequest)[0].merged_verdicts if one.is_failed]
    assert [(one.evidence, one.failure_class) for one in wrong] == [("ambiguous: two readings", LOGICAL)]


CRITERIA = (plausible("sums are equal"), verifiable("it builds"), plausible("names are kept"))


def test_a_verifiable_criterion_of_the_task_never_reaches_the_meta_validator() -> None:
    talk = follow({"plan 1.1": plan(criteria=CRITERIA)})
    (ask,) = needs(talk, AskMetaValidator)
    (look,) = needs(talk, CheckCriteria)
    assert [one.criterion for one in ask.criteria] == ["sums are equal", "names are kept"]
    assert [one.criterion for one in look.criteria] == ["it builds"]
    assert (look.where, look.attempt, look.output) == ("t1-r1", 1, "")
    assert [(one.criterion, one.verdict) for one in ask.seen] == [("it builds", "pass")]
    assert ask.manifest == messages(talk, DispatchManifest)[0]
    assert ask.outcomes == talk.end.outcomes


@each_row(
    "looked",
    [seen((CRITERIA[1],), LOGICAL), CriteriaVerdicts(()), seen((verifiable("another"),)), EffectDone()],
)
@each_row("criteria", [CRITERIA, CRITERIA[1:2]])
def test_what_the_engine_did_not_see_of_the_merged_result_has_not_passed(
    looked: Scripted, criteria: tuple[object, ...]
) -> None:
    talk = follow({"plan 1.1": plan(criteria=criteria), "look r1": looked}, ONCE)  # type: ignore[arg-type]
    assert talk.end.result.status is FinalStatus.PARTIAL
    assert "it builds" in messages(talk, ReplanRequest)[0].gap_summary


def predicate(kind: PredicateKind, criterion: str) -> Criterion:
    return Criterion(
        criterion=criterion, mode=CriterionMode.VERIFIABLE, predicate=Predicate(kind=kind, path="a", text="moved")
    )


SAYS_SO = predicate(PredicateKind.OUTPUT_CONTAINS, "it says so")
BEFORE_AND_AFTER = (SAYS_SO, *CRITERIA, predicate(PredicateKind.CONTAINS, "the file says so"))


def test_the_engine_looks_before_the_merge_and_at_the_output_after_it() -> None:
    talk = follow({"plan 1.1": plan(criteria=BEFORE_AND_AFTER)})
    assert talk.asked[-3:] == ["look r1.1", "merge 1", "look r1.2"]
    before, after = needs(talk, CheckCriteria)
    assert ([one.criterion for one in before.criteria], before.output) == (["it builds", "the file says so"], "")
    assert ([one.criterion for one in after.criteria], after.output) == (["it says so"], "all is moved")
    assert before.where == after.where == "t1-r1"
    (summary,) = messages(talk, OutcomeSummary)
    assert {one.criterion for one in summary.merged_verdicts} == {one.criterion for one in BEFORE_AND_AFTER}


@pytest.mark.parametrize(
    "looked",
    [seen((CRITERIA[1], BEFORE_AND_AFTER[-1]), None, LOGICAL), CriteriaVerdicts(()), EffectDone()],
    ids=["it is not so", "nothing was seen", "nobody looked"],
)
def test_what_the_engine_saw_to_be_wrong_no_model_is_asked_about(looked: Scripted) -> None:
    talk = follow({"plan 1.1": plan(criteria=BEFORE_AND_AFTER), "look r1.1": looked}, ONCE)
    assert not needs(talk, AskMetaValidator)
    (request,) = messages(talk, ReplanRequest)
    assert [one.criterion for one in request.merged_verdicts] == ["it builds", "the file says so"]
    assert "the file says so" in request.gap_summary
    assert talk.end.result.loss.D > 0


def test_what_was_not_seen_or_judged_does_not_count_in_the_distance() -> None:
    """One criterion of the subtask and two that were looked at, of which one is not so."""
    looked = seen((CRITERIA[1], BEFORE_AND_AFTER[-1]), None, LOGICAL)
    talk = follow({"plan 1.1": plan(criteria=BEFORE_AND_AFTER), "look r1.1": looked}, ONCE)
    assert round(talk.end.result.loss.D, 3) == 0.333


def test_an_output_that_does_not_say_so_is_rejected() -> None:
    talk = follow({"plan 1.1": plan(criteria=BEFORE_AND_AFTER), "look r1.2": seen((SAYS_SO,), LOGICAL)}, ONCE)
    (request,) = messages(talk, ReplanRequest)
    assert [one.criterion for one in request.merged_verdicts if one.is_failed] == ["it says so"]
    assert talk.end.result.status is FinalStatus.PARTIAL


def test_what_was_seen_stands_where_the_meta_validator_cannot_be_heard() -> None:
    talk = follow({"plan 1.1": plan(criteria=BEFORE_AND_AFTER), "merge": OUT}, ONCE)
    (request,) = messages(talk, ReplanRequest)
    assert {one.criterion for one in request.merged_verdicts if not one.is_failed} == {"it builds", "the file says so"}
    assert {"sums are equal", "names are kept", "it says so"} < {
        one.criterion for one in request.merged_verdicts if one.is_failed
    }


def test_all_merged_verdicts_are_told_and_counted() -> None:
    talk = follow({"plan 1.1": plan(criteria=CRITERIA), "merge 1": merge(None, LOGICAL)}, ONCE)
    (request,) = messages(talk, ReplanRequest)
    assert {one.criterion: one.verdict for one in request.merged_verdicts} == {
        "sums are equal": "pass",
        "names are kept": "fail",
        "it builds": "pass",
    }
    assert talk.end.result.loss.D == 0.25
