"""The understanding gate, row by row, and that it always ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.common.models import Verdict
from proofstone.supervision.models.understanding import (
    Attempts,
    GaveUp,
    Item,
    ItemVerdict,
    NotApplicable,
    Outcome,
    Questioned,
    SentBack,
    Tier,
    Verified,
)
from proofstone.supervision.rules.understanding import (
    ATTEMPTS,
    ITEMS,
    LOOKED_UP,
    MANDATORY,
    OutOfTurnError,
    answered,
    enter,
    judge,
    judged_items,
    outcome,
)

ASKED_TIERS = [Tier.IMPLEMENTER, Tier.ARCHITECT, Tier.RESEARCHER]


def verdicts(tier: Tier, *failing: Item, unsure: tuple[Item, ...] = ()) -> list[ItemVerdict]:
    def verdict(item: Item) -> Verdict:
        return Verdict.FAIL if item in failing else Verdict.UNVERIFIABLE if item in unsure else Verdict.PASS

    return [ItemVerdict(item=item, verdict=verdict(item), detail=f"about {item}") for item in ITEMS[tier]]


def about(item: Item, verdict: Verdict) -> ItemVerdict:
    return ItemVerdict(item=item, verdict=verdict)


@pytest.mark.parametrize(
    ("tier", "numbers", "attempts"),
    [
        (Tier.IMPLEMENTER, "1 2 3 4 5 6 7 8 9 10", 3),
        (Tier.ARCHITECT, "1 2 3 4 5 6 7", 3),
        (Tier.RESEARCHER, "1 2 3 9 10", 2),
        (Tier.EXEMPT, "", 0),
    ],
)
def test_each_tier_has_its_items_and_attempts(tier: Tier, numbers: str, attempts: int) -> None:
    assert [item.value for item in ITEMS[tier]] == [f"RC-{int(number):02}" for number in numbers.split()]
    assert ATTEMPTS[tier] == attempts
    assert set(judged_items(tier)) | (LOOKED_UP & set(ITEMS[tier])) == set(ITEMS[tier])
    assert not set(judged_items(tier)) & LOOKED_UP


@pytest.mark.parametrize(("failed", "expected"), [(0, "VERIFIED"), (1, "QUESTION"), (2, "QUESTION"), (3, "REJECTED")])
def test_the_number_of_failed_items_decides(failed: int, expected: str) -> None:
    assert outcome(failed) == Outcome(expected)
    assert outcome(10) is Outcome.REJECTED


def test_tier_0_and_whoever_cannot_be_asked_do_not_enter() -> None:
    assert enter(Tier.EXEMPT) == NotApplicable(why="tier 0 is exempt")
    assert enter(Tier.IMPLEMENTER, "not applicable: cmd cannot be asked") == NotApplicable(
        why="not applicable: cmd cannot be asked"
    )
    assert enter(Tier.IMPLEMENTER) == Attempts(tier=Tier.IMPLEMENTER)


@pytest.mark.parametrize("tier", ASKED_TIERS)
def test_all_pass_is_verified(tier: Tier) -> None:
    after, decision = judge(Attempts(tier=tier), verdicts(tier))
    assert decision == Verified() and not decision.caps and after.over


@pytest.mark.parametrize("tier", ASKED_TIERS)
def test_without_anybody_who_judges_it_passes_and_the_confidence_is_capped(tier: Tier) -> None:
    unsure = judged_items(tier)
    _, decision = judge(Attempts(tier=tier), verdicts(tier, unsure=unsure))
    assert isinstance(decision, Verified) and decision.unverifiable == unsure and decision.caps


def test_an_item_that_nobody_looked_at_is_no_pass() -> None:
    _, decision = judge(Attempts(tier=Tier.RESEARCHER), verdicts(Tier.RESEARCHER)[1:])
    assert decision == Verified(unverifiable=(Item.TASK,))


def test_of_two_verdicts_about_an_item_the_worst_counts() -> None:
    found = [*verdicts(Tier.RESEARCHER), about(Item.FACTS, Verdict.FAIL)]
    for order in (found, found[::-1]):
        _, decision = judge(Attempts(tier=Tier.RESEARCHER), order)
        assert isinstance(decision, Questioned) and [one.item for one in decision.items] == [Item.FACTS]


def test_items_of_another_tier_are_left_alone() -> None:
    found = [*verdicts(Tier.RESEARCHER), *(about(item, Verdict.FAIL) for item in MANDATORY)]
    assert judge(Attempts(tier=Tier.RESEARCHER), found)[1] == Verified()


def test_what_must_be_answered_is_asked_first() -> None:
    _, decision = judge(Attempts(tier=Tier.IMPLEMENTER), verdicts(Tier.IMPLEMENTER, Item.FILES, Item.DOWNSTREAM))
    assert isinstance(decision, Questioned)
    assert [one.item for one in decision.items] == [Item.DOWNSTREAM, Item.FILES]


def test_an_answer_that_puts_all_right_is_verified_with_what_was_unverifiable_before() -> None:
    at = Attempts(tier=Tier.IMPLEMENTER)
    at, _ = judge(at, verdicts(Tier.IMPLEMENTER, Item.FILES, Item.FACTS, unsure=(Item.BREAKING,)))
    at, decision = answered(at, [about(Item.FILES, Verdict.PASS), about(Item.FACTS, Verdict.UNVERIFIABLE)])
    assert decision == Verified(unverifiable=(Item.BREAKING, Item.FACTS)) and at.over


@pytest.mark.parametrize("item", sorted(MANDATORY))
@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNVERIFIABLE, None])
def test_interfaces_other_agents_and_consequences_must_be_answered(item: Item, verdict: Verdict | None) -> None:
    at, _ = judge(Attempts(tier=Tier.IMPLEMENTER), verdicts(Tier.IMPLEMENTER, item))
    at, decision = answered(at, [about(item, verdict)] if verdict else [])
    assert isinstance(decision, SentBack) and (decision.attempt, decision.of) == (2, 3)
    assert [one.item for one in decision.reasons] == [item] and at == Attempts(tier=Tier.IMPLEMENTER, attempt=2)


@pytest.mark.parametrize("tier", ASKED_TIERS)
def test_three_that_fail_are_rejected_until_no_attempt_is_left(tier: Tier) -> None:
    at, decisions = Attempts(tier=tier), []
    while not at.over:
        at, decision = judge(at, verdicts(tier, *ITEMS[tier][:3]))
        decisions.append(decision)
    assert len(decisions) == ATTEMPTS[tier] and isinstance(decisions[-1], GaveUp)
    assert [one.attempt for one in decisions if isinstance(one, SentBack)] == list(range(2, ATTEMPTS[tier] + 1))
    assert len(decisions[-1].reasons) == 3


def test_nothing_happens_out_of_turn() -> None:
    fresh = Attempts(tier=Tier.IMPLEMENTER)
    asked, _ = judge(fresh, verdicts(Tier.IMPLEMENTER, Item.FILES))
    over, _ = judge(fresh, verdicts(Tier.IMPLEMENTER))
    for attempts, step in ((fresh, answered), (asked, judge), (over, judge), (over, answered)):
        with pytest.raises(OutOfTurnError):
            step(attempts, [])


some_verdicts = st.lists(
    st.builds(ItemVerdict, item=st.sampled_from(list(Item)), verdict=st.sampled_from(list(Verdict))), max_size=14
)


@settings(max_examples=60)
@given(st.sampled_from(ASKED_TIERS), st.lists(some_verdicts, min_size=6, max_size=6))
def test_the_gate_ends_within_its_attempts_and_nothing_that_failed_is_verified(
    tier: Tier, rounds: list[list[ItemVerdict]]
) -> None:
    at, steps, analyses = Attempts(tier=tier), iter(rounds), 0
    while not at.over:
        found = next(steps)
        analyses += not at.asked
        concerned = at.asked or ITEMS[tier]
        at, decision = (answered if at.asked else judge)(at, found)
        if isinstance(decision, Verified):
            failed = {one.item for one in found if one.verdict is Verdict.FAIL}
            assert not failed & set(concerned)
            unsure = {one.item for one in found if one.verdict is Verdict.UNVERIFIABLE} & set(concerned)
            assert unsure <= set(decision.unverifiable)
    assert analyses <= ATTEMPTS[tier]
