"""The decision table of the plan gate, the conditions of directives, the team, the quality score, and option answers.
Pure.

The first row of the table that holds decides. Scores have no part in it. A challenge that was deferred for lack of room
was not discussed: a SIGNIFICANT one allows at best REVISE, and a BLOCKING one counts as open. A plan that nobody has
challenged, because the challenger failed, does not proceed either.

A synthesizer may ask for another look or a higher budget under these conditions:

    | directive | reason | is allowed if |
    |---|---|---|
    | RE-SWEEP | new-blocking-contradicts-context | this iteration has a new BLOCKING challenge and surfaced context |
    | RE-SWEEP | response-changes-scope | the person answered in this iteration |
    | RE-PROBE | new-dependency-chain | an unknown was resolved in this iteration |
    | RE-PROBE | cascade-not-explored | a challenge is UNRESOLVED |

None of them is allowed in the last iteration, or if only MINOR challenges are left.

The quality score is for the reader of the report; it decides nothing.
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
"""From this many SIGNIFICANT challenges on, they are more than a few."""


@dataclass(frozen=True)
class Standing:
    """The open challenges against the plan, counted."""

    blocking_open: int = 0
    blocking_unresolved: int = 0
    significant_open: int = 0
    significant_unresolved: int = 0
    unmitigated: int = 0
    """SIGNIFICANT challenges, open or unresolved, without a mitigation."""
    undiscussed: int = 0
    """SIGNIFICANT challenges for which there was no room."""
    unchallenged: bool = False
    """Agents were asked to challenge the plan, and none did."""
    last: bool = False
    """No iteration follows."""

    @property
    def blocking(self) -> int:
        return self.blocking_open + self.blocking_unresolved

    @property
    def significant(self) -> int:
        return self.significant_open + self.significant_unresolved


@dataclass(frozen=True)
class Row:
    """A row of the decision table."""

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
    """The decision after an iteration."""

    status: ConvergenceStatus
    verdict: PlanVerdict | None
    reason: str
    strong: bool = False

    @property
    def ends(self) -> bool:
        """Whether the loop ends."""
        return self.verdict is not None


def decide(standing: Standing, *, forced: str = "") -> Decision:
    """Decide by the table. `forced` is the reason if the loop must end before it converged; then REVISE is the best
    verdict.
    """
    row = next(row for row in TABLE if row.holds(replace(standing, last=True) if forced else standing))
    decision = Decision(row.status, row.verdict, row.when, row.strong)
    if decision.verdict is PlanVerdict.PROCEED and standing.undiscussed:
        count = standing.undiscussed
        subject = "a SIGNIFICANT challenge was" if count == 1 else f"{count} SIGNIFICANT challenges were"
        decision = replace(decision, verdict=PlanVerdict.REVISE, reason=f"{subject} put off for want of room")
    if decision.verdict is PlanVerdict.PROCEED and standing.unchallenged:
        decision = replace(decision, verdict=PlanVerdict.REVISE, reason="nothing stands, but nobody has challenged it")
    if not forced:
        return decision
    verdict = PlanVerdict.REVISE if decision.verdict is PlanVerdict.PROCEED else decision.verdict
    return replace(
        decision,
        status=ConvergenceStatus.FORCED_EXIT,
        verdict=verdict,
        reason=f"{forced}, so it ends here with what there is; {decision.reason}",
    )


def standing_of(challenges: Iterable[Challenge], *, last: bool) -> Standing:
    """Count the open challenges."""
    all_challenges = tuple(challenges)
    significant = [challenge for challenge in all_challenges if challenge.severity is PlanSeverity.SIGNIFICANT]
    return Standing(
        blocking_open=sum(
            _is_blocking(challenge) and challenge.status is not ChallengeStatus.UNRESOLVED
            for challenge in all_challenges
        ),
        blocking_unresolved=sum(
            _is_blocking(challenge) and challenge.status is ChallengeStatus.UNRESOLVED for challenge in all_challenges
        ),
        significant_open=sum(challenge.status is ChallengeStatus.OPEN for challenge in significant),
        significant_unresolved=sum(challenge.status is ChallengeStatus.UNRESOLVED for challenge in significant),
        unmitigated=sum(challenge.status.is_open and not challenge.mitigation.strip() for challenge in significant),
        undiscussed=sum(challenge.status is ChallengeStatus.DEFERRED_SURFACED for challenge in significant),
        last=last,
    )


def _is_blocking(challenge: Challenge) -> bool:
    undiscussed = challenge.status is ChallengeStatus.DEFERRED_SURFACED
    return challenge.severity is PlanSeverity.BLOCKING and (challenge.status.is_open or undiscussed)


def convergence_of(standing: Standing, status: ConvergenceStatus) -> Convergence:
    """Return the convergence state for the record of an iteration."""
    return Convergence(blocking_open=standing.blocking, significant_open=standing.significant, status=status)


@dataclass(frozen=True)
class Circumstances:
    """The state of the iteration that has just been synthesised."""

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


def why_not(directive: Directive, circumstances: Circumstances) -> str:
    """Explain why a sweep or a probe is not repeated; "" if it is."""
    if circumstances.last:
        return "this is the last iteration"
    if circumstances.only_minor_left:
        return "only MINOR challenges are left"
    condition = CONDITIONS.get((directive.kind, directive.reason)) if directive.reason else None
    if condition is None:
        reasons = ", ".join(reason for kind, reason in CONDITIONS if kind is directive.kind)
        return f"a {directive.kind} is given for {reasons}"
    holds, refusal = condition
    return "" if holds(circumstances) else refusal


def in_words(directive: Directive) -> str:
    """Format a directive for the state of the iteration."""
    if directive.kind is DirectiveKind.RAISE_BUDGET:
        mode = directive.mode.value if directive.mode else "?"
        return f"{directive.kind} {mode} {directive.tool} +{directive.by}: {directive.text}"
    reason = f" ({directive.reason})" if directive.reason else ""
    return f"{directive.kind}{reason}: {directive.text}"


SCALED_AT: Final = 7
"""Points of complexity from which the team is SCALED."""
MANY_UNKNOWNS: Final = 3
"""With more unknowns than this, the team is SCALED."""

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
    """The team that is asked about a plan."""

    mode: TeamMode
    why: str

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the team."""
        return (*(ROLE_OF[origin] for origin in CHALLENGERS[self.mode]), *ALWAYS)


def team_for(quality: PlanQuality, complexity: Complexity, unknowns: int) -> Team:
    """Choose the team: a complex plan needs more agents."""
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
    """Compute the weighted score over the dimensions that were scored; None if none was.

    `audited` are the challenger's scores in the closing audit: they are shown and do not count.
    """
    scores = {score.dimension: score for score in given}
    audited_scores = {score.dimension: score.score for score in audited}
    if not scores:
        return None
    lines = tuple(
        ScoreLine(
            dimension=dimension,
            weight=weight,
            score=scores[dimension].score,
            evidence=scores[dimension].evidence,
            audited=audited_scores.get(dimension),
        )
        for dimension, weight in WEIGHTS.items()
        if dimension in scores
    )
    total = sum(line.weight * line.score for line in lines) / sum(line.weight for line in lines)
    return QualityScore(total=round(total), lines=lines)


_MAX_DIGITS: Final = 3


def chosen(text: str, options: Sequence[str]) -> str | None:
    """Return the option with this number, from 1; None if there is no such option.

    Any other text is the person's own words.
    """
    answer = text.strip()
    if not options or not answer.isdecimal():
        return answer
    number = int(answer) if len(answer) <= _MAX_DIGITS else 0
    return options[number - 1] if 0 < number <= len(options) else None
