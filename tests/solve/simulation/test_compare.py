"""A policy drives the planner, and many runs are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.roles.models.solve_messages import DirectiveName
from proofstone.solve.rules.gradient import PATIENT_POLICY, POLICIES, LossWeights, decide
from proofstone.solve.simulation.rules import MIXES, Landscape
from proofstone.solve.simulation.run import (
    CONTENDERS,
    compare_policies,
    paired_difference,
    simulate_run,
    wilson_interval,
)
from tests.rows import each_row
from tests.solve.simulation.making import CALM, DEAD, OPEN, approach, landscape, luck, lucks
from tests.solve.talk import at

CLIMB = approach("climb", "grep", start=0.3, step=0.4)
WRONG = approach("wrong", "read", start=0.1, ceiling=0.2)
GOOD = approach("climb", "shell", start=0.9)
LONG = LossWeights(max_replans=9, time_budget_ms=10**7)


def test_always_refining_gets_there_where_the_approach_is_right_and_repeating_does_not() -> None:
    task = landscape(CLIMB, CLIMB, demands=(0.6,))
    done = simulate_run(task, CONTENDERS["naive"], LossWeights(), luck)
    assert (done.is_accepted, done.rounds, done.distance) == (True, 2, 0)
    assert done.cost == 1.0
    stuck = simulate_run(task, CONTENDERS["again"], LossWeights(), luck)
    assert (stuck.is_accepted, stuck.rounds, stuck.distance) == (False, 4, 1)


def accepted(task: Landscape, policy: str, weights: LossWeights) -> int:
    """In how many of 20 runs."""
    return sum(simulate_run(task, CONTENDERS[policy], weights, one).is_accepted for one in lucks(20))


def test_the_gradient_leaves_a_dead_path_and_naive_retry_does_not() -> None:
    way = replace(GOOD, paths=(DEAD, DEAD, OPEN))
    assert accepted(landscape(way, way), "gradient", LONG) == 20
    assert 0 < accepted(landscape(way, way), "naive", LONG) < 20  # it depends on where it began


def test_the_gradient_leaves_a_wrong_approach_and_naive_retry_does_not() -> None:
    assert accepted(landscape(WRONG, GOOD), "gradient", LossWeights()) == 20
    assert 0 < accepted(landscape(WRONG, GOOD), "naive", LossWeights()) < 20


def test_where_all_tools_would_be_blocked_none_is() -> None:
    """As in the loop: else there would be no plan at all."""
    assert accepted(landscape(replace(WRONG, tools=GOOD.tools), GOOD), "gradient", LossWeights()) == 20


def test_a_run_with_no_plan_left_goes_on_and_ends() -> None:
    shared = approach("climb", "read shell", start=0.1)
    task = landscape(replace(WRONG, tools=frozenset({"read"})), shared, approach("wrong", "glob read", start=0.1))
    done = simulate_run(task, CONTENDERS["gradient"], LossWeights(), luck)
    assert not done.is_accepted
    assert done.rounds == 4


@each_row("name", sorted(CONTENDERS))
def test_nobody_has_more_rounds_than_the_budget_allows(name: str) -> None:
    task = landscape(WRONG, WRONG)
    assert simulate_run(task, CONTENDERS[name], LossWeights(max_replans=0), luck).rounds == 1
    assert simulate_run(task, CONTENDERS[name], LossWeights(), luck).rounds <= 4
    assert not simulate_run(task, CONTENDERS[name], LossWeights(), luck).is_accepted


def test_time_adds_up_over_the_rounds() -> None:
    """A round takes 15 to 45 s here: after the third the time is spent, and with two replans that is Ω = .8."""
    assert (
        simulate_run(landscape(WRONG, WRONG), CONTENDERS["naive"], LossWeights(time_budget_ms=45_000), luck).rounds == 3
    )


def test_the_patient_policy_differs_from_the_gradient_in_the_first_round_alone() -> None:
    for it in (at(P=1), at(P=0), at(P=1, nabla=0.2)):
        assert decide(PATIENT_POLICY, it, LossWeights()).directive is DirectiveName.REFINE
        later = replace(it, replans=1)
        assert decide(PATIENT_POLICY, later, LossWeights()) is decide(POLICIES["gradient"], later, LossWeights())
    assert decide(PATIENT_POLICY, at(D=0, verified=True), LossWeights()).directive is DirectiveName.ACCEPT
    assert decide(PATIENT_POLICY, at(), LossWeights(max_replans=0)).directive is DirectiveName.ABANDON


def test_every_policy_of_the_controller_takes_part() -> None:
    assert set(POLICIES) <= set(CONTENDERS)
    assert all(CONTENDERS[name].policy is policy for name, policy in POLICIES.items())


@pytest.mark.parametrize(
    ("successes", "of", "low", "high"),
    [(50, 100, 0.4038, 0.5962), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 2, 0.0945, 0.9055)],
)
def test_wilsons_interval(successes: int, of: int, low: float, high: float) -> None:
    found = wilson_interval(successes, of)
    assert (found.value, found.low, found.high) == pytest.approx((successes / of, low, high), abs=1e-4)


def test_the_difference_is_taken_pair_by_pair() -> None:
    better = paired_difference([True, True, False, True], [False, True, False, False])
    assert better.value == 0.5
    assert better.high - better.value == pytest.approx(1.96 * 0.5 / 2, abs=1e-4)
    assert better.value - better.low == pytest.approx(better.high - better.value)
    same = paired_difference([True, False], [True, False])
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_the_same_luck_gives_the_same_figures_whoever_else_takes_part() -> None:
    alone = compare_policies(MIXES["mixed"], ["gradient"], 20, luck, LossWeights())
    together = compare_policies(MIXES["mixed"], CONTENDERS, 20, luck, LossWeights())
    assert [one.policy for one in alone] == ["gradient", "naive", "again"]
    assert alone[0] == together[0]
    assert [one.policy for one in together] == list(CONTENDERS)


def test_a_run_that_is_over_stays_where_it_ended() -> None:
    """Else the mean of later rounds were that of the hard tasks alone."""
    (naive, _) = compare_policies(replace(MIXES["improving"], insight=1), ["naive"], 40, luck, LossWeights())
    assert 1 < naive.rounds < len(naive.losses) == 4
    assert naive.losses[-1] < naive.losses[0]


def test_direction_beats_repeating_and_with_room_to_move_it_beats_refining() -> None:
    by_name = {one.policy: one for one in compare_policies(MIXES["mixed"], ["gradient", "patient"], 200, luck, LONG)}
    for name in ("gradient", "patient"):
        assert by_name[name].gains["again"].low > 0
        assert by_name[name].gains["naive"].low > 0


def test_nothing_by_chance_and_everything_right_is_solved_by_all_who_learn() -> None:
    easy = replace(CALM, climb=1, valley=0, wrong=0, minimum=0, mirage=0)
    for one in compare_policies(easy, ["naive"], 30, luck, LONG)[:1]:
        assert one.success.value == 1.0
