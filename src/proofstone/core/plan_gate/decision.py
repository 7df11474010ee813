"""What follows from what stands open against a plan: a table, and the first row that holds decides.

Scores have no part in it. A challenge that was deferred for want of room was not discussed, so a plan with a
SIGNIFICANT one is at best to be revised, and a BLOCKING one counts as open. Nor does a plan proceed that nobody has
challenged, because the challenger failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from proofstone.contracts.plan_gate.record import (
    Challenge,
    ChallengeStatus,
    Convergence,
    ConvergenceStatus,
    PlanSeverity,
)
from proofstone.contracts.plan_gate.report import PlanVerdict

MANY: Final = 3
"""So many SIGNIFICANT challenges are more than a few."""


@dataclass(frozen=True)
class Standing:
    """What stands against the plan, counted."""

    blocking_open: int = 0
    blocking_unresolved: int = 0
    significant_open: int = 0
    significant_unresolved: int = 0
    unmitigated: int = 0
    """SIGNIFICANT ones, open or unresolved, for which nobody knows a mitigation."""
    undiscussed: int = 0
    """SIGNIFICANT ones for which there was no room."""
    unchallenged: bool = False
    """Somebody was asked to challenge it, and nobody did."""
    last: bool = False
    """No iteration comes after this one."""

    @property
    def blocking(self) -> int:
        return self.blocking_open + self.blocking_unresolved

    @property
    def significant(self) -> int:
        return self.significant_open + self.significant_unresolved


@dataclass(frozen=True)
class Row:
    when: str
    holds: Callable[[Standing], bool]
    status: ConvergenceStatus
    verdict: PlanVerdict | None = None
    strong: bool = False


TABLE: Final[tuple[Row, ...]] = (
    Row(
        "a BLOCKING challenge stands to the end",
        lambda it: it.last and it.blocking > 0,
        ConvergenceStatus.FORCED_EXIT,
        PlanVerdict.RETHINK,
    ),
    Row(
        "a BLOCKING challenge is UNRESOLVED: only the person can settle it",
        lambda it: it.blocking_unresolved > 0,
        ConvergenceStatus.BLOCKED,
    ),
    Row(
        "a BLOCKING or SIGNIFICANT challenge is OPEN, and there is an iteration left",
        lambda it: it.blocking_open + it.significant_open > 0 and not it.last,
        ConvergenceStatus.CONTINUE,
    ),
    Row(
        "nothing BLOCKING or SIGNIFICANT stands",
        lambda it: it.blocking == 0 and it.significant == 0,
        ConvergenceStatus.CONVERGED,
        PlanVerdict.PROCEED,
    ),
    Row(
        "nothing BLOCKING stands, and one or two SIGNIFICANT challenges",
        lambda it: it.blocking == 0 and it.significant < MANY,
        ConvergenceStatus.CONVERGED,
        PlanVerdict.REVISE,
    ),
    Row(
        "three or more SIGNIFICANT challenges stand, each with a mitigation",
        lambda it: it.blocking == 0 and it.unmitigated == 0,
        ConvergenceStatus.CONVERGED,
        PlanVerdict.REVISE,
        strong=True,
    ),
    Row(
        "three or more SIGNIFICANT challenges stand, not all with a mitigation, and there is an iteration left",
        lambda it: it.blocking == 0 and not it.last,
        ConvergenceStatus.CONTINUE,
    ),
    Row(
        "three or more SIGNIFICANT challenges stand to the end, not all with a mitigation",
        lambda it: it.blocking == 0,
        ConvergenceStatus.FORCED_EXIT,
        PlanVerdict.RETHINK,
    ),
)


@dataclass(frozen=True)
class Decision:
    status: ConvergenceStatus
    verdict: PlanVerdict | None
    reason: str
    strong: bool = False

    @property
    def ends(self) -> bool:
        return self.verdict is not None


def decide(standing: Standing, *, forced: str = "") -> Decision:
    """By the table. `forced`: why it has to end here, though it has not converged; then nothing is better than
    REVISE."""
    row = next(row for row in TABLE if row.holds(replace(standing, last=True) if forced else standing))
    decision = Decision(row.status, row.verdict, row.when, row.strong)
    if decision.verdict is PlanVerdict.PROCEED and standing.undiscussed:
        count = standing.undiscussed
        what = "a SIGNIFICANT challenge was" if count == 1 else f"{count} SIGNIFICANT challenges were"
        decision = replace(decision, verdict=PlanVerdict.REVISE, reason=f"{what} put off for want of room")
    if decision.verdict is PlanVerdict.PROCEED and standing.unchallenged:
        decision = replace(decision, verdict=PlanVerdict.REVISE, reason="nothing stands, but nobody has challenged it")
    if not forced:
        return decision
    at_best = PlanVerdict.REVISE if decision.verdict is PlanVerdict.PROCEED else decision.verdict
    return replace(
        decision,
        status=ConvergenceStatus.FORCED_EXIT,
        verdict=at_best,
        reason=f"{forced}, so it ends here with what there is; {decision.reason}",
    )


def standing_of(challenges: Iterable[Challenge], *, last: bool) -> Standing:
    all_of_them = tuple(challenges)
    significant = [one for one in all_of_them if one.severity is PlanSeverity.SIGNIFICANT]
    return Standing(
        blocking_open=sum(_blocks(one) and one.status is not ChallengeStatus.UNRESOLVED for one in all_of_them),
        blocking_unresolved=sum(_blocks(one) and one.status is ChallengeStatus.UNRESOLVED for one in all_of_them),
        significant_open=sum(one.status is ChallengeStatus.OPEN for one in significant),
        significant_unresolved=sum(one.status is ChallengeStatus.UNRESOLVED for one in significant),
        unmitigated=sum(one.status.is_open and not one.mitigation.strip() for one in significant),
        undiscussed=sum(one.status is ChallengeStatus.DEFERRED_SURFACED for one in significant),
        last=last,
    )


def _blocks(challenge: Challenge) -> bool:
    undiscussed = challenge.status is ChallengeStatus.DEFERRED_SURFACED
    return challenge.severity is PlanSeverity.BLOCKING and (challenge.status.is_open or undiscussed)


def convergence_of(standing: Standing, status: ConvergenceStatus) -> Convergence:
    return Convergence(blocking_open=standing.blocking, significant_open=standing.significant, status=status)
