"""The controller of the control loop: it measures the result and decides what the next plan must do. Pure.

    L = α·D + β·(1 − Ω)·P + λ·Ω
    D  the distance of the result from the goal
    P  the share of the blame that the approach carries
    Ω  the share of the budget that is spent

Decisions are based on ∇ = Δ(α·D + β·P): Ω grows with the clock alone, and must not make a plateau look like a decline.
`grad_l`, the difference of L itself, is only reported. In the first round both are 0.

A policy is a table; the first row that holds decides. There are four: the gradient policy; the same with patience in
its first round, which is the default; the grid that the loop's author designed later; and naive retry. They are
compared by simulation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.models.solve_messages import (
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    Gradient,
    Loss,
    SubTaskOutcome,
)

UNDECIDED_P: Final = 0.5
"""P if no failure has a class."""


@dataclass(frozen=True)
class LossWeights:
    """The parameters of the loop. A value out of range is refused."""

    alpha: float = 0.6
    beta: float = 0.3
    lam: float = 0.4
    replans_weight: float = 0.6
    time_weight: float = 0.4
    epsilon: float = 0.1
    """A smaller change of ∇ is flat."""
    delta: float = 0.3
    """A result is near up to this D."""
    rho: float = 0.5
    """A greater P blames the approach."""
    abandon: float = 0.8
    """From this Ω on, the task is abandoned."""
    max_replans: int = 3
    time_budget_ms: int = 300_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isfinite(value) or value < 0:
                raise ValueError(f"{field.name} is {value}: it must be a finite number and not negative")
        for name in ("epsilon", "delta", "rho", "abandon", "replans_weight", "time_weight"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at most 1")

    def with_factors(self, factors: Mapping[str, float]) -> LossWeights:
        """Return the parameters with these weights and thresholds."""
        return replace(self, **factors)  # type: ignore[arg-type]


# Measuring.


def compute_distance(outcomes: Sequence[SubTaskOutcome], merged: Sequence[CriterionVerdict] = ()) -> float:
    """Return D: the share of failed criteria, of subtasks and of the merged result. A plausible criterion that failed
    in k of N attempts counts k/N. A failure without a reason counts as one more failed criterion, so that a failed
    subtask is never near.
    """
    failed = sum(weight for outcome in outcomes for weight in _failure_weights(outcome))
    failed += sum(verdict.is_failed for verdict in merged)
    total = sum(len(verdict.criteria_verdicts) + _is_unexplained(verdict) for verdict in outcomes) + len(merged)
    if not total:
        raise ValueError("there are no criteria, so there is no distance")
    return _round_decimal(failed / total)


def compute_implausibility(outcomes: Sequence[SubTaskOutcome], merged: Sequence[CriterionVerdict] = ()) -> float:
    """Return P: the share of failures that are logical."""
    classes = Counter(failure_classes(outcomes, merged))
    logical, environmental = classes[FailureClass.LOGICAL], classes[FailureClass.ENVIRONMENTAL]
    return logical / (logical + environmental) if logical + environmental else UNDECIDED_P


def compute_pressure(replans: int, elapsed_ms: float, weights: LossWeights) -> float:
    """Return Ω: the used shares of the replans and of the time, weighted. A budget of 0 is spent."""
    if replans < 0 or not isfinite(elapsed_ms) or elapsed_ms < 0:
        raise ValueError(f"{replans} replans in {elapsed_ms} ms: both must be 0 or more")
    spent = weights.replans_weight * _used_share(replans, weights.max_replans)
    return min(1.0, _round_decimal(spent + weights.time_weight * _used_share(elapsed_ms, weights.time_budget_ms)))


def compute_loss(distance: float, implausibility: float, pressure: float, weights: LossWeights) -> Loss:
    total = weights.alpha * distance + weights.beta * (1 - pressure) * implausibility + weights.lam * pressure
    return Loss(D=distance, P=implausibility, Omega=pressure, L=total)


def failure_classes(
    outcomes: Iterable[SubTaskOutcome], merged: Iterable[CriterionVerdict] = ()
) -> Iterator[FailureClass]:
    """Yield the class of every failure."""
    for outcome in outcomes:
        yield from (verdict.failure_class for verdict in outcome.criteria_verdicts if verdict.failure_class)
        if _is_unexplained(outcome):
            yield FailureClass.ENVIRONMENTAL
    yield from (verdict.failure_class for verdict in merged if verdict.failure_class)


def dominant_class(classes: Iterable[FailureClass]) -> FailureClass:
    """Return the most frequent class; a tie is mixed."""
    counts = Counter(classes)
    logical, environmental = counts[FailureClass.LOGICAL], counts[FailureClass.ENVIRONMENTAL]
    if logical == environmental:
        return FailureClass.MIXED
    return FailureClass.LOGICAL if logical > environmental else FailureClass.ENVIRONMENTAL


def _failure_weights(outcome: SubTaskOutcome) -> Iterator[float]:
    attempts = len(outcome.gap_trajectory)
    for verdict in outcome.criteria_verdicts:
        if verdict.is_failed and (verdict.mode is CriterionMode.VERIFIABLE or not attempts):
            yield 1.0
        elif verdict.is_failed:
            yield max(1, _count_failures(outcome, verdict.criterion)) / attempts
    if _is_unexplained(outcome):
        yield 1.0


def _count_failures(outcome: SubTaskOutcome, criterion: str) -> int:
    return sum(any(failure.criterion == criterion for failure in gap.failed_criteria) for gap in outcome.gap_trajectory)


def _is_unexplained(outcome: SubTaskOutcome) -> bool:
    """Return whether the outcome failed although none of its verdicts did."""
    return not outcome.is_matched and not any(verdict.is_failed for verdict in outcome.criteria_verdicts)


def _used_share(used: float, budget: float) -> float:
    return min(1.0, used / budget) if budget else 1.0


def _round_decimal(value: float) -> float:
    """Round to decimal arithmetic: 0.3 − 0.2 is 0.1 exactly. Otherwise rounding errors would decide at a threshold."""
    return round(value, 9)


# Deciding.


@dataclass(frozen=True)
class Measurement:
    """The measurements after a round."""

    loss: Loss
    nabla: float
    """The value that decisions are based on."""
    grad_l: float
    """The change of L itself."""
    replans: int
    is_verified: bool = False
    """Whether everything matched and the merged result was verified."""
    worsening_rounds: int = 0
    """The number of consecutive rounds in which L rose by at least ε."""


@dataclass(frozen=True)
class PolicyRow:
    rationale_template: str
    """The condition in words, as a template for the rationale."""
    holds: Callable[[Measurement, LossWeights], bool]
    directive: DirectiveName
    blocks_tools: bool = False
    """Whether the tools of failed subtasks are blocked."""
    suggests_path: bool = False
    """Whether another path is suggested."""


Policy = tuple[PolicyRow, ...]


def _is_flat(measured: Measurement, w: LossWeights) -> bool:
    return abs(measured.nabla) < w.epsilon


def _is_l_flat(measured: Measurement, w: LossWeights) -> bool:
    return abs(measured.grad_l) < w.epsilon


def _is_out_of_budget(measured: Measurement, w: LossWeights) -> bool:
    return measured.loss.Omega >= w.abandon or measured.replans >= w.max_replans


_ACCEPT: Final = PolicyRow(
    "everything that was asked for is there, and verified",
    lambda measured, _: measured.is_verified and measured.loss.D == 0,
    DirectiveName.ACCEPT,
)
_ABANDON: Final = PolicyRow(
    "the budget is spent (Ω={Omega:.2f}, {replans} replans): nothing more is tried",
    _is_out_of_budget,
    DirectiveName.ABANDON,
)

GRADIENT_POLICY: Final[Policy] = (
    _ACCEPT,
    _ABANDON,
    PolicyRow(
        "nearly there (D={D:.2f}): same approach, tighter",
        lambda measured, w: measured.loss.D <= w.delta,
        DirectiveName.REFINE,
    ),
    PolicyRow(
        "it comes nearer (∇={nabla:+.2f}): on the right track",
        lambda measured, w: measured.nabla <= -w.epsilon,
        DirectiveName.REFINE,
    ),
    PolicyRow(
        "it does not move (∇={nabla:+.2f}, D={D:.2f}), and something is in the way (P={P:.2f}): same approach, another "
        "target or parameters",
        lambda measured, w: _is_flat(measured, w) and measured.loss.P <= w.rho,
        DirectiveName.CHANGE_PATH,
        suggests_path=True,
    ),
    PolicyRow(
        "a local minimum (∇={nabla:+.2f}, D={D:.2f}), and the approach is to blame (P={P:.2f}): none of the tools that "
        "were tried, something new",
        _is_flat,
        DirectiveName.BREAK_SYMMETRY,
        blocks_tools=True,
    ),
    PolicyRow(
        "it gets worse (∇={nabla:+.2f}), and something is in the way (P={P:.2f}): same approach, adjust the path",
        lambda measured, w: measured.loss.P <= w.rho,
        DirectiveName.REFINE,
        suggests_path=True,
    ),
    PolicyRow(
        "it gets worse (∇={nabla:+.2f}), and the approach is to blame (P={P:.2f}): explicitly different tools",
        lambda measured, w: True,
        DirectiveName.CHANGE_APPROACH,
        blocks_tools=True,
    ),
)
"""The first matching row decides; below the fourth row ∇ is flat or rising."""

PATIENT_POLICY: Final[Policy] = (
    *GRADIENT_POLICY[:2],
    PolicyRow(
        "the first round: there is no direction yet, so same approach, tighter",
        lambda measured, _: measured.replans == 0,
        DirectiveName.REFINE,
    ),
    *GRADIENT_POLICY[2:],
)
"""The same, except that one round is not a plateau: a right approach often needs a second round. In the simulation it
succeeds more often than the table above (docs/simulation.md), so it is the default.
"""

GRID_POLICY: Final[Policy] = (
    _ACCEPT,
    _ABANDON,
    PolicyRow(
        "near enough (D={D:.2f}): what there is, is handed over as partial",
        lambda measured, w: measured.loss.D <= w.delta,
        DirectiveName.ABANDON,
    ),
    PolicyRow(
        "two rounds in a row got worse: nothing more is tried",
        lambda measured, _: measured.worsening_rounds >= 2,
        DirectiveName.ABANDON,
    ),
    PolicyRow(
        "the approach is to blame (P={P:.2f}), and L does not move (∇L={grad_l:+.2f})",
        lambda measured, w: measured.loss.P > w.rho and _is_l_flat(measured, w),
        DirectiveName.BREAK_SYMMETRY,
        blocks_tools=True,
    ),
    PolicyRow(
        "the approach is to blame (P={P:.2f}), and L moves (∇L={grad_l:+.2f})",
        lambda measured, w: measured.loss.P > w.rho,
        DirectiveName.CHANGE_APPROACH,
        blocks_tools=True,
    ),
    PolicyRow(
        "something is in the way (P={P:.2f}), and L does not move (∇L={grad_l:+.2f})",
        _is_l_flat,
        DirectiveName.CHANGE_PATH,
        suggests_path=True,
    ),
    PolicyRow(
        "something is in the way (P={P:.2f}), and L moves (∇L={grad_l:+.2f})", lambda *_: True, DirectiveName.REFINE
    ),
)
"""The author's later grid. Its success with D > 0 is not a success here: it ends as partial."""

