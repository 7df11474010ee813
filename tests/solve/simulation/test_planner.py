"""A planner that obeys, mostly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from proofstone.agents.roles.models.solve_messages import DirectiveName
from proofstone.solve.simulation.rules import SimulatedPath, SimulatedPlan, SimulatedPlanner
from tests.solve.simulation.making import CALM, OPEN, approach, landscape

ELSEWHERE = SimulatedPath(is_dead=False, offset=0.05)
GREP = approach("climb", "grep read", (OPEN, ELSEWHERE))
READ = approach("wrong", "read", (OPEN,))
SHELL = approach("wrong", "shell", (OPEN,))
TASK = landscape(GREP, READ, SHELL)
NOW = SimulatedPlan(GREP, OPEN, rounds=3)
NOTHING: frozenset[str] = frozenset()
BLOCKING = (DirectiveName.CHANGE_APPROACH, DirectiveName.BREAK_SYMMETRY)


def test_refine_keeps_approach_and_path_and_goes_a_round_further() -> None:
    assert SimulatedPlanner(TASK, Random(1)).follow_directive(NOW, DirectiveName.REFINE, NOTHING) == replace(
        NOW, rounds=4
    )


def test_change_path_takes_another_path_of_the_approach_and_keeps_half_of_the_gain() -> None:
    assert SimulatedPlanner(TASK, Random(1)).follow_directive(NOW, DirectiveName.CHANGE_PATH, NOTHING) == SimulatedPlan(
        GREP, ELSEWHERE, rounds=1
    )


def test_where_there_is_one_path_only_change_path_goes_further_on_it() -> None:
    only = SimulatedPlan(READ, OPEN, rounds=1)
    assert SimulatedPlanner(TASK, Random(1)).follow_directive(only, DirectiveName.CHANGE_PATH, NOTHING) == replace(
        only, rounds=2
    )


@pytest.mark.parametrize("directive", BLOCKING)
def test_another_approach_uses_no_blocked_tool_and_starts_anew(directive: DirectiveName) -> None:
    for seed in range(20):
        assert SimulatedPlanner(TASK, Random(seed)).follow_directive(NOW, directive, GREP.tools) == SimulatedPlan(
            SHELL, OPEN
        )


@pytest.mark.parametrize("directive", BLOCKING)
def test_another_approach_is_another_though_nothing_is_blocked(directive: DirectiveName) -> None:
    for seed in range(20):
        plan = SimulatedPlanner(TASK, Random(seed)).follow_directive(NOW, directive, NOTHING)
        assert plan is not None
        assert plan.approach is not GREP


@pytest.mark.parametrize("directive", BLOCKING)
def test_where_every_other_approach_is_blocked_there_is_no_plan(directive: DirectiveName) -> None:
    assert SimulatedPlanner(TASK, Random(1)).follow_directive(NOW, directive, frozenset({"read", "shell"})) is None


@pytest.mark.parametrize("directive", BLOCKING)
def test_nobody_disobeys_what_is_blocked(directive: DirectiveName) -> None:
    unruly = replace(TASK, mix=replace(CALM, disobedience=1))
    for seed in range(20):
        assert SimulatedPlanner(unruly, Random(seed)).follow_directive(NOW, directive, GREP.tools) == SimulatedPlan(
            SHELL, OPEN
        )


def test_who_disobeys_stays_takes_another_path_or_another_approach() -> None:
    unruly = SimulatedPlanner(replace(TASK, mix=replace(CALM, disobedience=1)), Random(1))
    plans = [unruly.follow_directive(NOW, DirectiveName.REFINE, NOTHING) for _ in range(300)]
    counted = Counter("stays" if plan and plan.approach is GREP and plan.path is OPEN else
                      "path" if plan and plan.approach is GREP else "approach" for plan in plans)  # fmt: skip
    assert all(50 < counted[what] < 150 for what in ("stays", "path", "approach"))


def test_again_is_the_same_plan_with_nothing_learnt() -> None:
    assert SimulatedPlanner(TASK, Random(1)).repeat_plan(NOW) is NOW


def test_insight_finds_what_is_right_and_without_it_chance_decides() -> None:
    wise = SimulatedPlanner(replace(TASK, mix=replace(CALM, insight=1)), Random(1))
    assert all(wise.make_first_plan().approach is GREP for _ in range(50))
    blind = SimulatedPlanner(TASK, Random(1))
    assert {blind.make_first_plan().approach.tools for _ in range(50)} == {GREP.tools, READ.tools, SHELL.tools}
