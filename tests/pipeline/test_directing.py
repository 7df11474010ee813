"""What the controller makes of an iteration that did not pass."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.roles.models.solve_messages import DirectiveName
from proofstone.common.models import Verdict
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.pipeline.models.run import FinalChecks, GateSummary
from proofstone.pipeline.rules.directing import (
    build_verdicts,
    build_weights,
    decide_direction,
    describe_failures,
    format_directive,
)
from proofstone.solve.rules.gradient import compute_distance, compute_implausibility
from tests.pipeline.talk import checked, failure, plan, report, task
from tests.rows import each_row

TWO = plan(task("a", done=("it adds", "it rounds")), task("b", done=("it waits",)))
RED = checked(passed=False).checks


def gate(*tasks: TaskReport, reason: str = "failed: task-01") -> GateSummary:
    return GateSummary(iteration=1, run_id="g", outcome=RunOutcome.FAILED, reason=reason, tasks=tasks, tip="t")


def failing(number: int, *checks: str, verdict: Verdict = Verdict.FAIL, passed: tuple[str, ...] = ()) -> TaskReport:
    told = (failure(*checks, verdict=verdict, passed=passed),)
    return report(number, state=TaskState.FAILED).model_copy(update={"failures": told})


@each_row(
    ("tasks", "final", "d", "p"),
    [
        ((report(1), failing(2)), None, 1 / 3, 1.0),
        ((report(1), failing(2, passed=("lint",))), None, 1 / 4, 1.0),
        ((failing(1), failing(2)), None, 1.0, 1.0),
        ((failing(1, verdict=Verdict.UNVERIFIABLE), report(2)), None, 1 / 2, 0.0),
        ((failing(1), report(2, state=TaskState.PENDING)), None, 1.0, 1.0),
        ((report(1, state=TaskState.PENDING), report(2)), None, 2 / 3, 0.5),
        ((report(1),), None, 1 / 3, 0.5),
        ((report(1), report(2)), None, 1 / 4, 1.0),
        ((report(1), report(2)), RED, 2 / 5, 1.0),
    ],
)
def test_how_near_it_is_and_how_far_the_approach_is_to_blame(
    tasks: tuple[TaskReport, ...], final: FinalChecks | None, d: float, p: float
) -> None:
    found = build_verdicts(TWO, gate(*tasks), final)
    assert compute_distance((), found) == pytest.approx(d)
    assert compute_implausibility((), found) == p


def test_a_gate_that_says_nothing_has_failed_all_the_same() -> None:
    found = build_verdicts(TWO, gate(report(1), report(2), reason=""))
    assert [one.criterion for one in found if one.is_failed] == ["the task gate did not pass"]


def test_an_obstacle_gives_a_hint_of_another_path() -> None:
    stuck = build_verdicts(TWO, gate(failing(1, "executor", verdict=Verdict.UNVERIFIABLE), report(2)))
    _, first = decide_direction(stuck, replans=0, elapsed_ms=0, before=None, weights=build_weights(0))
    direction, _ = decide_direction(stuck, replans=1, elapsed_ms=0, before=first, weights=build_weights(0))
    assert direction.directive is DirectiveName.CHANGE_PATH
    assert format_directive(direction).endswith("\n- a way around this: executor: executor is red")


@each_row(
    ("replans", "elapsed", "minutes", "directive"),
    [
        (0, 0, 0, DirectiveName.REFINE),
        (1, 0, 0, DirectiveName.REFINE),
        (2, 0, 0, DirectiveName.ABANDON),
        (1, 60_000, 1, DirectiveName.REFINE),
        (2, 60_000, 1, DirectiveName.ABANDON),
    ],
)
def test_the_bound_and_the_clock_end_it(replans: int, elapsed: int, minutes: float, directive: DirectiveName) -> None:
    near = build_verdicts(TWO, gate(report(1), failing(2, passed=("lint", "types"))))
    direction, _ = decide_direction(
        near, replans=replans, elapsed_ms=elapsed, before=None, weights=build_weights(minutes)
    )
    assert direction.directive is directive


def test_what_failed_is_said_in_words() -> None:
    assert describe_failures(gate(report(1), failing(2, "lint"), report(3, state=TaskState.PENDING))) == (
        "task 2: VERIFY_FAILURE after 3 attempts: exit 1",
        "task 2: lint (fail): lint is red",
        "task 3: not finished (PENDING)",
    )
    assert describe_failures(gate(report(1)), RED) == (
        "all checks on the merged tree: tests: 2 fail",
        "this worked before: test_old",
    )
    assert describe_failures(gate(report(1))) == ("failed: task-01",)