NAIVE_POLICY: Final[Policy] = (
    _ACCEPT,
    _ABANDON,
    PolicyRow("it failed: once more", lambda *_: True, DirectiveName.REFINE),
)

POLICIES: Final[Mapping[str, Policy]] = MappingProxyType(
    {"patient": PATIENT_POLICY, "gradient": GRADIENT_POLICY, "grid": GRID_POLICY, "naive": NAIVE_POLICY}
)
DEFAULT_POLICY: Final = PATIENT_POLICY


def measure_round(
    outcomes: Sequence[SubTaskOutcome],
    merged: Sequence[CriterionVerdict],
    *,
    replans: int,
    elapsed_ms: float,
    before: Measurement | None,
    weights: LossWeights,
    verified: bool = False,
) -> Measurement:
    """Measure a round, compared with the previous round."""
    now = compute_loss(
        compute_distance(outcomes, merged),
        compute_implausibility(outcomes, merged),
        compute_pressure(replans, elapsed_ms, weights),
        weights,
    )
    return measure_change(now, replans=replans, before=before, weights=weights, verified=verified)


def measure_change(
    now: Loss, *, replans: int, before: Measurement | None, weights: LossWeights, verified: bool = False
) -> Measurement:
    grad_l = _round_decimal(now.L - before.loss.L) if before else 0.0
    nabla = _round_decimal(_potential(now, weights) - _potential(before.loss, weights)) if before else 0.0
    worsening = before.worsening_rounds + 1 if before and grad_l >= weights.epsilon else 0
    return Measurement(now, nabla, grad_l, replans, verified and now.D == 0, worsening)


def decide(policy: Policy, measured: Measurement, weights: LossWeights) -> PolicyRow:
    return next(row for row in policy if row.holds(measured, weights))


def format_rationale(row: PolicyRow, measured: Measurement) -> str:
    return row.rationale_template.format(
        **measured.loss.model_dump(), nabla=measured.nabla, grad_l=measured.grad_l, replans=measured.replans
    )


def classify_gradient(measured: Measurement, weights: LossWeights) -> Gradient:
    if measured.nabla <= -weights.epsilon:
        return Gradient.IMPROVING
    if measured.nabla >= weights.epsilon:
        return Gradient.WORSENING
    return Gradient.PLATEAU if measured.loss.D > weights.delta else Gradient.STABLE


def _potential(value: Loss, weights: LossWeights) -> float:
    return weights.alpha * value.D + weights.beta * value.P
