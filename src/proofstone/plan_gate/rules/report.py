"""From where the loop stands, or has ended, to the report. Pure.

The report of the plan gate as a page: the verdict first, then what to do about it, then what shows it. Pure.

What agents wrote is data: whatever it holds, it stays a line of text or a cell of a table. A section that would say
nothing is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeStatus,
    ConvergenceStatus,
    IterationState,
    Origin,
    PlanQuality,
    PlanSeverity,
    TeamMode,
)
from proofstone.agents.rules.budget import summary
from proofstone.common.models import Allowance, Spent
from proofstone.common.text import counted
from proofstone.documents.markdown import code, prose
from proofstone.plan_gate.models import Complexity, OpenQuestion, PlanReport, PlanVerdict, ScoreLine
from proofstone.plan_gate.rules.admission import to_take_in, without_mitigation
from proofstone.plan_gate.rules.decision import Decision
from proofstone.plan_gate.rules.effects import Progress
from proofstone.plan_gate.rules.research import claimed

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
    put_off = sum(challenge.status.is_put_off for challenge in progress.challenges)
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
        answers = " ".join(f'--answer "{question.challenge}=…"' for question in questions)
        return f"Answer what is asked: proofstone verify-plan --resume {about.run_id} {answers}"
    match decision.verdict:
        case PlanVerdict.PROCEED if about.runnable and to_take_in(challenges):
            applying = f"proofstone verify-plan --apply-mitigations {about.run_id}"
            first = f"Let whoever does it know of the mitigations: {applying}"
            return f"{first}; then have it done: proofstone gate {about.plan_path}"
        case PlanVerdict.PROCEED if about.runnable:
            return f"Have it done: proofstone gate {about.plan_path}"
        case PlanVerdict.PROCEED:
            return "Write it as tasks that can be run and proven: docs/plan.md tells how; then proofstone gate PLAN.md"
        case PlanVerdict.REVISE if _can_be_taken_in(decision, challenges):
            return (
                f"Take the mitigations in: proofstone verify-plan --apply-mitigations {about.run_id}; "
                "or revise the plan, and put it through the gate again"
            )
    if by_rules := [item for item in without_mitigation(challenges) if item.origin is Origin.RULES]:
        named = ", ".join(rule.id for rule in by_rules[:_MOST_NAMED])
        more = f" and {len(by_rules) - _MOST_NAMED} more" if len(by_rules) > _MOST_NAMED else ""
        says = "says" if len(by_rules) == 1 else "say"
        return f"Put right in the plan what {named}{more} {says}, and put it through the gate again."
    standing = [item.id for item in without_mitigation(challenges)]
    if decision.status is ConvergenceStatus.FORCED_EXIT and decision.verdict is PlanVerdict.REVISE:
        return "It had to end before it converged: put it through the gate again with agents that answer."
    about_which = f" Nothing answers {', '.join(standing[:_MOST_NAMED])} yet." if standing else ""
    return f"Revise the plan, and put it through the gate again.{about_which}"


STRONGLY: Final = "Strongly recommended: address these before proceeding"
WAITING: Final = "A QUESTION IS WAITING"
_MOST_COMPLEX: Final = 16


def page(report: PlanReport) -> str:
    parts = [f"# Plan gate: {prose(report.title or report.plan_path)}", *_verdict(report)]
    for title, section in _SECTIONS:
        if body := "\n".join(section(report)):
            parts += [f"## {title}", body]
    return "\n\n".join(parts) + "\n"


def headline(report: PlanReport) -> str:
    """The verdict, in a word or two."""
    if report.verdict is None:
        return WAITING
    told = [word for word, is_so in (("strong", report.strong), ("rules alone", not report.agents)) if is_so]
    return f"{report.verdict} ({', '.join(told)})" if told else report.verdict.value


def answer_command(report: PlanReport, challenge: str) -> str:
    """What a person types to answer."""
    return f'proofstone verify-plan --resume {report.run_id} --answer "{challenge}=…"'


def standing(report: PlanReport) -> tuple[Challenge, ...]:
    """What keeps the plan from going ahead as it is, or would be good to know: the gravest first. What was put off for
    want of room stands as well, unless it is MINOR."""
    found = (challenge for challenge in report.challenges if challenge.status.is_open or _undiscussed(challenge))
    return tuple(sorted(found, key=by_severity))


def by_severity(challenge: Challenge) -> tuple[int, int]:
    """The gravest first; among equals, in the order in which they were brought."""
    return challenge.severity.rank, int(challenge.id[1:])


def mitigation(challenge: Challenge) -> str:
    """What answers it, as far as anybody knows: to be taken into the plan, or, of the rules, to be put right in it."""
    label = "put right" if challenge.origin is Origin.RULES else "mitigation"
    said = challenge.mitigation.strip() or f"none was named; the alternative: {challenge.alternative}"
    return f"{label}: {said}"


def claim_of(report: PlanReport, challenge: Challenge) -> str:
    """Without its line, where that is said beside it."""
    line = report.lines.get(challenge.id)
    return challenge.claim if line is None else challenge.claim.removeprefix(f"line {line}: ")


def _undiscussed(challenge: Challenge) -> bool:
    put_off = challenge.status is ChallengeStatus.DEFERRED_SURFACED
    return put_off and challenge.severity is not PlanSeverity.MINOR


def _verdict(report: PlanReport) -> Iterator[str]:
    yield f"**{headline(report)}**: {prose(report.reason.rstrip('.'))}."
    if report.strong:
        yield f"**{STRONGLY}.**"
    if report.next_step:
        yield f"Next: {prose(report.next_step)}"


def _questions(report: PlanReport) -> Iterator[str]:
    for question in report.questions:
        yield f"- **{prose(question.challenge)}**: {prose(question.question)}"
        yield from [f"  - why: {prose(question.why)}"] if question.why else []
        yield from (f"  - option {number}: {prose(option)}" for number, option in enumerate(question.options, start=1))
        yield f"  - answer with {code(answer_command(report, question.challenge))}"


def _mitigations(report: PlanReport) -> Iterator[str]:
    """Of what stands, and of what was settled because they will be taken in."""
    if report.verdict not in (PlanVerdict.REVISE, PlanVerdict.PROCEED):
        return
    for item in sorted(to_take_in(report.challenges), key=by_severity):
        yield f"- **{_named(report, item)}**, {item.severity}, {item.status}: {prose(item.claim)}"
        yield f"  - {prose(mitigation(item))}"


def _challenges(report: PlanReport) -> Iterator[str]:
    return _table(
        ("id", "challenge", "origin", "severity", "status", "evidence"),
        (
            (
                _named(report, challenge),
                claim_of(report, challenge),
                challenge.origin,
                challenge.severity,
                challenge.status,
                _settled_by(report, challenge),
            )
            for challenge in report.challenges
        ),
    )


def _settled_by(report: PlanReport, challenge: Challenge) -> str:
    settled = challenge.mitigation and challenge.status is ChallengeStatus.RESOLVED
    taken_in = f"mitigation: {challenge.mitigation}" if settled else ""
    return "; ".join(filter(None, (report.evidence.get(challenge.id), challenge.resolution, taken_in)))


def _standing(report: PlanReport) -> Iterator[str]:
    """Each in full; mitigations that are taken in have a section of their own."""
    listed = {entry.id for entry in to_take_in(report.challenges)} if report.verdict is PlanVerdict.REVISE else set()
    for item in standing(report):
        yield f"- **{_named(report, item)}**, {item.severity}, {item.status}: {prose(claim_of(report, item))}"
        yield f"  - concern, confidence {item.confidence}: {prose(item.concern)}"
        yield f"  - what happens: {prose(item.failure_scenario)}"
        yield f"  - instead: {prose(item.alternative)}"
        if item.mitigation and item.id not in listed:
            yield f"  - {prose(mitigation(item))}"


def _debt(report: PlanReport) -> Iterator[str]:
    if not report.debt_warning:
        return
    put_off = [challenge for challenge in report.challenges if challenge.status.is_put_off]
    yield f"{counted(len(put_off), 'challenge')} deferred. None of it is done when the plan is."
    yield ""
    for item in sorted(put_off, key=by_severity):
        yield f"- **{_named(report, item)}**, {item.severity}, {item.status}: {prose(item.claim)}"


def _score(report: PlanReport) -> Iterator[str]:
    if report.score is None:
        return
    yield f"{report.score.total} of 10. It decides nothing."
    yield ""
    yield from _table(
        ("dimension", "weight", "score", "evidence"),
        ((line.dimension, f"{line.weight:.2f}", _both(line), line.evidence) for line in report.score.lines),
    )


def _both(line: ScoreLine) -> str:
    return f"{line.score}; the challenger gives {line.audited}" if line.disputed else str(line.score)


def _disputes(report: PlanReport) -> Iterator[str]:
    return (f"- in dispute: {prose(text)}" for text in report.disputes)


def _audit(report: PlanReport) -> Iterator[str]:
    if report.audit:
        yield f"The challenger says: {prose(report.audit)}"


def _surfaced(report: PlanReport) -> Iterator[str]:
    return _table(
        ("id", "source", "location", "relevance", "impact", "challenge"),
        (
            (item.id, item.source, item.location, item.relevance, item.impact, item.generates_challenge or "")
            for item in report.surfaced
        ),
    )


def _risks(report: PlanReport) -> Iterator[str]:
    return _table(
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


def _unknowns(report: PlanReport) -> Iterator[str]:
    return _table(
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


def _against(report: PlanReport) -> Iterator[str]:
    for item in report.against:
        who = f"{code(item.agent)}, iteration {item.iteration}, for {prose(item.about)}"
        yield f"- {who}: claimed that {prose(claimed(item.looked.claim))}; the engine saw: {prose(item.looked.saw)}"


def _answers(report: PlanReport) -> Iterator[str]:
    for answer in report.answers:
        yield f"- **{prose(answer.challenge)}**, iteration {answer.iteration}: {prose(answer.text)}"


def _events(report: PlanReport) -> Iterator[str]:
    return (f"- iteration {event.iteration}, {event.kind}: {prose(event.text)}" for event in report.events)


def _history(report: PlanReport) -> Iterator[str]:
    if report.verdict is PlanVerdict.RETHINK:
        yield "\n\n".join(
            f"### Iteration {state.iteration}\n\n" + "\n".join(_state(state)) for state in report.iterations
        )


def _state(state: IterationState) -> Iterator[str]:
    held = state.convergence
    yield from _counts(state)
    yield f"- convergence: {held.status}, {held.blocking_open} blocking and {held.significant_open} significant open"
    yield from (f"- directive: {prose(text)}" for text in state.synthesizer_directives)
    yield from (f"- answer: {prose(text)}" for text in state.user_responses)


def _counts(state: IterationState) -> Iterator[str]:
    for severity in PlanSeverity:
        statuses = Counter(challenge.status for challenge in state.challenges if challenge.severity is severity)
        if statuses:
            said = ", ".join(f"{statuses[status]} {status}" for status in ChallengeStatus if statuses[status])
            yield f"- {severity}: {said}"


def _made(report: PlanReport) -> Iterator[str]:
    """How the report came about."""
    why = f": {prose(report.quality_reason)}" if report.quality_reason else ""
    yield f"- plan: {code(report.plan_path)}, SHA-256 {code(report.plan_digest)}"
    yield f"- base commit: {code(report.base_commit)}"
    yield f"- quality: {report.plan_quality}{why}"
    yield f"- complexity: {_complexity(report.complexity)}"
    yield f"- asked: {_asked(report)}"
    yield f"- iterations: {len(report.iterations)}"
    spent = summary(report.spent, Allowance()) or "no model calls"
    yield f"- cost: agents asked {counted(report.dispatches, 'time')}, {spent}"
    yield f"- run: {code(report.run_id)}; {code(f'proofstone ledger show {report.run_id}')} shows all of it"


def _complexity(complexity: Complexity) -> str:
    parts = ", ".join(f"{name} {points}" for name, points in complexity if points)
    return f"{complexity.total} of {_MOST_COMPLEX}" + (f" ({parts})" if parts else "")


def _asked(report: PlanReport) -> str:
    if report.trivial:
        return "nobody: the plan is trivial"
    if not report.agents:
        return "nobody: the rules alone"
    served = ", ".join(f"{prose(role)} ({code(by)})" for role, by in report.agents.items())
    return f"the {report.team_mode} team: {served}"


def _named(report: PlanReport, challenge: Challenge) -> str:
    line = report.lines.get(challenge.id)
    return challenge.id if line is None else f"{challenge.id} (line {line})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """No cell holds code spans: a `|` in one would end the cell."""
    lines = [" | ".join(prose(cell) or "–" for cell in row) for row in rows]
    if lines:
        yield f"| {' | '.join(head)} |"
        yield f"|{'---|' * len(head)}"
        yield from (f"| {line} |" for line in lines)


_SECTIONS: Final[tuple[tuple[str, Callable[[PlanReport], Iterable[str]]], ...]] = (
    ("Open questions", _questions),
    ("Mitigations to take in", _mitigations),
    ("Challenges", _challenges),
    ("What stands against it", _standing),
    ("Technical Debt Warning", _debt),
    ("Score", _score),
    ("Disputes", _disputes),
    ("Closing audit", _audit),
    ("Surfaced context", _surfaced),
    ("Probed risks", _risks),
    ("Unknowns", _unknowns),
    ("Answers", _answers),
    ("False claims", _against),
    ("Events", _events),
    ("Iteration history", _history),
    ("How it was made", _made),
)
