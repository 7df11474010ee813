"""What comes of a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.roles.models.solve_messages import CriterionMode, FailureClass
from proofstone.solve.rules.gradient import compute_distance, compute_implausibility
from proofstone.solve.simulation.rules import Landscape, SimulatedPlan
from proofstone.solve.simulation.run import SimulatedRound, simulate_missing_plan, simulate_round
from tests.rows import each_row
from tests.solve.simulation.making import CALM, DEAD, OPEN, Falls, approach, landscape, luck

LOGICAL, ENVIRONMENTAL = FailureClass.LOGICAL, FailureClass.ENVIRONMENTAL
GOOD = approach(start=0.9)
SHORT = approach("minimum", start=0.3, ceiling=0.4)
UNFINISHED = approach(start=0.3)


def came(task: Landscape, plan: SimulatedPlan, seed: str = "luck") -> SimulatedRound:
    return simulate_round(task, plan, luck(seed))


def classes(one: SimulatedRound) -> set[FailureClass | None]:
    return {verdict.failure_class for outcome in one.outcomes for verdict in outcome.criteria_verdicts}


def test_what_is_good_enough_matches_and_is_merged() -> None:
    done = came(landscape(GOOD, demands=(0.2, 0.5)), SimulatedPlan(GOOD, OPEN))
    assert [one.is_matched for one in done.outcomes] == [True]
    assert done.is_verified
    assert compute_distance(done.outcomes, done.merged) == 0
    assert len(done.outcomes[0].gap_trajectory) == 1
    assert done.cost == 0.5
    assert 15_000 <= done.elapsed_ms <= 45_000


def test_a_criterion_fails_where_the_quality_is_below_its_difficulty() -> None:
    done = came(landscape(SHORT, demands=(0.1, 0.6, 0.7, 0.8)), SimulatedPlan(SHORT, OPEN))
    assert compute_distance(done.outcomes, done.merged) == 0.75
    assert done.merged == ()
    assert not done.is_verified
    assert len(done.outcomes[0].gap_trajectory) == 3
    assert done.outcomes[0].tools == ("grep",)


@each_row(
    ("plan", "mix", "seen"),
    [
        (SimulatedPlan(SHORT, OPEN), CALM, LOGICAL),
        (SimulatedPlan(SHORT, OPEN), replace(CALM, misread=1), ENVIRONMENTAL),
        (SimulatedPlan(UNFINISHED, OPEN), CALM, ENVIRONMENTAL),
        (SimulatedPlan(UNFINISHED, OPEN), replace(CALM, unfinished=1), LOGICAL),
        (SimulatedPlan(GOOD, DEAD), CALM, ENVIRONMENTAL),
        (SimulatedPlan(GOOD, DEAD), replace(CALM, misread=1), LOGICAL),
        (SimulatedPlan(GOOD, OPEN), replace(CALM, noise=1), ENVIRONMENTAL),
    ],
)
def test_what_is_seen_as_the_cause(plan: SimulatedPlan, mix: object, seen: FailureClass) -> None:
    task = replace(landscape(plan.approach, demands=(0.6, 0.7)), mix=mix)  # type: ignore[arg-type]
    assert classes(came(task, plan)) == {seen}


@pytest.mark.parametrize(
    ("task", "plan"),
    [
        (landscape(GOOD, demands=(0.1, 0.5)), SimulatedPlan(GOOD, DEAD)),
        (landscape(GOOD, demands=(0.1, 0.5), mix=replace(CALM, noise=1)), SimulatedPlan(GOOD, OPEN)),
    ],
)
def test_what_is_in_the_way_fails_everything_in_one_attempt(task: Landscape, plan: SimulatedPlan) -> None:
    done = came(task, plan)
    assert compute_distance(done.outcomes) == 1
    assert compute_implausibility(done.outcomes) == 0
    assert len(done.outcomes[0].gap_trajectory) == 1


def test_a_plausible_criterion_that_failed_at_times_counts_so() -> None:
    near = approach(start=0.5)
    task = landscape(near, demands=(0.5, 0.51), mode=CriterionMode.PLAUSIBLE)
    # how long, whether rejected, whether in the way, then for each attempt its quality and two numbers for each failure
    done = simulate_round(
        task, SimulatedPlan(near, OPEN), Falls(0.5, 0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.5, 0.55, 0.5, 0.5, 0.55, 0.5)
    )
    assert [len(gap.failed_criteria) for gap in done.outcomes[0].gap_trajectory] == [2, 1, 1]
    assert compute_distance(done.outcomes) == 0.5


def test_a_merged_result_may_be_rejected_and_that_is_a_distance() -> None:
    done = came(landscape(GOOD, mix=replace(CALM, rejected=1)), SimulatedPlan(GOOD, OPEN))
    assert [one.is_matched for one in done.outcomes] == [True]
    assert not done.is_verified
    assert compute_distance(done.outcomes, done.merged) == 0.5


def test_where_no_plan_was_allowed_everything_failed_and_the_environment_is_to_blame() -> None:
    done = simulate_missing_plan(landscape(GOOD, demands=(0.1, 0.5)))
    assert compute_distance(done.outcomes) == 1
    assert classes(done) == {ENVIRONMENTAL}
    assert (done.cost, done.elapsed_ms, done.is_verified) == (1.0, 60_000, False)
