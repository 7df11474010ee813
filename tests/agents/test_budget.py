"""What may be spent: when it is, how it is said, and how a person changes it."""

from __future__ import annotations

import pytest

from proofstone.agents.rules.budget import (
    amend_budget,
    build_cost_fields,
    explain_spent_budget,
    explain_spent_limit,
    format_spending,
    suggest_raise,
    summarize_spending,
)
from proofstone.agents.spending import SpendingMeter
from proofstone.common.models import Allowance, Budget, BudgetUsage, Usage
from tests.rows import each_row

SPENT = BudgetUsage(requests=3, input_tokens=900, output_tokens=100, usd=1.5, tool_calls=7, seconds=120)

OVER = {
    "tokens": (Allowance(tokens=1000), Allowance(tokens=1001), "1,000 tokens"),
    "money": (Allowance(usd=1.5), Allowance(usd=1.51), "$1.5"),
    "requests": (Allowance(requests=3), Allowance(requests=4), "3 model calls"),
    "tool calls": (Allowance(tool_calls=7), Allowance(tool_calls=8), "7 tool calls"),
    "minutes": (Allowance(minutes=2), Allowance(minutes=2.1), "2 minutes"),
}


@each_row("reached,left,words", OVER.values())
def test_a_limit_is_spent_when_it_is_reached(reached: Allowance, left: Allowance, words: str) -> None:
    assert words in explain_spent_limit(reached, SPENT, "run") and explain_spent_limit(
        reached, SPENT, "run"
    ).startswith("the run's budget of")
    assert explain_spent_limit(left, SPENT, "run") == ""
    assert explain_spent_limit(Allowance(), SPENT, "run") == ""


SCOPES = {
    "of the run": (Budget(run=Allowance(requests=2)), "the run's"),
    "of the task": (Budget(task=Allowance(requests=2)), "task-01's"),
    "of the role": (Budget(roles={"reviewer": Allowance(requests=2)}), "the role reviewer's"),
    "of another role": (Budget(roles={"planner": Allowance(requests=2)}), ""),
}


@pytest.mark.parametrize("budget,whose", SCOPES.values(), ids=SCOPES)
def test_a_limit_holds_for_what_it_is_a_limit_of(budget: Budget, whose: str) -> None:
    meter = SpendingMeter(budget)
    meter.add("reviewer", "task-01", BudgetUsage(requests=2))
    assert meter.explain_spent_budget("reviewer", "task-01").startswith(whose)
    assert bool(meter.explain_spent_budget("reviewer", "task-01")) == bool(whose)
    assert meter.stop_reason == meter.explain_spent_budget("reviewer", "task-01")
    assert explain_spent_budget(budget, {}, "reviewer", "task-01") == ""


def test_a_price_that_is_not_known_is_said_and_never_taken_for_nothing() -> None:
    unknown = BudgetUsage.from_turn(Usage(requests=1, input_tokens=5, usd=None), 0.0)
    known = BudgetUsage.from_turn(Usage(requests=1, usd=0.25), 0.0)
    assert format_spending(unknown) == "cost unknown"
    assert format_spending(known + unknown) == "$0.25 and 1 call of unknown price"
    assert build_cost_fields(known + unknown)["unpriced_requests"] == 1
    assert "of $9" not in summarize_spending(known + unknown, Allowance(usd=9))


def test_the_live_line_says_what_is_used_and_of_how_much() -> None:
    line = summarize_spending(SPENT, Allowance(tokens=2_500_000, usd=20))
    assert line == "3 model calls, 1.0k of 2.5M tokens, $1.50 of $20"
    assert summarize_spending(BudgetUsage(), Allowance()) == "" and build_cost_fields(BudgetUsage()) == {}


AMENDED = {
    "usd=5": Budget(run=Allowance(usd=5, tokens=9)),
    "run.usd=5": Budget(run=Allowance(usd=5, tokens=9)),
    "tokens=1_000_000": Budget(run=Allowance(tokens=1_000_000)),
    "tokens=none": Budget(),
    "task.tokens=12": Budget(run=Allowance(tokens=9), task=Allowance(tokens=12)),
    "roles.reviewer.requests=20": Budget(run=Allowance(tokens=9), roles={"reviewer": Allowance(requests=20)}),
    "minutes=1.5": Budget(run=Allowance(tokens=9, minutes=1.5)),
}


@each_row("word,budget", AMENDED.items())
def test_a_person_says_what_may_be_spent_instead(word: str, budget: Budget) -> None:
    assert amend_budget(Budget(run=Allowance(tokens=9)), [word]) == budget


@each_row(
    "word",
    [
        "usd",
        "usd=much",
        "usd=-1",
        "usd=0",
        "euros=3",
        "tasks.usd=3",
        "roles.usd=3",
        "roles.nobody.usd=3",
        "tokens=1.5",
        "usd=nan",
        "usd=inf",
    ],
)
def test_a_word_that_is_no_limit_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        amend_budget(Budget(), [word])


def test_what_would_be_enough_is_suggested() -> None:
    assert suggest_raise(Allowance(usd=1.5), SPENT) == " --budget usd=3"
    assert suggest_raise(Allowance(tokens=10, usd=9), SPENT) == " --budget tokens=2000"
    assert suggest_raise(Allowance(tool_calls=7), SPENT) == " --budget tool_calls=14"
    assert "see above" in suggest_raise(Allowance(), SPENT)
    assert suggest_raise(Allowance(), BudgetUsage()) == ""
