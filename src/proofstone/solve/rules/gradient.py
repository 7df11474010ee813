"""The controller of the control loop: how far the result is, which way it goes, and what the next plan must do. Pure.

    L = α·D + β·(1 − Ω)·P + λ·Ω
    D  distance of the result from what was asked for        P  how far the approach is to blame
    Ω  how much of the budget is spent

Decisions go by ∇ = Δ(α·D + β·P): Ω grows with the clock alone, and must not make a plateau look like worsening.
`grad_l`, the difference of L itself, is reported. In the first round both are 0.

A policy is a table; the first row that holds decides. There are three: this one, the grid that the loop's author came
to later, and naive retry, compared by simulation; and the first with patience in its first round, which is the default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
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

NEITHER: Final = 0.5
"""P where nothing that failed has a class."""


@dataclass(frozen=True)
class Weights:
    """The numbers of the loop. A value outside of its range is refused."""

    alpha: float = 0.6
    beta: float = 0.3
    lam: float = 0.4
    replans_weight: float = 0.6
    time_weight: float = 0.4
    epsilon: float = 0.1
    """Below this, ∇ is flat."""
    delta: float = 0.3
    """Up to this, D is near."""
    rho: float = 0.5
    """Above this, P blames the approach."""
    abandon: float = 0.8
    """From this Ω on, nothing more is tried."""
    max_replans: int = 3
    time_budget_ms: int = 300_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isfinite(value) or value < 0:
                raise ValueError(f"{field.name} is {value}: it must be a number that is not negative")
        for name in ("epsilon", "delta", "rho", "abandon", "replans_weight", "time_weight"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must not be more than 1")


# Measuring.


def distance(outcomes: Sequence[SubTaskOutcome], merged: Sequence[CriterionVerdict] = ()) -> float:
    """D: of all criteria, of subtasks and of the merged result, the share that failed. A plausible one that failed in k
    of N attempts counts k/N. What failed without saying why counts as one more failure: nothing failed is ever near."""
    failed = sum(weight for outcome in outcomes for weight in _failures(outcome))
    failed += sum(item.failed for item in merged)
    total = sum(len(item.criteria_verdicts) + _unexplained(item) for item in outcomes) + len(merged)
    if not total:
        raise ValueError("there are no criteria, so there is nothing to be near to")
    return _reckoned(failed / total)


def implausibility(outcomes: Sequence[SubTaskOutcome], merged: Sequence[CriterionVerdict] = ()) -> float:
    """P: of what failed, the share that was logical."""
    classes = Counter(failure_classes(outcomes, merged))
    logical, environmental = classes[FailureClass.LOGICAL], classes[FailureClass.ENVIRONMENTAL]
    return logical / (logical + environmental) if logical + environmental else NEITHER


def pressure(replans: int, elapsed_ms: float, weights: Weights) -> float:
    """Ω: replans and time, each as a share of its budget. A budget of nothing is spent."""
    if replans < 0 or not isfinite(elapsed_ms) or elapsed_ms < 0:
        raise ValueError(f"{replans} replans in {elapsed_ms} ms: neither can be")
    spent = weights.replans_weight * _share(replans, weights.max_replans)
    return min(1.0, _reckoned(spent + weights.time_weight * _share(elapsed_ms, weights.time_budget_ms)))


def loss(distance: float, implausibility: float, pressure: float, weights: Weights) -> Loss:
    total = weights.alpha * distance + weights.beta * (1 - pressure) * implausibility + weights.lam * pressure
    return Loss(D=distance, P=implausibility, Omega=pressure, L=total)


def failure_classes(
    outcomes: Iterable[SubTaskOutcome], merged: Iterable[CriterionVerdict] = ()
) -> Iterator[FailureClass]:
    """Of everything that failed."""
    for outcome in outcomes:
        yield from (verdict.failure_class for verdict in outcome.criteria_verdicts if verdict.failure_class)
        if _unexplained(outcome):
            yield FailureClass.ENVIRONMENTAL
    yield from (item.failure_class for item in merged if item.failure_class)


def dominant(classes: Iterable[FailureClass]) -> FailureClass:
    """The class of most of them; a tie is mixed."""
    counted = Counter(classes)
    logical, environmental = counted[FailureClass.LOGICAL], counted[FailureClass.ENVIRONMENTAL]
    if logical == environmental:
        return FailureClass.MIXED
    return FailureClass.LOGICAL if logical > environmental else FailureClass.ENVIRONMENTAL


def _failures(outcome: SubTaskOutcome) -> Iterator[float]:
    attempts = len(outcome.gap_trajectory)
    for verdict in outcome.criteria_verdicts:
        if verdict.failed and (verdict.mode is CriterionMode.VERIFIABLE or not attempts):
            yield 1.0
        elif verdict.failed:
            yield max(1, _times_failed(outcome, verdict.criterion)) / attempts
    if _unexplained(outcome):
        yield 1.0


def _times_failed(outcome: SubTaskOutcome, criterion: str) -> int:
    return sum(any(item.criterion == criterion for item in gap.failed_criteria) for gap in outcome.gap_trajectory)


def _unexplained(outcome: SubTaskOutcome) -> bool:
    """It failed, and by its verdicts it did not."""
    return not outcome.matched and not any(verdict.failed for verdict in outcome.criteria_verdicts)


def _share(used: float, budget: float) -> float:
    return min(1.0, used / budget) if budget else 1.0


def _reckoned(value: float) -> float:
    """As a person reckons it: 0.3 − 0.2 is 0.1, and not a hair less. Else chance decided what lies on a threshold."""
    return round(value, 9)


# Deciding.


@dataclass(frozen=True)
class Reading:
    """Where the loop stands after a round."""

    loss: Loss
    nabla: float
    """By which it is decided."""
    grad_l: float
    """By which L itself has changed."""
    replans: int
    verified: bool = False
    """Everything matched, and the merged result was verified."""
    worsening: int = 0
    """Rounds in a row in which L rose by at least ε."""


@dataclass(frozen=True)
class Row:
    when: str
    """In words, with the figures to be filled in: the rationale."""
    holds: Callable[[Reading, Weights], bool]
    directive: DirectiveName
    blocks: bool = False
    """Whether the tools of what failed may not be used again."""
    hint: bool = False
    """Whether another path is suggested."""


Policy = tuple[Row, ...]


def _flat(it: Reading, w: Weights) -> bool:
    return abs(it.nabla) < w.epsilon


def _flat_l(it: Reading, w: Weights) -> bool:
    return abs(it.grad_l) < w.epsilon


def _out_of_budget(it: Reading, w: Weights) -> bool:
    return it.loss.Omega >= w.abandon or it.replans >= w.max_replans


_ACCEPT: Final = Row(
    "everything that was asked for is there, and verified",
    lambda it, _: it.verified and it.loss.D == 0,
    DirectiveName.ACCEPT,
)
_ABANDON: Final = Row(
    "the budget is spent (Ω={Omega:.2f}, {replans} replans): nothing more is tried",
    _out_of_budget,
    DirectiveName.ABANDON,
)

GRADIENT: Final[Policy] = (
    _ACCEPT,
    _ABANDON,
    Row(
        "nearly there (D={D:.2f}): same approach, tighter",
        lambda it, w: it.loss.D <= w.delta,
        DirectiveName.REFINE,
    ),
    Row(
        "it comes nearer (∇={nabla:+.2f}): on the right track",
        lambda it, w: it.nabla <= -w.epsilon,
        DirectiveName.REFINE,
    ),
    Row(
        "it does not move (∇={nabla:+.2f}, D={D:.2f}), and something is in the way (P={P:.2f}): same approach, another "
        "target or parameters",
        lambda it, w: _flat(it, w) and it.loss.P <= w.rho,
        DirectiveName.CHANGE_PATH,
        hint=True,
    ),
    Row(
        "a local minimum (∇={nabla:+.2f}, D={D:.2f}), and the approach is to blame (P={P:.2f}): none of the tools that "
        "were tried, something new",
        _flat,
        DirectiveName.BREAK_SYMMETRY,
        blocks=True,
    ),
    Row(
        "it gets worse (∇={nabla:+.2f}), and something is in the way (P={P:.2f}): same approach, adjust the path",
        lambda it, w: it.loss.P <= w.rho,
        DirectiveName.REFINE,
        hint=True,
    ),
    Row(
        "it gets worse (∇={nabla:+.2f}), and the approach is to blame (P={P:.2f}): explicitly different tools",
        lambda it, w: True,
        DirectiveName.CHANGE_APPROACH,
        blocks=True,
    ),
)
"""The first match decides; below the fourth row ∇ is flat or rising."""

PATIENT: Final[Policy] = (
    *GRADIENT[:2],
    Row(
        "the first round: there is no direction yet, so same approach, tighter",
        lambda it, _: it.replans == 0,
        DirectiveName.REFINE,
    ),
    *GRADIENT[2:],
)
"""The same, but one round is no plateau: an approach that is right often needs a second one. By simulation it comes
further than the table above (docs/simulation.md), so it is the default."""

GRID: Final[Policy] = (
    _ACCEPT,
    _ABANDON,
    Row(
        "near enough (D={D:.2f}): what there is, is handed over as partial",
        lambda it, w: it.loss.D <= w.delta,
        DirectiveName.ABANDON,
    ),
    Row("two rounds in a row got worse: nothing more is tried", lambda it, _: it.worsening >= 2, DirectiveName.ABANDON),
    Row(
        "the approach is to blame (P={P:.2f}), and L does not move (∇L={grad_l:+.2f})",
        lambda it, w: it.loss.P > w.rho and _flat_l(it, w),
        DirectiveName.BREAK_SYMMETRY,
        blocks=True,
    ),
    Row(
        "the approach is to blame (P={P:.2f}), and L moves (∇L={grad_l:+.2f})",
        lambda it, w: it.loss.P > w.rho,
        DirectiveName.CHANGE_APPROACH,
        blocks=True,
    ),
    Row(
        "something is in the way (P={P:.2f}), and L does not move (∇L={grad_l:+.2f})",
        _flat_l,
        DirectiveName.CHANGE_PATH,
        hint=True,
    ),
    Row("something is in the way (P={P:.2f}), and L moves (∇L={grad_l:+.2f})", lambda *_: True, DirectiveName.REFINE),
)
"""The author's later grid. What it calls a success with D > 0 is never one here: it ends as partial."""

