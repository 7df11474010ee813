"""The decision table of the plan gate, the conditions of directives, the team, the quality score, and option answers.
Pure.

The first row of the table that holds decides. Scores have no part in it. A challenge that was deferred for lack of room
was not discussed: a SIGNIFICANT one allows at best REVISE, and a BLOCKING one counts as open. A plan that nobody has
challenged, because the challenger failed, does not proceed either.

A synthesizer may ask for another look or a higher budget under these conditions:

    | directive | reason | is allowed if |
    |---|---|---|
    | RE-SWEEP | new-blocking-contradicts-context | it names a new BLOCKING challenge, and the context against it |
    | RE-SWEEP | response-changes-scope | the person answered in this iteration |
    | RE-PROBE | new-dependency-chain | an unknown was resolved in this iteration |
    | RE-PROBE | cascade-not-explored | a challenge is UNRESOLVED |

None of them is allowed in the last iteration; but for an answer that changes the scope, none if only MINOR challenges
are left.

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
    ChallengeOrigin,
    ChallengeStatus,
    Convergence,
    ConvergenceStatus,
    PlanQuality,
    PlanSeverity,
    SurfacedContext,
    SurfacedImpact,
    TeamMode,
)
from proofstone.plan_gate.models import Complexity, PlanVerdict, QualityScore, ScoreLine

MANY_SIGNIFICANT: Final = 3
"""From this many SIGNIFICANT challenges on, they are more than a few."""


@dataclass(frozen=True)
class OpenChallengeCounts:
    """The open challenges against the plan, counted."""

    blocking_open: int = 0
    blocking_unresolved: int = 0
    significant_open: int = 0
    significant_unresolved: int = 0
    unmitigated: int = 0
    """SIGNIFICANT challenges, open or unresolved, without a mitigation."""
    undiscussed: int = 0
    """SIGNIFICANT challenges for which there was no room."""
    is_unchallenged: bool = False
    """Agents were asked to challenge the plan, and none did."""
    is_sweep_due: bool = False
    """An answer of the person changed the scope, and what it touches is to be looked at again."""
    is_last: bool = False
    """No iteration follows."""

    @property
    def blocking(self) -> int:
        return self.blocking_open + self.blocking_unresolved

    @property
    def significant(self) -> int:
        return self.significant_open + self.significant_unresolved


@dataclass(frozen=True)
class DecisionRow:
    """A row of the decision table."""

    when: str
    holds: Callable[[OpenChallengeCounts], bool]
    status: ConvergenceStatus
    verdict: PlanVerdict | None = None
    is_strong: bool = False


DECISION_TABLE: Final[tuple[DecisionRow, ...]] = (
    DecisionRow(
        "a BLOCKING challenge stands to the end",
        lambda it: it.is_last and it.blocking > 0,
        ConvergenceStatus.FORCED_EXIT,
        PlanVerdict.RETHINK,
    ),
    DecisionRow(
        "a BLOCKING challenge is UNRESOLVED: only the person can settle it",
        lambda it: it.blocking_unresolved > 0,
        ConvergenceStatus.BLOCKED,
    ),
    DecisionRow(
        "a BLOCKING or SIGNIFICANT challenge is OPEN, and there is an iteration left",
        lambda it: it.blocking_open + it.significant_open > 0 and not it.is_last,
        ConvergenceStatus.CONTINUE,
    ),
    DecisionRow(
        "an answer changed the scope, a sweep is directed, and there is an iteration left",
        lambda it: it.is_sweep_due and not it.is_last,
        ConvergenceStatus.CONTINUE,
    ),
    DecisionRow(
        "nothing BLOCKING or SIGNIFICANT stands",
        lambda it: it.blocking == 0 and it.significant == 0,
        ConvergenceStatus.CONVERGED,
        PlanVerdict.PROCEED,
    ),
    DecisionRow(
        "nothing BLOCKING stands, and one or two SIGNIFICANT challenges",
        lambda it: it.blocking == 0 and it.significant < MANY_SIGNIFICANT,
        ConvergenceStatus.CONVERGED,
        PlanVerdict.REVISE,
    ),
    DecisionRow(
        "three or more SIGNIFICANT challenges stand, each with a mitigation",
        lambda it: it.blocking == 0 and it.unmitigated == 0,
        ConvergenceStatus.CONVERGED,
        PlanVerdict.REVISE,
        is_strong=True,
    ),
    DecisionRow(
        "three or more SIGNIFICANT challenges stand, not all with a mitigation, and there is an iteration left",
        lambda it: it.blocking == 0 and not it.is_last,
        ConvergenceStatus.CONTINUE,
    ),
    DecisionRow(
        "three or more SIGNIFICANT challenges stand to the end, not all with a mitigation",
        lambda it: it.blocking == 0,
        ConvergenceStatus.FORCED_EXIT,
        PlanVerdict.RETHINK,
    ),
)


@dataclass(frozen=True)
class PlanDecision:
    """The decision after an iteration."""

    status: ConvergenceStatus
    verdict: PlanVerdict | None
    reason: str
    is_strong: bool = False

    @property
    def is_final(self) -> bool:
        """Whether the loop ends."""
        return self.verdict is not None


def decide_plan(standing: OpenChallengeCounts, *, forced: str = "") -> PlanDecision:
    """Decide by the table. `forced` is the reason if the loop must end before it converged; then REVISE is the best
    verdict.
    """
    row = next(row for row in DECISION_TABLE if row.holds(replace(standing, is_last=True) if forced else standing))
    decision = PlanDecision(row.status, row.verdict, row.when, row.is_strong)
    if decision.verdict is PlanVerdict.PROCEED and standing.undiscussed:
        count = standing.undiscussed
        subject = "a SIGNIFICANT challenge was" if count == 1 else f"{count} SIGNIFICANT challenges were"
        decision = replace(decision, verdict=PlanVerdict.REVISE, reason=f"{subject} put off for want of room")
    if decision.verdict is PlanVerdict.PROCEED and standing.is_unchallenged:
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


def count_open_challenges(challenges: Iterable[Challenge], *, last: bool) -> OpenChallengeCounts:
    """Count the open challenges."""
    all_challenges = tuple(challenges)
    significant = [challenge for challenge in all_challenges if challenge.severity is PlanSeverity.SIGNIFICANT]
    return OpenChallengeCounts(
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
        is_last=last,
    )


def _is_blocking(challenge: Challenge) -> bool:
    undiscussed = challenge.status is ChallengeStatus.DEFERRED_SURFACED
    return challenge.severity is PlanSeverity.BLOCKING and (challenge.status.is_open or undiscussed)


def build_convergence(standing: OpenChallengeCounts, status: ConvergenceStatus) -> Convergence:
    """Return the convergence state for the record of an iteration."""
    return Convergence(blocking_open=standing.blocking, significant_open=standing.significant, status=status)


@dataclass(frozen=True)
class DirectiveContext:
    """The state of the iteration that has just been synthesised."""

    is_last: bool
    has_only_minor: bool
    contradictions: frozenset[tuple[str, str]]
    """New BLOCKING challenges, each with a surfaced context that it may contradict."""
    has_answer: bool
    has_resolved_unknown: bool
    has_unresolved: bool


DIRECTIVE_CONDITIONS: Final[
    dict[tuple[DirectiveKind, DirectiveReason], tuple[Callable[[DirectiveContext, Directive], bool], str]]
] = {
    (DirectiveKind.RE_SWEEP, DirectiveReason.NEW_BLOCKING_CONTRADICTS_CONTEXT): (
        lambda it, directive: (directive.challenge, directive.contradicts) in it.contradictions,
        "it names no BLOCKING challenge that came in now, and no surfaced context that this one contradicts",
    ),
    (DirectiveKind.RE_SWEEP, DirectiveReason.RESPONSE_CHANGES_SCOPE): (
        lambda it, _: it.has_answer,
        "the person has answered nothing in this iteration",
    ),
    (DirectiveKind.RE_PROBE, DirectiveReason.NEW_DEPENDENCY_CHAIN): (
        lambda it, _: it.has_resolved_unknown,
        "no unknown was resolved in this iteration",
    ),
    (DirectiveKind.RE_PROBE, DirectiveReason.CASCADE_NOT_EXPLORED): (
        lambda it, _: it.has_unresolved,
        "no challenge is UNRESOLVED",
    ),
}


def explain_refused_directive(directive: Directive, circumstances: DirectiveContext) -> str:
    """Explain why a sweep or a probe is not repeated; "" if it is."""
    if circumstances.is_last:
        return "this is the last iteration"
    if circumstances.has_only_minor and directive.reason is not DirectiveReason.RESPONSE_CHANGES_SCOPE:
        return "only MINOR challenges are left"
    condition = DIRECTIVE_CONDITIONS.get((directive.kind, directive.reason)) if directive.reason else None
    if condition is None:
        reasons = ", ".join(reason for kind, reason in DIRECTIVE_CONDITIONS if kind is directive.kind)
        return f"a {directive.kind} is given for {reasons}"
    holds, refusal = condition
    return "" if holds(circumstances, directive) else refusal


def find_contradictions(
    challenges: Iterable[Challenge], surfaced: Sequence[SurfacedContext]
) -> frozenset[tuple[str, str]]:
    """Return the BLOCKING challenges, each with a surfaced context that it may contradict: one that it did not come
    from, and that does not speak against the plan itself.
    """
    return frozenset(
        (challenge.id, context.id)
        for challenge in challenges
        if challenge.severity is PlanSeverity.BLOCKING
        for context in surfaced
        if context.generates_challenge != challenge.id and context.impact is not SurfacedImpact.CONTRADICTS_PLAN
    )


def describe_directive(directive: Directive) -> str:
    """Format a directive for the state of the iteration."""
    if directive.kind is DirectiveKind.RAISE_BUDGET:
        mode = directive.mode.value if directive.mode else "?"
        return f"{directive.kind} {mode} {directive.tool} +{directive.by}: {directive.text}"
    reason = f" ({directive.reason})" if directive.reason else ""
    return f"{directive.kind}{reason}: {directive.text}"


SCALED_COMPLEXITY: Final = 7
"""Points of complexity from which the team is SCALED."""
MANY_UNKNOWNS: Final = 3
"""With more unknowns than this, the team is SCALED."""

CHALLENGERS: Final = {
    TeamMode.BASE: (ChallengeOrigin.CHALLENGER,),
    TeamMode.SCALED: (ChallengeOrigin.CHALLENGER, ChallengeOrigin.DOMAIN_EXPERT, ChallengeOrigin.DEVILS_ADVOCATE),
}
ROLES_BY_ORIGIN: Final = {
    ChallengeOrigin.CHALLENGER: "challenger",
    ChallengeOrigin.DOMAIN_EXPERT: "domain_expert",
    ChallengeOrigin.DEVILS_ADVOCATE: "devils_advocate",
}
COMMON_ROLES: Final = ("researcher", "synthesizer")


@dataclass(frozen=True)
class PlanTeam:
    """The team that is asked about a plan."""

    mode: TeamMode
    reason: str

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the team."""
        return (*(ROLES_BY_ORIGIN[origin] for origin in CHALLENGERS[self.mode]), *COMMON_ROLES)


