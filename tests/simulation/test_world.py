"""What comes of a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.roles.models.solve_messages import CriterionMode, FailureClass
from proofstone.solve.rules.gradient import distance, implausibility
from proofstone.solve.simulation.rules import Landscape, Plan
from proofstone.solve.simulation.run import Came, carried_out, refused
from tests.simulation.making import CALM, DEAD, OPEN, Falls, approach, landscape, luck

LOGICAL, ENVIRONMENTAL = FailureClass.LOGICAL, FailureClass.ENVIRONMENTAL
GOOD = approach(start=0.9)
SHORT = approach("minimum", start=0.3, ceiling=0.4)
UNFINISHED = approach(start=0.3)


def came(task: Landscape, plan: Plan, seed: str = "luck") -> Came:
    return carried_out(task, plan, luck(seed))


def classes(one: Came) -> set[FailureClass | None]:
    return {verdict.failure_class for outcome in one.outcomes for verdict in outcome.criteria_verdicts}


def test_what_is_good_enough_matches_and_is_merged() -> None:
    done = came(landscape(GOOD, demands=(0.2, 0.5)), Plan(GOOD, OPEN))
    assert [one.matched for one in done.outcomes] == [True]
    assert done.verified
    assert distance(done.outcomes, done.merged) == 0
    assert len(done.outcomes[0].gap_trajectory) == 1
    assert done.cost == 0.5
    assert 15_000 <= done.elapsed_ms <= 45_000


def test_a_criterion_fails_where_the_quality_is_below_its_difficulty() -> None:
    done = came(landscape(SHORT, demands=(0.1, 0.6, 0.7, 0.8)), Plan(SHORT, OPEN))
    assert distance(done.outcomes, done.merged) == 0.75
    assert done.merged == ()
    assert not done.verified
    assert len(done.outcomes[0].gap_trajectory) == 3
    assert done.outcomes[0].tools == ("grep",)


@pytest.mark.parametrize(
    ("plan", "mix", "seen"),
    [
        (Plan(SHORT, OPEN), CALM, LOGICAL),
        (Plan(SHORT, OPEN), replace(CALM, misread=1), ENVIRONMENTAL),
        (Plan(UNFINISHED, OPEN), CALM, ENVIRONMENTAL),
        (Plan(UNFINISHED, OPEN), replace(CALM, unfinished=1), LOGICAL),
        (Plan(GOOD, DEAD), CALM, ENVIRONMENTAL),
        (Plan(GOOD, DEAD), replace(CALM, misread=1), LOGICAL),
        (Plan(GOOD, OPEN), replace(CALM, noise=1), ENVIRONMENTAL),
    ],
)
def test_what_is_seen_as_the_cause(plan: Plan, mix: object, seen: FailureClass) -> None:
    task = replace(landscape(plan.approach, demands=(0.6, 0.7)), mix=mix)  # type: ignore[arg-type]
    assert classes(came(task, plan)) == {seen}


@pytest.mark.parametrize(
    ("task", "plan"),
    [
        (landscape(GOOD, demands=(0.1, 0.5)), Plan(GOOD, DEAD)),
        (landscape(GOOD, demands=(0.1, 0.5), mix=replace(CALM, noise=1)), Plan(GOOD, OPEN)),
    ],
)
def test_what_is_in_the_way_fails_everything_in_one_attempt(task: Landscape, plan: Plan) -> None:
    done = came(task, plan)
    assert distance(done.outcomes) == 1
    assert implausibility(done.outcomes) == 0
    assert len(done.outcomes[0].gap_trajectory) == 1


def test_a_plausible_criterion_that_failed_at_times_counts_so() -> None:
    near = approach(start=0.5)
    task = landscape(near, demands=(0.5, 0.51), mode=CriterionMode.PLAUSIBLE)
    # how long, whether rejected, whether in the way, then for each attempt its quality and two numbers for each failure
    done = carried_out(task, Plan(near, OPEN), Falls(0.5, 0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.5, 0.55, 0.5, 0.5, 0.55, 0.5))
    assert [len(gap.failed_criteria) for gap in done.outcomes[0].gap_trajectory] == [2, 1, 1]
    assert distance(done.outcomes) == 0.5


def test_a_merged_result_may_be_rejected_and_that_is_a_distance() -> None:
    done = came(landscape(GOOD, mix=replace(CALM, rejected=1)), Plan(GOOD, OPEN))
    assert [one.matched for one in done.outcomes] == [True]
    assert not done.verified
    assert distance(done.outcomes, done.merged) == 0.5


def test_where_no_plan_was_allowed_everything_failed_and_the_environment_is_to_blame() -> None:
    done = refused(landscape(GOOD, demands=(0.1, 0.5)))
    assert distance(done.outcomes) == 1
    assert classes(done) == {ENVIRONMENTAL}
    assert (done.cost, done.elapsed_ms, done.verified) == (1.0, 60_000, False)