NAIVE: Final[Policy] = (_ACCEPT, _ABANDON, Row("it failed: once more", lambda *_: True, DirectiveName.REFINE))

POLICIES: Final[Mapping[str, Policy]] = MappingProxyType(
    {"patient": PATIENT, "gradient": GRADIENT, "grid": GRID, "naive": NAIVE}
)
DEFAULT_POLICY: Final = PATIENT


def reading(
    outcomes: Sequence[SubTaskOutcome],
    merged: Sequence[CriterionVerdict],
    *,
    replans: int,
    elapsed_ms: float,
    before: Reading | None,
    weights: Weights,
    verified: bool = False,
) -> Reading:
    """Where the loop stands, seen from where it stood a round before."""
    now = loss(
        distance(outcomes, merged),
        implausibility(outcomes, merged),
        pressure(replans, elapsed_ms, weights),
        weights,
    )
    return follow(now, replans=replans, before=before, weights=weights, verified=verified)


def follow(now: Loss, *, replans: int, before: Reading | None, weights: Weights, verified: bool = False) -> Reading:
    grad_l = _reckoned(now.L - before.loss.L) if before else 0.0
    nabla = _reckoned(_potential(now, weights) - _potential(before.loss, weights)) if before else 0.0
    worsening = before.worsening + 1 if before and grad_l >= weights.epsilon else 0
    return Reading(now, nabla, grad_l, replans, verified and now.D == 0, worsening)


def decide(policy: Policy, it: Reading, weights: Weights) -> Row:
    return next(row for row in policy if row.holds(it, weights))


def rationale(row: Row, it: Reading) -> str:
    return row.when.format(**it.loss.model_dump(), nabla=it.nabla, grad_l=it.grad_l, replans=it.replans)


def gradient_of(it: Reading, weights: Weights) -> Gradient:
    if it.nabla <= -weights.epsilon:
        return Gradient.IMPROVING
    if it.nabla >= weights.epsilon:
        return Gradient.WORSENING
    return Gradient.PLATEAU if it.loss.D > weights.delta else Gradient.STABLE


def _potential(of: Loss, weights: Weights) -> float:
    return weights.alpha * of.D + weights.beta * of.P
