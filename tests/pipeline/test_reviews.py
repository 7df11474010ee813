"""The review gate, row by row."""

from __future__ import annotations

from itertools import product

import pytest

from proofstone.agents.roles.models.pipeline import PanelOutput, ReviewFocus
from proofstone.common.models import ReviewVerdict, Severity
from proofstone.pipeline.rules.reviews import (
    FULL_PANEL,
    SINGLE_REVIEWER_PANEL,
    ReviewerAnswer,
    ReviewGateDecision,
    ReviewRound,
    decide_review,
    to_reviewer_verdicts,
)
from tests.pipeline.talk import finding, review
from tests.rows import each_row

YES, NO, BLOCK = review("approve"), review("needs_revision"), review("blocker")
GRAVE = review("approve", finding(Severity.CRITICAL, "It forgets"))
NOBODY = None


def heard(*said: PanelOutput | None, last: bool = False) -> ReviewRound:
    foci = FULL_PANEL if len(said) == 3 else SINGLE_REVIEWER_PANEL
    return ReviewRound(
        "code", 1, tuple(ReviewerAnswer(f, s, "no answer") for f, s in zip(foci, said, strict=True)), is_last=last
    )


@each_row(
    ("said", "first", "last"),
    [
        ((YES, YES, YES), ReviewGateDecision.PASS, ReviewGateDecision.PASS),
        ((YES, NO, YES), ReviewGateDecision.PASS, ReviewGateDecision.PASS),
        ((YES, NO, NO), ReviewGateDecision.REVISE, ReviewGateDecision.KNOWN_ISSUES),
        ((NO, NO, NO), ReviewGateDecision.REVISE, ReviewGateDecision.KNOWN_ISSUES),
        ((YES, YES, GRAVE), ReviewGateDecision.REVISE, ReviewGateDecision.KNOWN_ISSUES),
        ((YES, YES, BLOCK), ReviewGateDecision.HALT, ReviewGateDecision.HALT),
        ((BLOCK, NOBODY, NOBODY), ReviewGateDecision.HALT, ReviewGateDecision.HALT),
        ((YES, YES, NOBODY), ReviewGateDecision.REVISE, ReviewGateDecision.UNHEARD),
        ((YES, NO, NOBODY), ReviewGateDecision.REVISE, ReviewGateDecision.UNHEARD),
        ((NOBODY, NOBODY, NOBODY), ReviewGateDecision.REVISE, ReviewGateDecision.UNHEARD),
        ((YES,), ReviewGateDecision.PASS, ReviewGateDecision.PASS),
        ((NO,), ReviewGateDecision.REVISE, ReviewGateDecision.KNOWN_ISSUES),
        ((GRAVE,), ReviewGateDecision.REVISE, ReviewGateDecision.KNOWN_ISSUES),
        ((BLOCK,), ReviewGateDecision.HALT, ReviewGateDecision.HALT),
        ((NOBODY,), ReviewGateDecision.REVISE, ReviewGateDecision.UNHEARD),
    ],
)
@pytest.mark.seed("pipeline", "review-gate")
def test_what_follows_from_the_words(
    said: tuple[PanelOutput | None, ...], first: ReviewGateDecision, last: ReviewGateDecision
) -> None:
    assert decide_review(heard(*said)).decision is first
    assert decide_review(heard(*said, last=True)).decision is last


@each_row("last", [False, True])
@each_row("said", [*product((YES, NO, BLOCK, GRAVE, NOBODY), repeat=3)])
def test_it_passes_by_its_conditions_and_by_nothing_else(said: tuple[PanelOutput | None, ...], last: bool) -> None:
    approving = sum(one is YES or one is GRAVE for one in said)
    holds = NOBODY not in said and BLOCK not in said and GRAVE not in said and approving >= 2
    gate = decide_review(heard(*said, last=last))
    assert (gate.decision is ReviewGateDecision.PASS) == holds
    assert (gate.decision is ReviewGateDecision.HALT) == (BLOCK in said)
    assert bool(gate.reasons) != holds
    assert (gate.decision is ReviewGateDecision.REVISE) <= (not last)


def test_it_says_in_words_what_is_missing() -> None:
    assert decide_review(heard(NOBODY, NO, GRAVE)).reasons == (
        "security has not submitted: no answer",
        "1 of 3 approve, and 2 must",
        "critical and open: It forgets",
    )
    assert decide_review(heard(BLOCK, YES, YES)).reasons == ("security blocks it: It leaks the key",)


def test_what_was_found_is_known_with_who_found_it() -> None:
    (one,) = decide_review(heard(YES, NO, YES)).known_issues
    assert (one.title, one.severity, one.where, one.source) == (
        "It rounds twice",
        Severity.MAJOR,
        ("shop/cart.py:3",),
        "review code/architecture, round 1",
    )


def test_every_word_stands_on_record_a_missing_one_too() -> None:
    first, second, third = to_reviewer_verdicts(heard(YES, NO, NOBODY))
    assert (first.focus, first.verdict, first.round) == (ReviewFocus.SECURITY, ReviewVerdict.APPROVE, 1)
    assert second.findings[Severity.MAJOR] == 1
    assert (third.verdict, third.findings) == (None, {})


@pytest.mark.parametrize(
    ("models", "one"),
    [(("a", "a", "a"), True), (("a", "a", "b"), False), (("", "", ""), False), (("a",), False)],
)
def test_one_model_with_three_foci_is_seen(models: tuple[str, ...], one: bool) -> None:
    words = tuple(ReviewerAnswer(focus, YES, model=model) for focus, model in zip(FULL_PANEL, models, strict=False))
    assert ReviewRound("code", 1, words).is_one_model is one
