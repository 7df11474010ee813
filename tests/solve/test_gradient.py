"""What the controller measures: D, P, Ω, L and the two gradients, by examples that were reckoned by hand."""

from __future__ import annotations

import math

import pytest

from proofstone.agents.roles.models.solve_messages import FailureClass, Gradient, Loss, SubTaskOutcome
from proofstone.solve.rules.gradient import (
    LossWeights,
    Measurement,
    classify_gradient,
    compute_distance,
    compute_implausibility,
    compute_loss,
    compute_pressure,
    dominant_class,
    failure_classes,
    measure_change,
    measure_round,
)
from tests.rows import each_row
from tests.solve.talk import ENVIRONMENTAL, LOGICAL, MIXED, PLAUSIBLE, at, gaps, outcome, verdict

WEIGHTS = LossWeights()
PASSED = outcome(verdict("a"), verdict("b"))


# D and P.


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        pytest.param([PASSED], 0.0, id="nothing failed"),
        pytest.param([outcome(verdict("a", LOGICAL), verdict("b"))], 0.5, id="one of two"),
        pytest.param([PASSED, outcome(verdict("c", LOGICAL))], 1 / 3, id="one of three, over two subtasks"),
        pytest.param([outcome(verdict("a", LOGICAL), verdict("b", ENVIRONMENTAL))], 1.0, id="the class is no matter"),
        pytest.param([outcome(verdict("a", LOGICAL, PLAUSIBLE))], 1.0, id="plausible, with no attempts on record"),
        pytest.param(
            [outcome(verdict("a", LOGICAL, PLAUSIBLE), gaps=gaps("", "", "a"))], 1 / 3, id="plausible, 1 of 3 attempts"
        ),
        pytest.param(
            [outcome(verdict("a", LOGICAL, PLAUSIBLE), verdict("b"), gaps=gaps("a", "b", "a"))],
            1 / 3,
            id="plausible, 2 of 3 attempts, of two criteria",
        ),
        pytest.param(
            [outcome(verdict("a", LOGICAL, PLAUSIBLE), gaps=gaps("a", "a"))], 1.0, id="plausible, in every attempt"
        ),
        pytest.param(
            [outcome(verdict("a", LOGICAL, PLAUSIBLE), gaps=gaps("", ""))],
            0.5,
            id="plausible, and in no gap: it failed once all the same",
        ),
        pytest.param(
            [outcome(verdict("a", LOGICAL), gaps=gaps("", "", "a"))], 1.0, id="verifiable counts whole, however often"
        ),
        pytest.param(
            [outcome(verdict("a"), verdict("b"), gaps=gaps("a b", ""))], 0.0, id="what failed earlier and passes now"
        ),
        pytest.param([outcome(verdict("a"), failed=True)], 0.5, id="failed without a failing verdict"),
        pytest.param([outcome(failed=True)], 1.0, id="failed without any verdict"),
    ],
)
@pytest.mark.seed("control-loop", "loss")
def test_d_is_the_share_of_the_criteria_that_failed(outcomes: list[SubTaskOutcome], expected: float) -> None:
    assert compute_distance(outcomes) == pytest.approx(expected)


def test_a_crashed_subtask_counts_all_its_criteria_and_blames_the_environment() -> None:
    crashed = outcome(verdict("a", ENVIRONMENTAL), verdict("b", ENVIRONMENTAL), verdict("c", ENVIRONMENTAL))
    outcomes = [outcome(verdict("d")), crashed]
    assert compute_distance(outcomes) == 0.75
    assert compute_implausibility(outcomes) == 0.0


def test_a_rejected_merge_is_a_distance_though_every_subtask_matched() -> None:
    assert compute_distance([PASSED], [verdict("whole"), verdict("request", LOGICAL)]) == 0.25
    assert compute_implausibility([PASSED], [verdict("request", LOGICAL)]) == 1.0
    assert compute_distance([PASSED], [verdict("whole")]) == 0.0


def test_a_merged_plausible_failure_counts_whole() -> None:
    assert compute_distance([PASSED], [verdict("whole", LOGICAL, PLAUSIBLE)]) == pytest.approx(1 / 3)