def choose_team(quality: PlanQuality, complexity: Complexity, unknowns: int) -> PlanTeam:
    """Choose the team: a complex plan needs more agents."""
    if quality is PlanQuality.THIN:
        return PlanTeam(TeamMode.BASE, "the plan is THIN: there is too little of it for more eyes")
    if complexity.total >= SCALED_COMPLEXITY:
        return PlanTeam(TeamMode.SCALED, f"complexity {complexity.total} is {SCALED_COMPLEXITY} or more")
    if unknowns > MANY_UNKNOWNS:
        return PlanTeam(TeamMode.SCALED, f"{unknowns} things are marked as unknown")
    return PlanTeam(TeamMode.BASE, f"complexity {complexity.total} is below {SCALED_COMPLEXITY}")


WEIGHTS: Final = {
    Dimension.APPROACH: 0.25,
    Dimension.RISK: 0.20,
    Dimension.ASSUMPTIONS: 0.15,
    Dimension.INTEGRATION: 0.15,
    Dimension.UNKNOWNS: 0.15,
    Dimension.CONSTRAINTS: 0.10,
}


def compute_score(given: Iterable[DimensionScore], audited: Iterable[DimensionScore] = ()) -> QualityScore | None:
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


def parse_option(text: str, options: Sequence[str]) -> str | None:
    """Return the option with this number, from 1; None if there is no such option.

    Any other text is the person's own words.
    """
    answer = text.strip()
    if not options or not answer.isdecimal():
        return answer
    number = int(answer) if len(answer) <= _MAX_DIGITS else 0
    return options[number - 1] if 0 < number <= len(options) else None
