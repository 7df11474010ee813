"""What the controller decides: every row of the three policies, and what holds whatever the figures are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.roles.models.solve_messages import (
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    SubTaskOutcome,
)
from proofstone.solve.rules.gradient import (
    DEFAULT_POLICY,
    GRADIENT_POLICY,
    GRID_POLICY,
    NAIVE_POLICY,
    PATIENT_POLICY,
    POLICIES,
    LossWeights,
    Measurement,
    Policy,
    compute_distance,
    compute_implausibility,
    compute_loss,
    compute_pressure,
    decide,
    format_rationale,
    measure_change,
    measure_round,
)
from tests.rows import each_row
from tests.solve.talk import ENVIRONMENTAL, LOGICAL, at, gaps, outcome, verdict

WEIGHTS = LossWeights()
ACCEPT, REFINE, ABANDON = DirectiveName.ACCEPT, DirectiveName.REFINE, DirectiveName.ABANDON
CHANGE_PATH, CHANGE_APPROACH = DirectiveName.CHANGE_PATH, DirectiveName.CHANGE_APPROACH
BREAK_SYMMETRY = DirectiveName.BREAK_SYMMETRY

GRADIENT_ROWS = [
    pytest.param(at(D=0, verified=True), ACCEPT, id="D = 0 and verified"),
    pytest.param(at(D=0, verified=True, Omega=1, replans=9), ACCEPT, id="accept before abandon"),
    pytest.param(at(D=0), REFINE, id="D = 0, not verified: near, and not there"),
    pytest.param(at(D=0, Omega=0.8), ABANDON, id="D = 0, not verified, and nothing is left"),
    pytest.param(at(Omega=0.8, nabla=-0.5), ABANDON, id="Ω = .8, though it improves"),
    pytest.param(at(Omega=0.7999, P=0.5), CHANGE_PATH, id="Ω just below .8"),
    pytest.param(at(D=0.01, Omega=0.9), ABANDON, id="Ω above .8, though it is near"),
    pytest.param(at(replans=3, nabla=-0.5), ABANDON, id="replans = max, though it improves"),
    pytest.param(at(replans=4), ABANDON, id="replans > max"),
    pytest.param(at(replans=2, P=0.5), CHANGE_PATH, id="replans just below max"),
    pytest.param(at(D=0.3, P=1, nabla=0), REFINE, id="D = δ on a plateau"),
    pytest.param(at(D=0.3, P=1, nabla=0.5), REFINE, id="D = δ and worsening"),
    pytest.param(at(D=0.3001, P=1), BREAK_SYMMETRY, id="D just above δ"),
    pytest.param(at(P=1, nabla=-0.1), REFINE, id="∇ = −ε"),
    pytest.param(at(P=1, nabla=-0.0999), BREAK_SYMMETRY, id="∇ just above −ε, logical"),
    pytest.param(at(P=0, nabla=-0.0999), CHANGE_PATH, id="∇ just above −ε, environmental"),
    pytest.param(at(P=0.5), CHANGE_PATH, id="plateau, P = ρ"),
    pytest.param(at(P=0), CHANGE_PATH, id="plateau, all environmental"),
    pytest.param(at(P=0.5001), BREAK_SYMMETRY, id="plateau, P just above ρ"),
    pytest.param(at(P=1, nabla=0.0999), BREAK_SYMMETRY, id="∇ just below ε, logical"),
    pytest.param(at(P=0.5, nabla=0.1), REFINE, id="∇ = ε, P = ρ"),
    pytest.param(at(P=0, nabla=0.9), REFINE, id="worsening, environmental"),
    pytest.param(at(P=0.5001, nabla=0.1), CHANGE_APPROACH, id="∇ = ε, P just above ρ"),
    pytest.param(at(P=1, nabla=0.9), CHANGE_APPROACH, id="worsening, logical"),
    pytest.param(at(P=1, grad_l=0.9, worsening=5), BREAK_SYMMETRY, id="ΔL alone is no worsening"),
]

GRID_ROWS = [
    pytest.param(at(D=0, verified=True, Omega=1), ACCEPT, id="D = 0 and verified"),
    pytest.param(at(Omega=0.8), ABANDON, id="Ω = .8"),
    pytest.param(at(replans=3), ABANDON, id="replans = max"),
    pytest.param(at(D=0.3), ABANDON, id="D = δ: partial"),
    pytest.param(at(D=0.3001, P=0), CHANGE_PATH, id="D just above δ"),
    pytest.param(at(worsening=2, grad_l=0.2), ABANDON, id="worse twice in a row"),
    pytest.param(at(worsening=1, grad_l=0.2, P=0), REFINE, id="worse once"),
    pytest.param(at(P=0.5001, grad_l=0.0999), BREAK_SYMMETRY, id="logical, abs ∇L just below ε"),
    pytest.param(at(P=1, grad_l=-0.0999), BREAK_SYMMETRY, id="logical, abs ∇L just below ε, falling"),
    pytest.param(at(P=1, grad_l=0.1), CHANGE_APPROACH, id="logical, ∇L = ε"),
    pytest.param(at(P=1, grad_l=-0.1), CHANGE_APPROACH, id="logical, ∇L = −ε: even where it improves"),
    pytest.param(at(P=0.5), CHANGE_PATH, id="P = ρ, ∇L flat"),
    pytest.param(at(P=0.5, grad_l=0.1), REFINE, id="P = ρ, ∇L = ε"),
    pytest.param(at(P=0, grad_l=-0.1), REFINE, id="environmental, ∇L = −ε"),
    pytest.param(at(P=1, nabla=0.9), BREAK_SYMMETRY, id="it goes by ∇L, not by ∇"),
]

NAIVE_ROWS = [
    pytest.param(at(D=0, verified=True, Omega=1, replans=3), ACCEPT, id="D = 0 and verified"),
    pytest.param(at(Omega=0.8), ABANDON, id="Ω = .8"),
    pytest.param(at(replans=3), ABANDON, id="replans = max"),
    pytest.param(at(D=0), REFINE, id="D = 0, not verified"),
    pytest.param(at(P=1, nabla=0.9, worsening=2), REFINE, id="whatever else"),
]


@pytest.mark.parametrize(("it", "directive"), GRADIENT_ROWS)
@pytest.mark.seed("control-loop", "directive-table")
def test_every_row_of_the_default_policy(it: Measurement, directive: DirectiveName) -> None:
    assert decide(GRADIENT_POLICY, it, WEIGHTS).directive is directive


@pytest.mark.parametrize(("it", "directive"), GRID_ROWS)
def test_every_row_of_the_authors_later_grid(it: Measurement, directive: DirectiveName) -> None:
    assert decide(GRID_POLICY, it, WEIGHTS).directive is directive


@pytest.mark.parametrize(("it", "directive"), NAIVE_ROWS)
def test_every_row_of_naive_retry(it: Measurement, directive: DirectiveName) -> None:
    assert decide(NAIVE_POLICY, it, WEIGHTS).directive is directive


@pytest.mark.seed("control-loop", "directive-table")
def test_every_row_is_reached() -> None:
    for policy, rows in ((GRADIENT_POLICY, GRADIENT_ROWS), (GRID_POLICY, GRID_ROWS), (NAIVE_POLICY, NAIVE_ROWS)):
        decided = [decide(policy, one.values[0], WEIGHTS) for one in rows]  # type: ignore[arg-type]
        assert set(map(id, decided)) == set(map(id, policy))


def test_the_policies_by_name() -> None:
    assert dict(POLICIES) == {
        "patient": PATIENT_POLICY,
        "gradient": GRADIENT_POLICY,
        "grid": GRID_POLICY,
        "naive": NAIVE_POLICY,
    }
    assert DEFAULT_POLICY is PATIENT_POLICY


@each_row(
    ("it", "hint"),
    [
        (at(P=0), True),
        (at(P=0, nabla=0.2), True),
        (at(P=1, nabla=0.2), False),
        (at(nabla=-0.2), False),
        (at(P=1), False),
    ],
)
def test_another_path_is_suggested_where_something_is_in_the_way(it: Measurement, hint: bool) -> None:
    assert decide(GRADIENT_POLICY, it, WEIGHTS).suggests_path is hint


def test_the_grid_suggests_another_path_with_change_path_alone() -> None:
    assert [row.directive for row in GRID_POLICY if row.suggests_path] == [CHANGE_PATH]


@each_row(
    ("policy", "it", "said"),
    [
        (GRADIENT_POLICY, at(Omega=0.812, replans=2), "the budget is spent (Ω=0.81, 2 replans): nothing more is tried"),
        (GRADIENT_POLICY, at(nabla=-0.25), "it comes nearer (∇=-0.25): on the right track"),
        (
            GRADIENT_POLICY,
            at(D=0.5, P=0.75),
            "a local minimum (∇=+0.00, D=0.50), and the approach is to blame (P=0.75): ",
        ),
        (GRADIENT_POLICY, at(P=1, nabla=0.25), "it gets worse (∇=+0.25), and the approach is to blame (P=1.00): "),
        (GRID_POLICY, at(P=1, grad_l=0.25), "the approach is to blame (P=1.00), and L moves (∇L=+0.25)"),
    ],
)
def test_the_rationale_gives_the_figures(policy: Policy, it: Measurement, said: str) -> None:
    assert format_rationale(decide(policy, it, WEIGHTS), it).startswith(said)


def test_every_row_can_say_why() -> None:
    for policy in POLICIES.values():
        for row in policy:
            assert "{" not in format_rationale(row, at())


def test_with_no_replans_allowed_the_first_failure_is_the_last() -> None:
    weights = LossWeights(max_replans=0)
    first = measure_round([outcome(verdict("a", LOGICAL))], (), replans=0, elapsed_ms=0, before=None, weights=weights)
    done = measure_round(
        [outcome(verdict("a"))], (), replans=0, elapsed_ms=0, before=None, weights=weights, verified=True
    )
    for policy in POLICIES.values():
        assert decide(policy, first, weights).directive is ABANDON
        assert decide(policy, done, weights).directive is ACCEPT


def test_with_no_time_at_all_two_replans_are_the_last() -> None:
    weights = LossWeights(time_budget_ms=0)
    for replans, over in ((0, False), (1, False), (2, True)):
        it = measure_change(
            compute_loss(1, 0, compute_pressure(replans, 0, weights), weights),
            replans=replans,
            before=None,
            weights=weights,
        )
        assert (decide(GRADIENT_POLICY, it, weights).directive is ABANDON) is over


@each_row(
    ("failed", "kind", "directive"),
    [
        (10, LOGICAL, BREAK_SYMMETRY),
        (10, ENVIRONMENTAL, CHANGE_PATH),
        (4, ENVIRONMENTAL, CHANGE_PATH),
        (3, LOGICAL, REFINE),
        (3, ENVIRONMENTAL, REFINE),
    ],
)
def test_the_first_round_is_a_plateau_unless_it_is_near(
    failed: int, kind: FailureClass, directive: DirectiveName
) -> None:
    verdicts = [verdict(str(number), kind if number < failed else None) for number in range(10)]
    first = measure_round([outcome(*verdicts)], (), replans=0, elapsed_ms=1000, before=None, weights=WEIGHTS)
    assert decide(GRADIENT_POLICY, first, WEIGHTS).directive is directive


# What holds whatever the figures are.

shares = st.floats(0, 1)
modes = st.sampled_from(CriterionMode)
kinds = st.sampled_from(FailureClass)
verdicts = st.builds(verdict, st.sampled_from("abcdef"), st.none() | kinds, modes)


@st.composite
def all_outcomes(draw: st.DrawFn) -> SubTaskOutcome:
    given = draw(st.lists(verdicts, min_size=1, max_size=5, unique_by=lambda one: one.criterion))
    attempts = draw(st.lists(st.text(alphabet="abcdef ", max_size=6), max_size=3))
    failed = draw(st.booleans()) or any(one.is_failed for one in given)
    return outcome(*given, failed=failed, gaps=gaps(*(" ".join(one) for one in attempts)))


@st.composite
def all_weights(draw: st.DrawFn) -> LossWeights:
    factors = {name: draw(st.floats(0, 10)) for name in ("alpha", "beta", "lam")}
    within = {name: draw(shares) for name in ("replans_weight", "time_weight", "epsilon", "delta", "rho", "abandon")}
    budgets = {"max_replans": draw(st.integers(0, 9)), "time_budget_ms": draw(st.integers(0, 10**7))}
    return LossWeights(**factors, **within, **budgets)  # type: ignore[arg-type]


changes = st.sampled_from([-0.1, 0.0, 0.1]) | st.floats(-0.2, 0.2) | st.floats(allow_nan=False, allow_infinity=False)
readings = st.builds(
    lambda d, p, omega, nabla, grad_l, replans, verified, worsening: at(
        D=d, P=p, Omega=omega, nabla=nabla, grad_l=grad_l, replans=replans, verified=verified, worsening=worsening
    ),
    st.just(0.0) | shares, shares, shares, changes, changes, st.integers(0, 20), st.booleans(), st.integers(0, 5),
)  # fmt: skip
policies = st.sampled_from(sorted(POLICIES)).map(POLICIES.__getitem__)


@given(st.lists(all_outcomes(), min_size=1, max_size=4), st.lists(verdicts, max_size=4))
def test_d_is_nothing_exactly_where_nothing_failed(
    outcomes: list[SubTaskOutcome], merged: list[CriterionVerdict]
) -> None:
    failed = any(not one.is_matched for one in outcomes) or any(one.is_failed for one in merged)
    measured = compute_distance(outcomes, merged)
    assert (measured == 0) is not failed
    assert 0 <= measured <= 1
    assert 0 <= compute_implausibility(outcomes, merged) <= 1


@given(st.lists(verdicts, min_size=1, max_size=6, unique_by=lambda one: one.criterion), st.data())
def test_one_failure_more_never_lowers_d(before: list[CriterionVerdict], data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, len(before) - 1))
    attempts = gaps(*data.draw(st.lists(st.sampled_from(["", "a", "a b", "b c d", "f"]), max_size=3)))
    worse = list(before)
    worse[chosen] = verdict(before[chosen].criterion, LOGICAL, before[chosen].mode)
    assert compute_distance([outcome(*worse, gaps=attempts)]) >= compute_distance([outcome(*before, gaps=attempts)])
    merged = data.draw(st.lists(verdicts, min_size=1, max_size=3))
    failing = [verdict(one.criterion, LOGICAL, one.mode) for one in merged]
    assert compute_distance([outcome(*before)], failing) >= compute_distance([outcome(*before)], merged)


@given(st.integers(0, 50), st.floats(0, 1e12), all_weights())
def test_omega_is_a_share_and_grows_with_what_is_spent(replans: int, elapsed_ms: float, weights: LossWeights) -> None:
    spent = compute_pressure(replans, elapsed_ms, weights)
    assert 0 <= spent <= 1
    assert compute_pressure(replans + 1, elapsed_ms, weights) >= spent
    assert compute_pressure(replans, elapsed_ms * 2, weights) >= spent


@given(shares, shares, shares, all_weights())
def test_l_lies_between_nothing_and_its_weights(d: float, p: float, omega: float, weights: LossWeights) -> None:
    most = weights.alpha + max(weights.beta, weights.lam)
    assert 0 <= compute_loss(d, p, omega, weights).L <= most + 1e-9


@given(policies, readings, all_weights())
def test_there_is_a_decision_for_every_reading_and_all_weights(
    policy: Policy, it: Measurement, weights: LossWeights
) -> None:
    assert decide(policy, it, weights) in policy


@given(policies, readings, all_weights())
def test_it_is_accepted_exactly_where_d_is_nothing_and_the_result_verified(
    policy: Policy, it: Measurement, weights: LossWeights
) -> None:
    accepted = decide(policy, it, weights).directive is ACCEPT
    assert accepted is (it.loss.D == 0 and it.is_verified)


@given(policies, readings, all_weights())
@pytest.mark.seed("control-loop", "abandon-wins")
def test_abandon_wins_over_everything_but_accept(policy: Policy, it: Measurement, weights: LossWeights) -> None:
    for spent in (
        replace(it, replans=weights.max_replans),
        replace(it, loss=it.loss.model_copy(update={"Omega": weights.abandon})),
    ):
        assert decide(policy, spent, weights).directive in (ABANDON, ACCEPT)
    left = it.loss.Omega < weights.abandon and it.replans < weights.max_replans
    if left and policy is not GRID_POLICY:
        assert decide(policy, it, weights).directive is not ABANDON


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_tools_are_blocked_where_another_approach_is_asked_for_and_nowhere_else(policy: str) -> None:
    for row in POLICIES[policy]:
        assert row.blocks_tools is (row.directive in (BREAK_SYMMETRY, CHANGE_APPROACH))


@given(readings, st.floats(0, 0.79), changes)
def test_the_default_policy_does_not_see_the_clock(it: Measurement, omega: float, grad_l: float) -> None:
    calm = replace(it, loss=it.loss.model_copy(update={"Omega": 0.0}))
    pressed = replace(it, loss=it.loss.model_copy(update={"Omega": omega}), grad_l=grad_l)
    assert decide(GRADIENT_POLICY, calm, WEIGHTS) is decide(GRADIENT_POLICY, pressed, WEIGHTS)


@given(st.lists(st.tuples(shares, shares, shares), min_size=1, max_size=6), all_weights())
def test_a_run_adds_up_to_its_gradients(rounds: list[tuple[float, float, float]], weights: LossWeights) -> None:
    it: Measurement | None = None
    first: Measurement | None = None
    total = 0.0
    for number, figures in enumerate(rounds):
        it = measure_change(compute_loss(*figures, weights), replans=number, before=it, weights=weights)
        first = first or it
        total += it.grad_l
    assert it is not None
    assert first is not None
    assert total == pytest.approx(it.loss.L - first.loss.L, abs=1e-7)