def test_thirds_that_add_up_to_three_tenths_are_three_tenths() -> None:
    """In floating point they come to a hair more in this order, which would be no longer near."""
    shares = (1, 2), (2, 3), (1, 1), (1, 1), (1, 2), (1, 1), (2, 3), (2, 3), (2, 3), (1, 2), (2, 3), (1, 3), (2, 3)
    more = (1, 1), (1, 2), (1, 3), (1, 1), (1, 3)
    failed = [
        outcome(verdict("a", LOGICAL, PLAUSIBLE), gaps=gaps(*["a"] * k, *[""] * (n - k))) for k, n in shares + more
    ]
    assert compute_distance([*failed, *[outcome(verdict("a"))] * (40 - len(failed))]) == WEIGHTS.delta


@pytest.mark.parametrize("outcomes", [[], [outcome()]])
def test_without_criteria_there_is_no_distance(outcomes: list[SubTaskOutcome]) -> None:
    with pytest.raises(ValueError, match="no criteria"):
        compute_distance(outcomes)


@each_row(
    ("classes", "share", "majority"),
    [
        ([], 0.5, MIXED),
        ([LOGICAL], 1.0, LOGICAL),
        ([ENVIRONMENTAL], 0.0, ENVIRONMENTAL),
        ([LOGICAL, ENVIRONMENTAL], 0.5, MIXED),
        ([LOGICAL, LOGICAL, ENVIRONMENTAL], 2 / 3, LOGICAL),
        ([ENVIRONMENTAL, LOGICAL, ENVIRONMENTAL, ENVIRONMENTAL], 0.25, ENVIRONMENTAL),
        ([MIXED], 0.5, MIXED),
        ([MIXED, MIXED, LOGICAL], 1.0, LOGICAL),
    ],
)
def test_p_is_the_logical_share_of_what_failed_and_the_class_that_of_most(
    classes: list[FailureClass], share: float, majority: FailureClass
) -> None:
    failed = [outcome(*(verdict(str(number), one) for number, one in enumerate(classes)), verdict("passed"))]
    assert compute_implausibility(failed) == pytest.approx(share)
    assert dominant_class(failure_classes(failed)) is majority
    merged = [verdict(str(number), one) for number, one in enumerate(classes)]
    assert compute_implausibility([PASSED], merged) == pytest.approx(share)
    assert dominant_class(failure_classes([PASSED], merged)) is majority


def test_what_failed_without_saying_why_is_environmental() -> None:
    unexplained = outcome(verdict("a"), failed=True)
    assert list(failure_classes([unexplained])) == [ENVIRONMENTAL]
    assert compute_implausibility([unexplained]) == 0.0


# Ω.


@each_row(
    ("replans", "elapsed_ms", "expected"),
    [
        (0, 0, 0.0),
        (1, 0, 0.2),
        (0, 150_000, 0.2),
        (1, 75_000, 0.3),
        (3, 0, 0.6),
        (0, 300_000, 0.4),
        (2, 300_000, 0.8),
        (3, 300_000, 1.0),
        (9, 0, 0.6),
        (0, 9_000_000, 0.4),
        (9, 9_000_000, 1.0),
    ],
)
@pytest.mark.seed("control-loop", "loss")
def test_omega_weighs_replans_and_time_each_clamped_to_its_budget(
    replans: int, elapsed_ms: float, expected: float
) -> None:
    assert compute_pressure(replans, elapsed_ms, WEIGHTS) == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (LossWeights(max_replans=0), 0.6),
        (LossWeights(time_budget_ms=0), 0.4),
        (LossWeights(max_replans=0, time_budget_ms=0), 1.0),
        (LossWeights(max_replans=0, time_budget_ms=0, replans_weight=1, time_weight=1), 1.0),
    ],
)
def test_a_budget_of_nothing_is_spent_from_the_start(weights: LossWeights, expected: float) -> None:
    assert compute_pressure(0, 0, weights) == expected


