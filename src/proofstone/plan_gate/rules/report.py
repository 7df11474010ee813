"""Build the report of the plan gate, and its page: the verdict first, then what to do, then the evidence. Pure.

Text of agents is data: whatever it contains, it stays a line of text or a cell of a table. Empty sections are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeOrigin,
    ChallengeStatus,
    ConvergenceStatus,
    IterationState,
    PlanQuality,
    PlanSeverity,
    TeamMode,
)
from proofstone.agents.rules.budget import summarize_spending
from proofstone.common.models import Allowance, BudgetUsage
from proofstone.common.text import pluralize
from proofstone.documents.markdown import code_span, escape_markdown
from proofstone.plan_gate.models import Complexity, OpenQuestion, PlanReport, PlanVerdict, ScoreLine
from proofstone.plan_gate.rules.admission import select_mitigations, select_unmitigated
from proofstone.plan_gate.rules.decision import PlanDecision
from proofstone.plan_gate.rules.effects import PlanProgress
from proofstone.plan_gate.rules.research import describe_claim

DEBT_LIMIT: Final = 5
"""From this many deferred challenges on, the report warns of technical debt."""
_MAX_NAMED: Final = 5


@dataclass(frozen=True)
class PlanRunInfo:
    """What is known about a plan and its run before any agent is asked."""

    run_id: str
    plan_path: str
    plan: str
    """The path from the root of the repository."""
    plan_digest: str
    base_commit: str
    title: str
    quality: PlanQuality
    quality_reason: str
    complexity: Complexity
    team_mode: TeamMode
    is_trivial: bool
    is_runnable: bool
    """Whether `proofstone gate` can run the plan as it is."""
    agents: Mapping[str, str]


def build_plan_report(
    about: PlanRunInfo,
    progress: PlanProgress,
    decision: PlanDecision,
    *,
    questions: Sequence[OpenQuestion] = (),
    spent: BudgetUsage | None = None,
    dispatches: int = 0,
) -> PlanReport:
    """Build the report of a run."""
    deferred = sum(challenge.status.is_postponed for challenge in progress.challenges)
    return PlanReport(
        run_id=about.run_id,
        plan_path=about.plan_path,
        plan=about.plan,
        plan_digest=about.plan_digest,
        base_commit=about.base_commit,
        title=about.title,
        verdict=decision.verdict,
        strong=decision.is_strong,
        status=decision.status,
        reason=decision.reason,
        plan_quality=about.quality,
        quality_reason=about.quality_reason,
        complexity=about.complexity,
        team_mode=about.team_mode,
        trivial=about.is_trivial,
        agents=about.agents,
        challenges=progress.challenges,
        lines=progress.lines,
        rules=progress.rules,
        evidence=progress.evidence,
        unknowns=progress.unknowns,
        surfaced=progress.surfaced,
        risks=progress.risks,
        iterations=progress.iterations,
        score=progress.score if decision.is_final else None,
        disputes=progress.disputes,
        audit=progress.audit,
        against=progress.against,
        events=progress.events,
        questions=tuple(questions),
        answers=progress.answers,
        debt_warning=deferred >= DEBT_LIMIT,
        next_step=_describe_next_step(about, decision, progress.challenges, questions),
        dispatches=dispatches,
        spent=spent or BudgetUsage(),
    )


def _can_apply_mitigations(decision: PlanDecision, challenges: Sequence[Challenge]) -> bool:
    converged = decision.status is ConvergenceStatus.CONVERGED
    return converged and bool(select_mitigations(challenges)) and not select_unmitigated(challenges)


def _describe_next_step(
    about: PlanRunInfo, decision: PlanDecision, challenges: Sequence[Challenge], questions: Sequence[OpenQuestion]
) -> str:
    if decision.status is ConvergenceStatus.BLOCKED:
        answers = " ".join(f'--answer "{question.challenge}=…"' for question in questions)
        return f"Answer what is asked: proofstone verify-plan --resume {about.run_id} {answers}"
    match decision.verdict:
        case PlanVerdict.PROCEED if about.is_runnable and select_mitigations(challenges):
            applying = f"proofstone verify-plan --apply-mitigations {about.run_id}"
            first = f"Let whoever does it know of the mitigations: {applying}"
            return f"{first}; then have it done: proofstone gate {about.plan_path}"
        case PlanVerdict.PROCEED if about.is_runnable:
            return f"Have it done: proofstone gate {about.plan_path}"
        case PlanVerdict.PROCEED:
            return (
                "Write it as tasks that can be run and proven, see `proofstone manual plan`; "
                "then proofstone gate PLAN.md"
            )
        case PlanVerdict.REVISE if _can_apply_mitigations(decision, challenges):
            return (
                f"Take the mitigations in: proofstone verify-plan --apply-mitigations {about.run_id}; "
                "or revise the plan, and put it through the gate again"
            )
    if rule_challenges := [
        challenge for challenge in select_unmitigated(challenges) if challenge.origin is ChallengeOrigin.RULES
    ]:
        ids = ", ".join(rule.id for rule in rule_challenges[:_MAX_NAMED])
        more = f" and {len(rule_challenges) - _MAX_NAMED} more" if len(rule_challenges) > _MAX_NAMED else ""
        verb = "says" if len(rule_challenges) == 1 else "say"
        return f"Put right in the plan what {ids}{more} {verb}, and put it through the gate again."
    open_ids = [challenge.id for challenge in select_unmitigated(challenges)]
    if decision.status is ConvergenceStatus.FORCED_EXIT and decision.verdict is PlanVerdict.REVISE:
        return "It had to end before it converged: put it through the gate again with agents that answer."
    unanswered = f" Nothing answers {', '.join(open_ids[:_MAX_NAMED])} yet." if open_ids else ""
    return f"Revise the plan, and put it through the gate again.{unanswered}"


STRONG_RECOMMENDATION: Final = "Strongly recommended: address these before proceeding"
QUESTION_WAITING: Final = "A QUESTION IS WAITING"
_MAX_COMPLEXITY: Final = 16


def render_report(report: PlanReport) -> str:
    """Format the report as a Markdown page."""
    parts = [f"# Plan gate: {escape_markdown(report.title or report.plan_path)}", *_format_verdict(report)]
    for title, section in _SECTIONS:
        if body := "\n".join(section(report)):
            parts += [f"## {title}", body]
    return "\n\n".join(parts) + "\n"


def format_headline(report: PlanReport) -> str:
    """Return the verdict in a word or two."""
    if report.verdict is None:
        return QUESTION_WAITING
    qualifiers = [word for word, is_so in (("strong", report.strong), ("rules alone", not report.agents)) if is_so]
    return f"{report.verdict} ({', '.join(qualifiers)})" if qualifiers else report.verdict.value


def format_answer_command(report: PlanReport, challenge: str) -> str:
    """Return the command with which a person answers."""
    return f'proofstone verify-plan --resume {report.run_id} --answer "{challenge}=…"'


def list_open_challenges(report: PlanReport) -> tuple[Challenge, ...]:
    """Return the open challenges, most severe first.

    Challenges that were deferred for lack of room are included, unless they are MINOR.
    """
    challenges = (
        challenge for challenge in report.challenges if challenge.status.is_open or _is_undiscussed(challenge)
    )
    return tuple(sorted(challenges, key=rank_by_severity))


def rank_by_severity(challenge: Challenge) -> tuple[int, int]:
    """Sort key: most severe first, then in the order in which the challenges were raised."""
    return challenge.severity.rank, int(challenge.id[1:])


def describe_mitigation(challenge: Challenge) -> str:
    """Describe what answers the challenge: a mitigation for the plan or, for a rule, an edit of its text."""
    label = "put right" if challenge.origin is ChallengeOrigin.RULES else "mitigation"
    text = challenge.mitigation.strip() or f"none was named; the alternative: {challenge.alternative}"
    return f"{label}: {text}"


def strip_claim_line(report: PlanReport, challenge: Challenge) -> str:
    """Return the claim without its line number, which is shown next to it."""
    line = report.lines.get(challenge.id)
    return challenge.claim if line is None else challenge.claim.removeprefix(f"line {line}: ")


def _is_undiscussed(challenge: Challenge) -> bool:
    put_off = challenge.status is ChallengeStatus.DEFERRED_SURFACED
    return put_off and challenge.severity is not PlanSeverity.MINOR


def _format_verdict(report: PlanReport) -> Iterator[str]:
    yield f"**{format_headline(report)}**: {escape_markdown(report.reason.rstrip('.'))}."
    if report.strong:
        yield f"**{STRONG_RECOMMENDATION}.**"
    if report.next_step:
        yield f"Next: {escape_markdown(report.next_step)}"


def _format_questions(report: PlanReport) -> Iterator[str]:
    for question in report.questions:
        yield f"- **{escape_markdown(question.challenge)}**: {escape_markdown(question.question)}"
        yield from [f"  - why: {escape_markdown(question.why)}"] if question.why else []
        yield from (
            f"  - option {number}: {escape_markdown(option)}" for number, option in enumerate(question.options, start=1)
        )
        yield f"  - answer with {code_span(format_answer_command(report, question.challenge))}"


def _format_mitigations(report: PlanReport) -> Iterator[str]:
    """Yield the mitigations of open challenges, and of those that they settled."""
    if report.verdict not in (PlanVerdict.REVISE, PlanVerdict.PROCEED):
        return
    for challenge in sorted(select_mitigations(report.challenges), key=rank_by_severity):
        status = f"{challenge.severity}, {challenge.status}"
        yield f"- **{_format_id(report, challenge)}**, {status}: {escape_markdown(challenge.claim)}"
        yield f"  - {escape_markdown(describe_mitigation(challenge))}"


def _format_challenges(report: PlanReport) -> Iterator[str]:
    return _format_table(
        ("id", "challenge", "origin", "severity", "status", "evidence"),
        (
            (
                _format_id(report, challenge),
                strip_claim_line(report, challenge),
                challenge.origin,
                challenge.severity,
                challenge.status,
                _describe_settlement(report, challenge),
            )
            for challenge in report.challenges
        ),
    )


def _describe_settlement(report: PlanReport, challenge: Challenge) -> str:
    is_settled = challenge.mitigation and challenge.status is ChallengeStatus.RESOLVED
    mitigation_text = f"mitigation: {challenge.mitigation}" if is_settled else ""
    return "; ".join(filter(None, (report.evidence.get(challenge.id), challenge.resolution, mitigation_text)))


def _format_standing(report: PlanReport) -> Iterator[str]:
    """Yield each open challenge in full. Mitigations that will be added have their own section."""
    listed_ids = (
        {mitigated.id for mitigated in select_mitigations(report.challenges)}
        if report.verdict is PlanVerdict.REVISE
        else set()
    )
    for challenge in list_open_challenges(report):
        status = f"{challenge.severity}, {challenge.status}"
        yield f"- **{_format_id(report, challenge)}**, {status}: {escape_markdown(strip_claim_line(report, challenge))}"
        yield f"  - concern, confidence {challenge.confidence}: {escape_markdown(challenge.concern)}"
        yield f"  - what happens: {escape_markdown(challenge.failure_scenario)}"
        yield f"  - instead: {escape_markdown(challenge.alternative)}"
        if challenge.mitigation and challenge.id not in listed_ids:
            yield f"  - {escape_markdown(describe_mitigation(challenge))}"


def _format_debt(report: PlanReport) -> Iterator[str]:
    if not report.debt_warning:
        return
    deferred = [challenge for challenge in report.challenges if challenge.status.is_postponed]
    yield f"{pluralize(len(deferred), 'challenge')} deferred. None of it is done when the plan is."
    yield ""
    for challenge in sorted(deferred, key=rank_by_severity):
        status = f"{challenge.severity}, {challenge.status}"
        yield f"- **{_format_id(report, challenge)}**, {status}: {escape_markdown(challenge.claim)}"


def _format_score(report: PlanReport) -> Iterator[str]:
    if report.score is None:
        return
    yield f"{report.score.total} of 10. It decides nothing."
    yield ""
    yield from _format_table(
        ("dimension", "weight", "score", "evidence"),
        ((line.dimension, f"{line.weight:.2f}", _format_scores(line), line.evidence) for line in report.score.lines),
    )


def _format_scores(line: ScoreLine) -> str:
    return f"{line.score}; the challenger gives {line.audited}" if line.is_disputed else str(line.score)


def _format_disputes(report: PlanReport) -> Iterator[str]:
    return (f"- in dispute: {escape_markdown(text)}" for text in report.disputes)


def _format_audit(report: PlanReport) -> Iterator[str]:
    if report.audit:
        yield f"The challenger says: {escape_markdown(report.audit)}"


def _format_surfaced(report: PlanReport) -> Iterator[str]:
    return _format_table(
        ("id", "source", "location", "relevance", "impact", "challenge"),
        (
            (
                context.id,
                context.source,
                context.location,
                context.relevance,
                context.impact,
                context.generates_challenge or "",
            )
            for context in report.surfaced
        ),
    )


def _format_risks(report: PlanReport) -> Iterator[str]:
    return _format_table(
        ("id", "risk", "trigger", "cascade", "probability", "severity", "challenge"),
        (
            (
                risk.id,
                risk.risk,
                risk.trigger,
                risk.cascade,
                risk.probability,
                risk.severity,
                risk.generates_challenge or "",
            )
            for risk in report.risks
        ),
    )


def _format_unknowns(report: PlanReport) -> Iterator[str]:
    return _format_table(
        ("id", "unknown", "type", "affects", "resolution", "finding"),
        (
            (
                unknown.id,
                unknown.description,
                unknown.type,
                unknown.affects_challenge,
                unknown.resolution,
                unknown.finding,
            )
            for unknown in report.unknowns
        ),
    )


def _format_false_claims(report: PlanReport) -> Iterator[str]:
    for false_claim in report.against:
        who = (
            f"{code_span(false_claim.agent)}, iteration {false_claim.iteration}, for "
            f"{escape_markdown(false_claim.about)}"
        )
        lookup = false_claim.looked
        yield (
            f"- {who}: claimed that {escape_markdown(describe_claim(lookup.claim))}; the engine saw: "
            f"{escape_markdown(lookup.saw)}"
        )


def _format_answers(report: PlanReport) -> Iterator[str]:
    for answer in report.answers:
        yield f"- **{escape_markdown(answer.challenge)}**, iteration {answer.iteration}: {escape_markdown(answer.text)}"


def _format_events(report: PlanReport) -> Iterator[str]:
    return (f"- iteration {event.iteration}, {event.kind}: {escape_markdown(event.text)}" for event in report.events)


def _format_history(report: PlanReport) -> Iterator[str]:
    if report.verdict is PlanVerdict.RETHINK:
        yield "\n\n".join(
            f"### Iteration {state.iteration}\n\n" + "\n".join(_format_state(state)) for state in report.iterations
        )


def _format_state(state: IterationState) -> Iterator[str]:
    convergence = state.convergence
    yield from _count_by_severity(state)
    counts = f"{convergence.blocking_open} blocking and {convergence.significant_open} significant open"
    yield f"- convergence: {convergence.status}, {counts}"
    yield from (f"- directive: {escape_markdown(text)}" for text in state.synthesizer_directives)
    yield from (f"- answer: {escape_markdown(text)}" for text in state.user_responses)


def _count_by_severity(state: IterationState) -> Iterator[str]:
    for severity in PlanSeverity:
        statuses = Counter(challenge.status for challenge in state.challenges if challenge.severity is severity)
        if statuses:
            counts = ", ".join(f"{statuses[status]} {status}" for status in ChallengeStatus if statuses[status])
            yield f"- {severity}: {counts}"


def _format_origin(report: PlanReport) -> Iterator[str]:
    """Yield how the report was made."""
    why = f": {escape_markdown(report.quality_reason)}" if report.quality_reason else ""
    yield f"- plan: {code_span(report.plan_path)}, SHA-256 {code_span(report.plan_digest)}"
    yield f"- base commit: {code_span(report.base_commit)}"
    yield f"- quality: {report.plan_quality}{why}"
    yield f"- complexity: {_format_complexity(report.complexity)}"
    yield f"- asked: {_describe_agents(report)}"
    yield f"- iterations: {len(report.iterations)}"
    spent = summarize_spending(report.spent, Allowance()) or "no model calls"
    yield f"- cost: agents asked {pluralize(report.dispatches, 'time')}, {spent}"
    yield f"- run: {code_span(report.run_id)}; {code_span(f'proofstone ledger show {report.run_id}')} shows all of it"


def _format_complexity(complexity: Complexity) -> str:
    parts = ", ".join(f"{name} {points}" for name, points in complexity if points)
    return f"{complexity.total} of {_MAX_COMPLEXITY}" + (f" ({parts})" if parts else "")


def _describe_agents(report: PlanReport) -> str:
    if report.trivial:
        return "nobody: the plan is trivial"
    if not report.agents:
        return "nobody: the rules alone"
    agents = ", ".join(f"{escape_markdown(role)} ({code_span(by)})" for role, by in report.agents.items())
    return f"the {report.team_mode} team: {agents}"


def _format_id(report: PlanReport, challenge: Challenge) -> str:
    line = report.lines.get(challenge.id)
    return challenge.id if line is None else f"{challenge.id} (line {line})"


def _format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Format a table. Cells contain no code spans, because a `|` in a code span would end the cell."""
    lines = [" | ".join(escape_markdown(cell) or "–" for cell in row) for row in rows]
    if lines:
        yield f"| {' | '.join(head)} |"
        yield f"|{'---|' * len(head)}"
        yield from (f"| {line} |" for line in lines)


_SECTIONS: Final[tuple[tuple[str, Callable[[PlanReport], Iterable[str]]], ...]] = (
    ("Open questions", _format_questions),
    ("Mitigations to take in", _format_mitigations),
    ("Challenges", _format_challenges),
    ("What stands against it", _format_standing),
    ("Technical Debt Warning", _format_debt),
    ("Score", _format_score),
    ("Disputes", _format_disputes),
    ("Closing audit", _format_audit),
    ("Surfaced context", _format_surfaced),
    ("Probed risks", _format_risks),
    ("Unknowns", _format_unknowns),
    ("Answers", _format_answers),
    ("False claims", _format_false_claims),
    ("Events", _format_events),
    ("Iteration history", _format_history),
    ("How it was made", _format_origin),
)
