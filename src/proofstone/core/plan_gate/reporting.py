"""From where the loop stands, or has ended, to the report. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.contracts.budget import Spent
from proofstone.contracts.plan_gate.record import (
    Challenge,
    ConvergenceStatus,
    Origin,
    PlanQuality,
    TeamMode,
)
from proofstone.contracts.plan_gate.report import Complexity, OpenQuestion, PlanReport, PlanVerdict
from proofstone.core.plan_gate.decision import Decision
from proofstone.core.plan_gate.mitigations import to_take_in, without_mitigation
from proofstone.core.plan_gate.needs import Progress

DEBT: Final = 5
"""So many deferred challenges are a debt that the report warns of."""
_MOST_NAMED: Final = 5


@dataclass(frozen=True)
class About:
    """What is known of a plan and its run before anybody is asked."""

    run_id: str
    plan_path: str
    plan: str
    """Its path from the root of the repository."""
    plan_digest: str
    base_commit: str
    title: str
    quality: PlanQuality
    quality_reason: str
    complexity: Complexity
    team_mode: TeamMode
    trivial: bool
    runnable: bool
    """Whether `proofstone gate` can take it as it is."""
    agents: Mapping[str, str]


def report_of(
    about: About,
    progress: Progress,
    decision: Decision,
    *,
    questions: Sequence[OpenQuestion] = (),
    spent: Spent | None = None,
    dispatches: int = 0,
) -> PlanReport:
    put_off = sum(one.status.is_put_off for one in progress.challenges)
    return PlanReport(
        run_id=about.run_id,
        plan_path=about.plan_path,
        plan=about.plan,
        plan_digest=about.plan_digest,
        base_commit=about.base_commit,
        title=about.title,
        verdict=decision.verdict,
        strong=decision.strong,
        status=decision.status,
        reason=decision.reason,
        plan_quality=about.quality,
        quality_reason=about.quality_reason,
        complexity=about.complexity,
        team_mode=about.team_mode,
        trivial=about.trivial,
        agents=about.agents,
        challenges=progress.challenges,
        lines=progress.lines,
        rules=progress.rules,
        evidence=progress.evidence,
        unknowns=progress.unknowns,
        surfaced=progress.surfaced,
        risks=progress.risks,
        iterations=progress.iterations,
        score=progress.score if decision.ends else None,
        disputes=progress.disputes,
        audit=progress.audit,
        against=progress.against,
        events=progress.events,
        questions=tuple(questions),
        answers=progress.answers,
        debt_warning=put_off >= DEBT,
        next_step=_next_step(about, decision, progress.challenges, questions),
        dispatches=dispatches,
        spent=spent or Spent(),
    )


def _can_be_taken_in(decision: Decision, challenges: Sequence[Challenge]) -> bool:
    converged = decision.status is ConvergenceStatus.CONVERGED
    return converged and bool(to_take_in(challenges)) and not without_mitigation(challenges)


def _next_step(
    about: About, decision: Decision, challenges: Sequence[Challenge], questions: Sequence[OpenQuestion]
) -> str:
    if decision.status is ConvergenceStatus.BLOCKED:
        answers = " ".join(f'--answer "{one.challenge}=…"' for one in questions)
        return f"Answer what is asked: proofstone verify-plan --resume {about.run_id} {answers}"
    match decision.verdict:
        case PlanVerdict.PROCEED if about.runnable and to_take_in(challenges):
            first = f"Let whoever does it know of the mitigations: proofstone verify-plan --take-in {about.run_id}"
            return f"{first}; then have it done: proofstone gate {about.plan_path}"
        case PlanVerdict.PROCEED if about.runnable:
            return f"Have it done: proofstone gate {about.plan_path}"
        case PlanVerdict.PROCEED:
            return "Write it as tasks that can be run and proven: docs/plan.md tells how; then proofstone gate PLAN.md"
        case PlanVerdict.REVISE if _can_be_taken_in(decision, challenges):
            return (
                f"Take the mitigations in: proofstone verify-plan --take-in {about.run_id}; or revise the plan, "
                f"and put it "
                "through the gate again"
            )
    if by_rules := [one for one in without_mitigation(challenges) if one.origin is Origin.RULES]:
        named = ", ".join(one.id for one in by_rules[:_MOST_NAMED])
        more = f" and {len(by_rules) - _MOST_NAMED} more" if len(by_rules) > _MOST_NAMED else ""
        says = "says" if len(by_rules) == 1 else "say"
        return f"Put right in the plan what {named}{more} {says}, and put it through the gate again."
    standing = [one.id for one in without_mitigation(challenges)]
    if decision.status is ConvergenceStatus.FORCED_EXIT and decision.verdict is PlanVerdict.REVISE:
        return "It had to end before it converged: put it through the gate again with agents that answer."
    about_which = f" Nothing answers {', '.join(standing[:_MOST_NAMED])} yet." if standing else ""
    return f"Revise the plan, and put it through the gate again.{about_which}"
