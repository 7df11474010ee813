"""The review gate, row by row."""

from __future__ import annotations

from itertools import product

import pytest

from proofstone.agents.roles.models.pipeline import PanelOutput, ReviewFocus
from proofstone.common.models import ReviewVerdict, Severity
from proofstone.pipeline.rules.reviews import ALONE, PANEL, Decision, Round, Word, counted, decide
from tests.pipeline.answers import finding, review

YES, NO, BLOCK = review("approve"), review("needs_revision"), review("blocker")
GRAVE = review("approve", finding(Severity.CRITICAL, "It forgets"))
NOBODY = None


def heard(*said: PanelOutput | None, last: bool = False) -> Round:
    foci = PANEL if len(said) == 3 else ALONE
    return Round("code", 1, tuple(Word(f, s, "no answer") for f, s in zip(foci, said, strict=True)), is_last=last)


@pytest.mark.parametrize(
    ("said", "first", "last"),
    [
        ((YES, YES, YES), Decision.PASS, Decision.PASS),
        ((YES, NO, YES), Decision.PASS, Decision.PASS),
        ((YES, NO, NO), Decision.REVISE, Decision.KNOWN_ISSUES),
        ((NO, NO, NO), Decision.REVISE, Decision.KNOWN_ISSUES),
        ((YES, YES, GRAVE), Decision.REVISE, Decision.KNOWN_ISSUES),
        ((YES, YES, BLOCK), Decision.HALT, Decision.HALT),
        ((BLOCK, NOBODY, NOBODY), Decision.HALT, Decision.HALT),
        ((YES, YES, NOBODY), Decision.REVISE, Decision.UNHEARD),
        ((YES, NO, NOBODY), Decision.REVISE, Decision.UNHEARD),
        ((NOBODY, NOBODY, NOBODY), Decision.REVISE, Decision.UNHEARD),
        ((YES,), Decision.PASS, Decision.PASS),
        ((NO,), Decision.REVISE, Decision.KNOWN_ISSUES),
        ((GRAVE,), Decision.REVISE, Decision.KNOWN_ISSUES),
        ((BLOCK,), Decision.HALT, Decision.HALT),
        ((NOBODY,), Decision.REVISE, Decision.UNHEARD),
    ],
)
def test_what_follows_from_the_words(said: tuple[PanelOutput | None, ...], first: Decision, last: Decision) -> None:
    assert decide(heard(*said)).decision is first
    assert decide(heard(*said, last=True)).decision is last


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("said", [*product((YES, NO, BLOCK, GRAVE, NOBODY), repeat=3)])
def test_it_passes_by_its_conditions_and_by_nothing_else(said: tuple[PanelOutput | None, ...], last: bool) -> None:
    approving = sum(one is YES or one is GRAVE for one in said)
    holds = NOBODY not in said and BLOCK not in said and GRAVE not in said and approving >= 2
    gate = decide(heard(*said, last=last))
    assert (gate.decision is Decision.PASS) == holds
    assert (gate.decision is Decision.HALT) == (BLOCK in said)
    assert bool(gate.reasons) != holds
    assert (gate.decision is Decision.REVISE) <= (not last)


def test_it_says_in_words_what_is_missing() -> None:
    assert decide(heard(NOBODY, NO, GRAVE)).reasons == (
        "security has not submitted: no answer",
        "1 of 3 approve, and 2 must",
        "critical and open: It forgets",
    )
    assert decide(heard(BLOCK, YES, YES)).reasons == ("security blocks it: It leaks the key",)


def test_what_was_found_is_known_with_who_found_it() -> None:
    (one,) = decide(heard(YES, NO, YES)).known_issues
    assert (one.title, one.severity, one.where, one.source) == (
        "It rounds twice",
        Severity.MAJOR,
        ("shop/cart.py:3",),
        "review code/architecture, round 1",
    )


def test_every_word_stands_on_record_a_missing_one_too() -> None:
    first, second, third = counted(heard(YES, NO, NOBODY))
    assert (first.focus, first.verdict, first.round) == (ReviewFocus.SECURITY, ReviewVerdict.APPROVE, 1)
    assert second.findings[Severity.MAJOR] == 1
    assert (third.verdict, third.findings) == (None, {})


@pytest.mark.parametrize(
    ("models", "one"),
    [(("a", "a", "a"), True), (("a", "a", "b"), False), (("", "", ""), False), (("a",), False)],
)
def test_one_model_with_three_foci_is_seen(models: tuple[str, ...], one: bool) -> None:
    words = tuple(Word(focus, YES, model=model) for focus, model in zip(PANEL, models, strict=False))
    assert Round("code", 1, words).one_model is one
