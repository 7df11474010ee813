"""What follows from what stands open against a plan: a table, and the first row that holds decides.

Scores have no part in it. A challenge that was deferred for want of room was not discussed, so a plan with a
SIGNIFICANT one is at best to be revised, and a BLOCKING one counts as open. Nor does a plan proceed that nobody has
challenged, because the challenger failed.

When a synthesizer may have something looked at again, or a budget raised. What it asks for is not always granted.

| directive | reason | may be given when |
|---|---|---|
| RE-SWEEP | new-blocking-contradicts-context | a BLOCKING challenge came in this iteration, and context was surfaced |
| RE-SWEEP | response-changes-scope | the person answered in this iteration |
| RE-PROBE | new-dependency-chain | an unknown was resolved in this iteration |
| RE-PROBE | cascade-not-explored | a challenge is UNRESOLVED |

None of them in the last iteration, nor when nothing but MINOR challenges is left.

Who is asked about a plan: a trivial one needs nobody, a complex one needs more eyes.

The quality score. It is for the reader of the report; nothing is decided by it.

What an answer to a question with options means. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from proofstone.agents.roles.models.plan_gate import (
    Dimension,
    DimensionScore,
    Directive,
    DirectiveKind,
    DirectiveReason,
)
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeStatus,
    Convergence,
    ConvergenceStatus,
    Origin,
    PlanQuality,
    PlanSeverity,
    TeamMode,
)
from proofstone.plan_gate.models import Complexity, PlanVerdict, QualityScore, ScoreLine

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
    significant = [item for item in all_of_them if item.severity is PlanSeverity.SIGNIFICANT]
    return Standing(
        blocking_open=sum(_blocks(item) and item.status is not ChallengeStatus.UNRESOLVED for item in all_of_them),
        blocking_unresolved=sum(_blocks(item) and item.status is ChallengeStatus.UNRESOLVED for item in all_of_them),
        significant_open=sum(item.status is ChallengeStatus.OPEN for item in significant),
        significant_unresolved=sum(item.status is ChallengeStatus.UNRESOLVED for item in significant),
        unmitigated=sum(item.status.is_open and not item.mitigation.strip() for item in significant),
        undiscussed=sum(item.status is ChallengeStatus.DEFERRED_SURFACED for item in significant),
        last=last,
    )


def _blocks(challenge: Challenge) -> bool:
    undiscussed = challenge.status is ChallengeStatus.DEFERRED_SURFACED
    return challenge.severity is PlanSeverity.BLOCKING and (challenge.status.is_open or undiscussed)


def convergence_of(standing: Standing, status: ConvergenceStatus) -> Convergence:
    return Convergence(blocking_open=standing.blocking, significant_open=standing.significant, status=status)


@dataclass(frozen=True)
class Circumstances:
    """Of the iteration that has just been synthesised."""

    last: bool
    only_minor_left: bool
    new_blocking: bool
    surfaced: bool
    answered: bool
    resolved_unknown: bool
    unresolved: bool


CONDITIONS: Final[dict[tuple[DirectiveKind, DirectiveReason], tuple[Callable[[Circumstances], bool], str]]] = {
    (DirectiveKind.RE_SWEEP, DirectiveReason.NEW_BLOCKING_CONTRADICTS_CONTEXT): (
        lambda it: it.new_blocking and it.surfaced,
        "no BLOCKING challenge came in that could contradict what was surfaced",
    ),
    (DirectiveKind.RE_SWEEP, DirectiveReason.RESPONSE_CHANGES_SCOPE): (
        lambda it: it.answered,
        "the person has answered nothing in this iteration",
    ),
    (DirectiveKind.RE_PROBE, DirectiveReason.NEW_DEPENDENCY_CHAIN): (
        lambda it: it.resolved_unknown,
        "no unknown was resolved in this iteration",
    ),
    (DirectiveKind.RE_PROBE, DirectiveReason.CASCADE_NOT_EXPLORED): (
        lambda it: it.unresolved,
        "no challenge is UNRESOLVED",
    ),
}


def why_not(directive: Directive, it: Circumstances) -> str:
    """Why a sweep or a probe is not done again; empty if it is."""
    if it.last:
        return "no iteration comes after this one"
    if it.only_minor_left:
        return "nothing but MINOR challenges is left"
    condition = CONDITIONS.get((directive.kind, directive.reason)) if directive.reason else None
    if condition is None:
        reasons = ", ".join(reason for kind, reason in CONDITIONS if kind is directive.kind)
        return f"a {directive.kind} is given for {reasons}"
    holds, otherwise = condition
    return "" if holds(it) else otherwise


def in_words(directive: Directive) -> str:
    """As it stands in the state of the iteration."""
    if directive.kind is DirectiveKind.RAISE_BUDGET:
        mode = directive.mode.value if directive.mode else "?"
        return f"{directive.kind} {mode} {directive.tool} +{directive.by}: {directive.text}"
    reason = f" ({directive.reason})" if directive.reason else ""
    return f"{directive.kind}{reason}: {directive.text}"


SCALED_AT: Final = 7
"""Points of complexity."""
MANY_UNKNOWNS: Final = 3
"""More than these."""

CHALLENGERS: Final = {
    TeamMode.BASE: (Origin.CHALLENGER,),
    TeamMode.SCALED: (Origin.CHALLENGER, Origin.DOMAIN_EXPERT, Origin.DEVILS_ADVOCATE),
}
ROLE_OF: Final = {
    Origin.CHALLENGER: "challenger",
    Origin.DOMAIN_EXPERT: "domain_expert",
    Origin.DEVILS_ADVOCATE: "devils_advocate",
}
ALWAYS: Final = ("researcher", "synthesizer")


@dataclass(frozen=True)
class Team:
    mode: TeamMode
    why: str

    @property
    def roles(self) -> tuple[str, ...]:
        return (*(ROLE_OF[origin] for origin in CHALLENGERS[self.mode]), *ALWAYS)


def team_for(quality: PlanQuality, complexity: Complexity, unknowns: int) -> Team:
    if quality is PlanQuality.THIN:
        return Team(TeamMode.BASE, "the plan is THIN: there is too little of it for more eyes")
    if complexity.total >= SCALED_AT:
        return Team(TeamMode.SCALED, f"complexity {complexity.total} is {SCALED_AT} or more")
    if unknowns > MANY_UNKNOWNS:
        return Team(TeamMode.SCALED, f"{unknowns} things are marked as unknown")
    return Team(TeamMode.BASE, f"complexity {complexity.total} is below {SCALED_AT}")


WEIGHTS: Final = {
    Dimension.APPROACH: 0.25,
    Dimension.RISK: 0.20,
    Dimension.ASSUMPTIONS: 0.15,
    Dimension.INTEGRATION: 0.15,
    Dimension.UNKNOWNS: 0.15,
    Dimension.CONSTRAINTS: 0.10,
}


def scored(given: Iterable[DimensionScore], audited: Iterable[DimensionScore] = ()) -> QualityScore | None:
    """Over the dimensions that were scored, each by its weight among them; None if none was. `audited` is what the
    challenger gives at the close: it is shown, and does not count."""
    scores = {item.dimension: item for item in given}
    second = {item.dimension: item.score for item in audited}
    if not scores:
        return None
    lines = tuple(
        ScoreLine(
            dimension=dimension,
            weight=weight,
            score=scores[dimension].score,
            evidence=scores[dimension].evidence,
            audited=second.get(dimension),
        )
        for dimension, weight in WEIGHTS.items()
        if dimension in scores
    )
    weighed = sum(line.weight * line.score for line in lines) / sum(line.weight for line in lines)
    return QualityScore(total=round(weighed), lines=lines)


_MOST_DIGITS: Final = 3


def chosen(text: str, options: Sequence[str]) -> str | None:
    """The option that is named by its number, from 1; None: there is none of that number. Anything else is the person's
    own words."""
    said = text.strip()
    if not options or not said.isdecimal():
        return said
    number = int(said) if len(said) <= _MOST_DIGITS else 0
    return options[number - 1] if 0 < number <= len(options) else None