@each_row(("replans", "elapsed_ms"), [(-1, 0), (0, -1), (0, -0.001), (0, math.nan), (0, math.inf), (0, -math.inf)])
def test_replans_and_time_that_cannot_be_are_refused(replans: int, elapsed_ms: float) -> None:
    with pytest.raises(ValueError, match="both must be 0 or more"):
        compute_pressure(replans, elapsed_ms, WEIGHTS)


NUMBERS = (
    "alpha", "beta", "lam", "replans_weight", "time_weight", "epsilon", "delta", "rho", "abandon", "max_replans",
    "time_budget_ms",
)  # fmt: skip


@each_row("name", NUMBERS)
@each_row("value", [-1, -0.001, math.nan, math.inf, -math.inf])
def test_a_weight_that_is_negative_or_no_number_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is "):
        LossWeights(**{name: value})  # type: ignore[arg-type]


@each_row("name", ["epsilon", "delta", "rho", "abandon", "replans_weight", "time_weight"])
def test_a_share_above_one_is_refused_and_one_itself_is_not(name: str) -> None:
    assert getattr(LossWeights(**{name: 1}), name) == 1
    with pytest.raises(ValueError, match=f"{name} is 1.01: it must be at most 1"):
        LossWeights(**{name: 1.01})  # type: ignore[arg-type]


@each_row("name", NUMBERS)
def test_nothing_is_a_value_that_every_weight_may_have(name: str) -> None:
    assert getattr(LossWeights(**{name: 0}), name) == 0


@pytest.mark.seed("control-loop", "loss")
def test_the_defaults_are_those_of_the_rules() -> None:
    assert [getattr(WEIGHTS, name) for name in NUMBERS] == [0.6, 0.3, 0.4, 0.6, 0.4, 0.1, 0.3, 0.5, 0.8, 3, 300_000]


# L and the gradients.


@each_row(
    ("d", "p", "omega", "expected"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 1.0, 0.0, 0.9),
        (1.0, 1.0, 1.0, 1.0),
        (0.5, 1.0, 0.5, 0.3 + 0.15 + 0.2),
        (0.25, 0.5, 0.2, 0.15 + 0.12 + 0.08),
    ],
)
@pytest.mark.seed("control-loop", "loss")
def test_l_by_hand(d: float, p: float, omega: float, expected: float) -> None:
    measured = compute_loss(d, p, omega, WEIGHTS)
    assert (measured.D, measured.P, measured.Omega, measured.L) == pytest.approx((d, p, omega, expected))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.1])
def test_a_loss_of_figures_out_of_range_is_refused(bad: float) -> None:
    for d, p, omega in ((bad, 0.0, 0.0), (0.0, bad, 0.0), (0.0, 0.0, bad)):
        with pytest.raises(ValueError, match="validation error"):
            compute_loss(d, p, omega, WEIGHTS)


def read(
    failed: int, of: int, kind: FailureClass, before: Measurement | None = None, *, elapsed_ms: float = 0
) -> Measurement:
    """A round in which `failed` of the criteria did, all of one class."""
    verdicts = [verdict(str(number), kind if number < failed else None) for number in range(of)]
    replans = before.replans + 1 if before else 0
    return measure_round(
        [outcome(*verdicts)], (), replans=replans, elapsed_ms=elapsed_ms, before=before, weights=WEIGHTS
    )


@pytest.mark.seed("control-loop", "gradient")
def test_the_first_round_has_no_gradient() -> None:
    first = read(4, 4, LOGICAL, elapsed_ms=200_000)
    assert (first.nabla, first.grad_l, first.worsening_rounds) == (0.0, 0.0, 0)
    assert classify_gradient(first, WEIGHTS) is Gradient.PLATEAU


def test_both_gradients_by_hand() -> None:
    first = read(4, 4, LOGICAL)  # D 1, P 1, Ω 0: L .9
    second = read(2, 4, ENVIRONMENTAL, first, elapsed_ms=150_000)  # D .5, P 0, Ω .2 + .2: L .3 + 0 + .16
    assert (second.loss.L, second.nabla, second.grad_l) == pytest.approx((0.46, -0.6, -0.44))


