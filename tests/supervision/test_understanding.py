"""The understanding gate, row by row, and that it always ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.common.models import Verdict
from proofstone.supervision.models.understanding import (
    AnalysisItem,
    AnalysisOutcome,
    ExemptDecision,
    GateAttempts,
    GiveUpDecision,
    ItemVerdict,
    QuestionDecision,
    RetryDecision,
    SupervisionTier,
    VerifyDecision,
)
from proofstone.supervision.rules.understanding import (
    ENGINE_ITEMS,
    ITEMS_BY_TIER,
    MANDATORY_ITEMS,
    MAX_ATTEMPTS_BY_TIER,
    OutOfTurnError,
    decide_analysis_outcome,
    enter_gate,
    judge_analysis,
    judge_challenge_answer,
    list_judged_items,
)
from tests.rows import each_row

ASKED_TIERS = [SupervisionTier.IMPLEMENTER, SupervisionTier.ARCHITECT, SupervisionTier.RESEARCHER]


def verdicts(tier: SupervisionTier, *failing: AnalysisItem, unsure: tuple[AnalysisItem, ...] = ()) -> list[ItemVerdict]:
    def verdict(item: AnalysisItem) -> Verdict:
        return Verdict.FAIL if item in failing else Verdict.UNVERIFIABLE if item in unsure else Verdict.PASS

    return [ItemVerdict(item=item, verdict=verdict(item), detail=f"about {item}") for item in ITEMS_BY_TIER[tier]]


def about(item: AnalysisItem, verdict: Verdict) -> ItemVerdict:
    return ItemVerdict(item=item, verdict=verdict)


@pytest.mark.parametrize(
    ("tier", "numbers", "attempts"),
    [
        (SupervisionTier.IMPLEMENTER, "1 2 3 4 5 6 7 8 9 10", 3),
        (SupervisionTier.ARCHITECT, "1 2 3 4 5 6 7", 3),
        (SupervisionTier.RESEARCHER, "1 2 3 9 10", 2),
        (SupervisionTier.EXEMPT, "", 0),
    ],
)
def test_each_tier_has_its_items_and_attempts(tier: SupervisionTier, numbers: str, attempts: int) -> None:
    assert [item.value for item in ITEMS_BY_TIER[tier]] == [f"RC-{int(number):02}" for number in numbers.split()]
    assert MAX_ATTEMPTS_BY_TIER[tier] == attempts
    assert set(list_judged_items(tier)) | (ENGINE_ITEMS & set(ITEMS_BY_TIER[tier])) == set(ITEMS_BY_TIER[tier])
    assert not set(list_judged_items(tier)) & ENGINE_ITEMS


@pytest.mark.parametrize(("failed", "expected"), [(0, "VERIFIED"), (1, "QUESTION"), (2, "QUESTION"), (3, "REJECTED")])
@pytest.mark.seed("continuity", "entry-gate")
def test_the_number_of_failed_items_decides(failed: int, expected: str) -> None:
    assert decide_analysis_outcome(failed) == AnalysisOutcome(expected)
    assert decide_analysis_outcome(10) is AnalysisOutcome.REJECTED


def test_tier_0_and_whoever_cannot_be_asked_do_not_enter() -> None:
    assert enter_gate(SupervisionTier.EXEMPT) == ExemptDecision(why="tier 0 is exempt")
    assert enter_gate(SupervisionTier.IMPLEMENTER, "not applicable: cmd cannot be asked") == ExemptDecision(
        why="not applicable: cmd cannot be asked"
    )
    assert enter_gate(SupervisionTier.IMPLEMENTER) == GateAttempts(tier=SupervisionTier.IMPLEMENTER)


@pytest.mark.parametrize("tier", ASKED_TIERS)
def test_all_pass_is_verified(tier: SupervisionTier) -> None:
    after, decision = judge_analysis(GateAttempts(tier=tier), verdicts(tier))
    assert decision == VerifyDecision() and after.over


@pytest.mark.parametrize("tier", ASKED_TIERS)
def test_without_anybody_who_judges_it_passes_and_the_confidence_is_capped(tier: SupervisionTier) -> None:
    unsure = list_judged_items(tier)
    _, decision = judge_analysis(GateAttempts(tier=tier), verdicts(tier, unsure=unsure))
    assert isinstance(decision, VerifyDecision) and decision.unverifiable == unsure


def test_an_item_that_nobody_looked_at_is_no_pass() -> None:
    _, decision = judge_analysis(
        GateAttempts(tier=SupervisionTier.RESEARCHER), verdicts(SupervisionTier.RESEARCHER)[1:]
    )
    assert decision == VerifyDecision(unverifiable=(AnalysisItem.TASK,))


def test_of_two_verdicts_about_an_item_the_worst_counts() -> None:
    found = [*verdicts(SupervisionTier.RESEARCHER), about(AnalysisItem.FACTS, Verdict.FAIL)]
    for order in (found, found[::-1]):
        _, decision = judge_analysis(GateAttempts(tier=SupervisionTier.RESEARCHER), order)
        assert isinstance(decision, QuestionDecision) and [one.item for one in decision.items] == [AnalysisItem.FACTS]


def test_items_of_another_tier_are_left_alone() -> None:
    found = [*verdicts(SupervisionTier.RESEARCHER), *(about(item, Verdict.FAIL) for item in MANDATORY_ITEMS)]
    assert judge_analysis(GateAttempts(tier=SupervisionTier.RESEARCHER), found)[1] == VerifyDecision()


def test_what_must_be_answered_is_asked_first() -> None:
    _, decision = judge_analysis(
        GateAttempts(tier=SupervisionTier.IMPLEMENTER),
        verdicts(SupervisionTier.IMPLEMENTER, AnalysisItem.FILES, AnalysisItem.DOWNSTREAM),
    )
    assert isinstance(decision, QuestionDecision)
    assert [one.item for one in decision.items] == [AnalysisItem.DOWNSTREAM, AnalysisItem.FILES]


def test_an_answer_that_puts_all_right_is_verified_with_what_was_unverifiable_before() -> None:
    at = GateAttempts(tier=SupervisionTier.IMPLEMENTER)
    at, _ = judge_analysis(
        at,
        verdicts(SupervisionTier.IMPLEMENTER, AnalysisItem.FILES, AnalysisItem.FACTS, unsure=(AnalysisItem.BREAKING,)),
    )
    at, decision = judge_challenge_answer(
        at, [about(AnalysisItem.FILES, Verdict.PASS), about(AnalysisItem.FACTS, Verdict.UNVERIFIABLE)]
    )
    assert decision == VerifyDecision(unverifiable=(AnalysisItem.BREAKING, AnalysisItem.FACTS)) and at.over


@each_row("item", sorted(MANDATORY_ITEMS))
@each_row("verdict", [Verdict.FAIL, Verdict.UNVERIFIABLE, None])
def test_interfaces_other_agents_and_consequences_must_be_answered(item: AnalysisItem, verdict: Verdict | None) -> None:
    at, _ = judge_analysis(GateAttempts(tier=SupervisionTier.IMPLEMENTER), verdicts(SupervisionTier.IMPLEMENTER, item))
    at, decision = judge_challenge_answer(at, [about(item, verdict)] if verdict else [])
    assert isinstance(decision, RetryDecision) and (decision.attempt, decision.of) == (2, 3)
    assert [one.item for one in decision.reasons] == [item] and at == GateAttempts(
        tier=SupervisionTier.IMPLEMENTER, attempt=2
    )


@pytest.mark.parametrize("tier", ASKED_TIERS)
def test_three_that_fail_are_rejected_until_no_attempt_is_left(tier: SupervisionTier) -> None:
    at, decisions = GateAttempts(tier=tier), []
    while not at.over:
        at, decision = judge_analysis(at, verdicts(tier, *ITEMS_BY_TIER[tier][:3]))
        decisions.append(decision)
    assert len(decisions) == MAX_ATTEMPTS_BY_TIER[tier] and isinstance(decisions[-1], GiveUpDecision)
    assert [one.attempt for one in decisions if isinstance(one, RetryDecision)] == list(
        range(2, MAX_ATTEMPTS_BY_TIER[tier] + 1)
    )
    assert len(decisions[-1].reasons) == 3


def test_nothing_happens_out_of_turn() -> None:
    fresh = GateAttempts(tier=SupervisionTier.IMPLEMENTER)
    asked, _ = judge_analysis(fresh, verdicts(SupervisionTier.IMPLEMENTER, AnalysisItem.FILES))
    over, _ = judge_analysis(fresh, verdicts(SupervisionTier.IMPLEMENTER))
    for attempts, step in (
        (fresh, judge_challenge_answer),
        (asked, judge_analysis),
        (over, judge_analysis),
        (over, judge_challenge_answer),
    ):
        with pytest.raises(OutOfTurnError):
            step(attempts, [])


some_verdicts = st.lists(
    st.builds(ItemVerdict, item=st.sampled_from(list(AnalysisItem)), verdict=st.sampled_from(list(Verdict))),
    max_size=14,
)


@settings(max_examples=60)
@given(st.sampled_from(ASKED_TIERS), st.lists(some_verdicts, min_size=6, max_size=6))
def test_the_gate_ends_within_its_attempts_and_nothing_that_failed_is_verified(
    tier: SupervisionTier, rounds: list[list[ItemVerdict]]
) -> None:
    at, steps, analyses = GateAttempts(tier=tier), iter(rounds), 0
    while not at.over:
        found = next(steps)
        analyses += not at.asked
        concerned = at.asked or ITEMS_BY_TIER[tier]
        at, decision = (judge_challenge_answer if at.asked else judge_analysis)(at, found)
        if isinstance(decision, VerifyDecision):
            failed = {one.item for one in found if one.verdict is Verdict.FAIL}
            assert not failed & set(concerned)
            unsure = {one.item for one in found if one.verdict is Verdict.UNVERIFIABLE} & set(concerned)
            assert unsure <= set(decision.unverifiable)
    assert analyses <= MAX_ATTEMPTS_BY_TIER[tier]
