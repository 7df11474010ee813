"""The understanding gate: which items an impact analysis must satisfy, its outcome, and the texts sent to agents.
Pure.

| tier                         | items                       | attempts |
|------------------------------|-----------------------------|----------|
| 1 implementer                | RC-01 to RC-10              | 3        |
| 2 architect                  | RC-01 to RC-07              | 3        |
| 3 researcher                 | RC-01, 02, 03, 09, 10       | 2        |
| 0 reads and answers once     | exempt                      | none     |

| failed items    | outcome                                                                                       |
|-----------------|-----------------------------------------------------------------------------------------------|
| none            | VERIFIED                                                                                      |
| one or two      | QUESTION: the answer must correct every item, or the attempt is spent                         |
| three or more   | REJECTED: the attempt is spent                                                                |

When the last attempt is spent, another agent starts with another approach. An unverifiable item does not fail: it caps
the confidence. But once RC-05, RC-06 or RC-07 has failed, its answer must be verified: an unverifiable answer fails.

A text to an agent starts with the bracketed line and then says how to answer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from proofstone.common.models import Verdict
from proofstone.supervision.models.context import ContextUpdate, truncate_line
from proofstone.supervision.models.ladder import DueQuestion, ReverifyLevel, ReverifyQuestion
from proofstone.supervision.models.messages import ImpactChallenge, ReverifyRequest
from proofstone.supervision.models.understanding import (
    AnalysisItem,
    AnalysisOutcome,
    ExemptDecision,
    GateAttempts,
    GiveUpDecision,
    ItemVerdict,
    QuestionDecision,
    RetryDecision,
    SupervisionTier,
    UnderstandingDecision,
    VerifyDecision,
)
from proofstone.supervision.rules.supervision_state import RequestKind
from proofstone.supervision.rules.wire import MESSAGE_FORMS, write_message

ITEMS_BY_TIER: Final[Mapping[SupervisionTier, tuple[AnalysisItem, ...]]] = MappingProxyType(
    {
        SupervisionTier.EXEMPT: (),
        SupervisionTier.IMPLEMENTER: tuple(AnalysisItem),
        SupervisionTier.ARCHITECT: tuple(AnalysisItem)[:7],
        SupervisionTier.RESEARCHER: (
            AnalysisItem.TASK,
            AnalysisItem.POSITION,
            AnalysisItem.UPSTREAM,
            AnalysisItem.FACTS,
            AnalysisItem.OMISSIONS,
        ),
    }
)
MAX_ATTEMPTS_BY_TIER: Final[Mapping[SupervisionTier, int]] = MappingProxyType(
    {
        SupervisionTier.EXEMPT: 0,
        SupervisionTier.IMPLEMENTER: 3,
        SupervisionTier.ARCHITECT: 3,
        SupervisionTier.RESEARCHER: 2,
    }
)
ENGINE_ITEMS: Final = frozenset({AnalysisItem.UPSTREAM, AnalysisItem.FILES, AnalysisItem.INTERFACES})
"""The engine verifies these items itself; the others are judged."""
MANDATORY_ITEMS: Final = frozenset({AnalysisItem.INTERFACES, AnalysisItem.OTHER_AGENTS, AnalysisItem.DOWNSTREAM})
"""Mistakes in these items affect other agents."""
_MAX_QUESTIONS: Final = 2
_WORST_FIRST: Final = (Verdict.FAIL, Verdict.UNVERIFIABLE, Verdict.PASS)

_GateStep = tuple[GateAttempts, UnderstandingDecision]


class OutOfTurnError(ValueError):
    """An analysis while an answer is awaited, an answer while none is awaited, or either after the end."""


def enter_gate(tier: SupervisionTier, exempt: str = "") -> GateAttempts | ExemptDecision:
    """Enter the gate. `exempt` says why this agent cannot be questioned (`monitor_state.why_exempt`); empty if it
    can.
    """
    if tier is SupervisionTier.EXEMPT or exempt:
        return ExemptDecision(why=exempt or f"tier {SupervisionTier.EXEMPT:d} is exempt")
    return GateAttempts(tier=tier)


def list_judged_items(tier: SupervisionTier) -> tuple[AnalysisItem, ...]:
    """Return the items that a judge must decide."""
    return tuple(item for item in ITEMS_BY_TIER[tier] if item not in ENGINE_ITEMS)


def decide_analysis_outcome(failed: int) -> AnalysisOutcome:
    if not failed:
        return AnalysisOutcome.VERIFIED
    return AnalysisOutcome.QUESTION if failed <= _MAX_QUESTIONS else AnalysisOutcome.REJECTED


def judge_analysis(attempts: GateAttempts, verdicts: Iterable[ItemVerdict]) -> _GateStep:
    """Decide about an impact analysis. An item without a verdict is unverifiable; the worst of several verdicts
    counts; items that do not apply to the tier are ignored.
    """
    if attempts.over or attempts.asked:
        raise OutOfTurnError("no impact analysis is awaited")
    all_verdicts = _worst_by_item(ITEMS_BY_TIER[attempts.tier], verdicts, Verdict.UNVERIFIABLE, "it was not examined")
    failed = _select(all_verdicts, Verdict.FAIL)
    unverifiable = tuple(verdict.item for verdict in _select(all_verdicts, Verdict.UNVERIFIABLE))
    match decide_analysis_outcome(len(failed)):
        case AnalysisOutcome.VERIFIED:
            return _pass(attempts, unverifiable)
        case AnalysisOutcome.QUESTION:
            mandatory_first = tuple(sorted(failed, key=lambda failure: failure.item not in MANDATORY_ITEMS))
            asked_items = tuple(verdict.item for verdict in mandatory_first)
            waiting = attempts.model_copy(update={"asked": asked_items, "unverifiable": unverifiable})
            return waiting, QuestionDecision(items=mandatory_first)
        case AnalysisOutcome.REJECTED:
            return _spend_attempt(attempts, failed)


def judge_challenge_answer(attempts: GateAttempts, verdicts: Iterable[ItemVerdict]) -> _GateStep:
    """Decide about the answer to the questions. An item without a verdict was not answered."""
    if attempts.over or not attempts.asked:
        raise OutOfTurnError("no answer is awaited")
    all_verdicts = tuple(
        map(_require_verified, _worst_by_item(attempts.asked, verdicts, Verdict.FAIL, "it was not answered"))
    )
    if failed := _select(all_verdicts, Verdict.FAIL):
        return _spend_attempt(attempts, failed)
    unverifiable = {verdict.item for verdict in _select(all_verdicts, Verdict.UNVERIFIABLE)}.union(
        attempts.unverifiable
    )
    return _pass(attempts, tuple(item for item in AnalysisItem if item in unverifiable))


def _require_verified(verdict: ItemVerdict) -> ItemVerdict:
    if verdict.verdict is Verdict.UNVERIFIABLE and verdict.item in MANDATORY_ITEMS:
        why = f"nobody could verify the answer: {verdict.detail}".removesuffix(": ")
        return verdict.model_copy(update={"verdict": Verdict.FAIL, "detail": why})
    return verdict


def _worst_by_item(
    items: Sequence[AnalysisItem], verdicts: Iterable[ItemVerdict], missing: Verdict, why: str
) -> tuple[ItemVerdict, ...]:
    """Return one verdict for each item, in the order of the items."""
    worst: dict[AnalysisItem, ItemVerdict] = {}
    for verdict in sorted(verdicts, key=lambda judged: _WORST_FIRST.index(judged.verdict)):
        worst.setdefault(verdict.item, verdict)
    return tuple(worst.get(item) or ItemVerdict(item=item, verdict=missing, detail=why) for item in items)


def _select(verdicts: Iterable[ItemVerdict], verdict: Verdict) -> tuple[ItemVerdict, ...]:
    return tuple(candidate for candidate in verdicts if candidate.verdict is verdict)


def _pass(attempts: GateAttempts, unverifiable: tuple[AnalysisItem, ...]) -> _GateStep:
    ended = attempts.model_copy(update={"asked": (), "unverifiable": unverifiable, "over": True})
    return ended, VerifyDecision(unverifiable=unverifiable)


def _spend_attempt(attempts: GateAttempts, reasons: tuple[ItemVerdict, ...]) -> _GateStep:
    limit = MAX_ATTEMPTS_BY_TIER[attempts.tier]
    if attempts.attempt >= limit:
        return attempts.model_copy(update={"asked": (), "unverifiable": (), "over": True}), GiveUpDecision(
            reasons=reasons
        )
    next_attempt = attempts.attempt + 1
    waiting = attempts.model_copy(update={"attempt": next_attempt, "asked": (), "unverifiable": ()})
    return waiting, RetryDecision(attempt=next_attempt, of=limit, reasons=reasons)


_OR_JSON: Final = "or with a single JSON object that matches the given schema, and no other text"
_OR_ANSWER_JSON: Final = "Or answer with a single JSON object that matches the given schema, and no other text."

ITEM_CRITERIA: Final = {
    AnalysisItem.TASK: "the analysis restates the task in its own words, and correctly",
    AnalysisItem.POSITION: "the analysis says where the task belongs in the whole plan, and what comes before "
    "and after it",
    AnalysisItem.UPSTREAM: "the analysis cites what the work depends on",
    AnalysisItem.FILES: "the list of files is complete, and contains only files of the task",
    AnalysisItem.INTERFACES: "the signatures that it names match the files",
    AnalysisItem.OTHER_AGENTS: "the analysis says correctly what the work means for other agents",
    AnalysisItem.DOWNSTREAM: "the analysis says what follows from the work, and the code confirms it",
    AnalysisItem.BREAKING: "the analysis says what could break and for whom, and omits nothing that obviously breaks",
    AnalysisItem.FACTS: "everything that it says about the repository is true",
    AnalysisItem.OMISSIONS: "the analysis omits nothing that decides whether the task succeeds",
}
"""When each item holds."""

_IMPACT_INSTRUCTIONS: Final = (
    "Before you start, explain how you understand your task. Do not change anything yet. First look up what you need "
    "with your tools. Then answer with a message\n\n"
    f"{MESSAGE_FORMS['IMPACT-ANALYSIS']}\n\n"
    "and below it these sections: task understanding, upstream context, files and functions impact map, interface "
    f"contracts, cross-agent impact, risk; {_OR_JSON}. Everything that you cite, list or quote is verified in the "
    "repository."
)


def write_impact_request(phase: int, attempt: int, of: int, items: Iterable[AnalysisItem]) -> str:
    criteria = "\n".join(f"- {item}: {ITEM_CRITERIA[item]}" for item in items)
    head = f"[IMPACT-ANALYSIS] Phase {phase} | Attempt {attempt}/{of}"
    return (
        f"First, submit your impact analysis: {head}\n\n{_IMPACT_INSTRUCTIONS}\n\n"
        f"It must satisfy these items:\n\n{criteria}"
    )


def write_rejection(reasons: Iterable[ItemVerdict]) -> str:
    return "\n".join(
        f"- {reason.item}: {truncate_line(reason.detail) or ITEM_CRITERIA[reason.item]}" for reason in reasons
    )


def write_challenge(phase: int, questions: Sequence[ReverifyQuestion]) -> tuple[str, str]:
    """Return the question, alone and with instructions for the answer."""
    text = truncate_line(" ".join(question.text for question in questions))
    line = write_message(ImpactChallenge(phase=phase, category=questions[0].category, question=text))
    return (
        text,
        f"{line}\n\nAnswer this before you start:\n\n{MESSAGE_FORMS['CHALLENGE-RESPONSE']}\n\n{_OR_ANSWER_JSON}",
    )


def write_plan_request(phase: int, before: str) -> str:
    head = f"{before}\n\n" if before else ""
    return f"{head}Now submit your plan before you start:\n\n{MESSAGE_FORMS['PLAN']}\n\n{_OR_ANSWER_JSON}"


def write_context_update(sent: ContextUpdate) -> str:
    return (
        f"{write_message(sent)}\n\nThe user has changed the requirements. Read the update and acknowledge it:\n\n"
        f"{MESSAGE_FORMS['ACK-UPDATE']}\n\n{_OR_ANSWER_JSON}"
    )


def write_reverify_request(phase: int, target: str, asked: DueQuestion, question: ReverifyQuestion | None) -> str:
    reason = truncate_line("; ".join(dict.fromkeys(cause.reason for cause in asked.causes)))
    text = truncate_line(question.text) if question and asked.level is ReverifyLevel.QUESTION else None
    line = write_message(ReverifyRequest(phase=phase, level=asked.level, target=target, reason=reason, question=text))
    return f"{line}\n\n{_ANSWER_INSTRUCTIONS[asked.level]}"


_ANSWER_INSTRUCTIONS: Final = {
    ReverifyLevel.PING: f"Report your position:\n\n{MESSAGE_FORMS['SELF-LOCATE']}\n\n{_OR_ANSWER_JSON}",
    ReverifyLevel.QUESTION: f"Answer this before you "
    f"continue:\n\n{MESSAGE_FORMS['REVERIFY-RESPONSE']}\n\n{_OR_ANSWER_JSON}",
    ReverifyLevel.ANALYSIS: (
        "Before you continue, answer with a message `[REVERIFY-RESPONSE] Phase {N} | Level 3` and below it\n\n"
        "## Abbreviated Re-IA\n"
        "- RC-01 (Task Understanding): …\n- RC-04 (File List): …\n- RC-07 (Downstream Chain): …\n\n"
        "## Change Summary\n- Original IA claimed: …\n- Current reality: …\n"
        "- Impact: NONE, MINOR_ADJUSTMENT or SIGNIFICANT_DEVIATION\n\n"
        f"{_OR_JSON}. Your answer is compared with the real changes."
    ),
}


CONTINUE_TEXT: Final = "Continue your work where you left off."
SELF_LOCATE_TEXT: Final = (
    "Whenever you have finished a part of your work, say where you are in a line of its own, which needs no answer:\n\n"
    f"{MESSAGE_FORMS['SELF-LOCATE']}"
)
"""What an agent is told when it begins to work. Nothing rests on the lines: they are compared with what is observed."""


def write_refused_requirement(version: str, why: str) -> str:
    return f"The addition in {version} is not part of your task: {truncate_line(why)}. Leave it to the planner."


def write_unreadable_answer(wanted: RequestKind, why: str) -> str:
    return f"Your answer ({wanted}) could not be read: {why}"