@pytest.mark.seed("control-loop", "gradient")
def test_a_plateau_stays_one_however_long_the_round_took() -> None:
    first = read(2, 4, ENVIRONMENTAL)
    for elapsed_ms in (1, 75_000, 299_999, 10_000_000):
        later = read(2, 4, ENVIRONMENTAL, first, elapsed_ms=elapsed_ms)
        assert later.nabla == 0.0
        assert classify_gradient(later, WEIGHTS) is Gradient.PLATEAU
    assert later.grad_l == pytest.approx(0.24)  # which L itself does see: Ω .6


@each_row(("before", "after", "of"), [(2, 1, 6), (3, 2, 6), (4, 3, 6), (5, 4, 6), (6, 5, 6), (1, 0, 6), (11, 9, 12)])
def test_a_step_of_exactly_epsilon_is_no_plateau_in_either_direction(before: int, after: int, of: int) -> None:
    """α times a sixth is ε; in floating point it is often a hair less."""
    high, low = compute_loss(before / of, 0.5, 0, WEIGHTS), compute_loss(after / of, 0.5, 0, WEIGHTS)
    down = measure_change(
        low, replans=1, before=measure_change(high, replans=0, before=None, weights=WEIGHTS), weights=WEIGHTS
    )
    up = measure_change(
        high, replans=1, before=measure_change(low, replans=0, before=None, weights=WEIGHTS), weights=WEIGHTS
    )
    assert (down.nabla, up.nabla) == (-0.1, 0.1)
    assert classify_gradient(down, WEIGHTS) is Gradient.IMPROVING
    assert classify_gradient(up, WEIGHTS) is Gradient.WORSENING


@each_row(
    ("nabla", "d", "expected"),
    [
        (-0.1, 1.0, Gradient.IMPROVING),
        (-0.1, 0.1, Gradient.IMPROVING),
        (-0.0999, 1.0, Gradient.PLATEAU),
        (0.0, 1.0, Gradient.PLATEAU),
        (0.0, 0.31, Gradient.PLATEAU),
        (0.0, 0.3, Gradient.STABLE),
        (0.0, 0.0, Gradient.STABLE),
        (0.0999, 0.31, Gradient.PLATEAU),
        (0.1, 1.0, Gradient.WORSENING),
        (0.1, 0.1, Gradient.WORSENING),
    ],
)
def test_the_name_of_the_gradient(nabla: float, d: float, expected: Gradient) -> None:
    assert classify_gradient(at(D=d, nabla=nabla), WEIGHTS) is expected


@each_row(("rise", "expected"), [(0.1, 2), (0.5, 2), (0.0999, 0), (0.0, 0), (-0.3, 0)])
def test_rounds_that_got_worse_are_counted_in_a_row(rise: float, expected: int) -> None:
    before = Measurement(Loss(D=0.5, P=0.5, Omega=0.1, L=0.4), 0.0, 0.0, 1, worsening_rounds=1)
    now = Loss(D=0.5, P=0.5, Omega=0.1, L=0.4 + rise)
    assert measure_change(now, replans=2, before=before, weights=WEIGHTS).worsening_rounds == expected


@pytest.mark.parametrize(("d", "said", "verified"), [(0.0, True, True), (0.0, False, False), (0.1, True, False)])
def test_nothing_that_failed_is_verified_whoever_says_so(d: float, said: bool, verified: bool) -> None:
    now = compute_loss(d, 0.5, 0, WEIGHTS)
    assert measure_change(now, replans=0, before=None, weights=WEIGHTS, verified=said).is_verified is verified


def test_a_reading_takes_the_merged_result_in() -> None:
    whole = measure_round(
        [PASSED], [verdict("w", LOGICAL)], replans=1, elapsed_ms=150_000, before=None, weights=WEIGHTS, verified=True
    )
    assert (whole.loss.D, whole.loss.P, whole.loss.Omega) == pytest.approx((1 / 3, 1.0, 0.4))
    assert (whole.replans, whole.is_verified) == (1, False)
