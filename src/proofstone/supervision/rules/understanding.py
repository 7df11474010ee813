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
from proofstone.supervision.models.context import ContextUpdate, brief
from proofstone.supervision.models.ladder import Asked, Level, Question
from proofstone.supervision.models.messages import Challenge, Reverify
from proofstone.supervision.models.understanding import (
    Attempts,
    GateDecision,
    GaveUp,
    Item,
    ItemVerdict,
    NotApplicable,
    Outcome,
    Questioned,
    SentBack,
    Tier,
    Verified,
)
from proofstone.supervision.rules.attendance import Wanted
from proofstone.supervision.rules.wire import FORMS, write

ITEMS: Final[Mapping[Tier, tuple[Item, ...]]] = MappingProxyType(
    {
        Tier.EXEMPT: (),
        Tier.IMPLEMENTER: tuple(Item),
        Tier.ARCHITECT: tuple(Item)[:7],
        Tier.RESEARCHER: (Item.TASK, Item.POSITION, Item.UPSTREAM, Item.FACTS, Item.OMISSIONS),
    }
)
ATTEMPTS: Final[Mapping[Tier, int]] = MappingProxyType(
    {Tier.EXEMPT: 0, Tier.IMPLEMENTER: 3, Tier.ARCHITECT: 3, Tier.RESEARCHER: 2}
)
LOOKED_UP: Final = frozenset({Item.UPSTREAM, Item.FILES, Item.INTERFACES})
"""The engine verifies these items itself; the others are judged."""
MANDATORY: Final = frozenset({Item.INTERFACES, Item.OTHER_AGENTS, Item.DOWNSTREAM})
"""Mistakes in these items affect other agents."""
_MAX_QUESTIONS: Final = 2
_WORST_FIRST: Final = (Verdict.FAIL, Verdict.UNVERIFIABLE, Verdict.PASS)

_GateStep = tuple[Attempts, GateDecision]


class OutOfTurnError(ValueError):
    """An analysis while an answer is awaited, an answer while none is awaited, or either after the end."""


def enter(tier: Tier, exempt: str = "") -> Attempts | NotApplicable:
    """Enter the gate. `exempt` says why this agent cannot be questioned (`monitor_state.why_exempt`); empty if it
    can.
    """
    if tier is Tier.EXEMPT or exempt:
        return NotApplicable(why=exempt or f"tier {Tier.EXEMPT:d} is exempt")
    return Attempts(tier=tier)


def judged_items(tier: Tier) -> tuple[Item, ...]:
    """Return the items that a judge must decide."""
    return tuple(item for item in ITEMS[tier] if item not in LOOKED_UP)


def outcome(failed: int) -> Outcome:
    if not failed:
        return Outcome.VERIFIED
    return Outcome.QUESTION if failed <= _MAX_QUESTIONS else Outcome.REJECTED


def judge(attempts: Attempts, verdicts: Iterable[ItemVerdict]) -> _GateStep:
    """Decide about an impact analysis. An item without a verdict is unverifiable; the worst of several verdicts
    counts; items that do not apply to the tier are ignored.
    """
    if attempts.over or attempts.asked:
        raise OutOfTurnError("no impact analysis is awaited")
    all_verdicts = _worst_by_item(ITEMS[attempts.tier], verdicts, Verdict.UNVERIFIABLE, "it was not examined")
    failed = _select(all_verdicts, Verdict.FAIL)
    unverifiable = tuple(verdict.item for verdict in _select(all_verdicts, Verdict.UNVERIFIABLE))
    match outcome(len(failed)):
        case Outcome.VERIFIED:
            return _pass(attempts, unverifiable)
        case Outcome.QUESTION:
            mandatory_first = tuple(sorted(failed, key=lambda failure: failure.item not in MANDATORY))
            asked_items = tuple(verdict.item for verdict in mandatory_first)
            waiting = attempts.model_copy(update={"asked": asked_items, "unverifiable": unverifiable})
            return waiting, Questioned(items=mandatory_first)
        case Outcome.REJECTED:
            return _spend_attempt(attempts, failed)


def answered(attempts: Attempts, verdicts: Iterable[ItemVerdict]) -> _GateStep:
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
    return _pass(attempts, tuple(item for item in Item if item in unverifiable))


def _require_verified(verdict: ItemVerdict) -> ItemVerdict:
    if verdict.verdict is Verdict.UNVERIFIABLE and verdict.item in MANDATORY:
        why = f"nobody could verify the answer: {verdict.detail}".removesuffix(": ")
        return verdict.model_copy(update={"verdict": Verdict.FAIL, "detail": why})
    return verdict


def _worst_by_item(
    items: Sequence[Item], verdicts: Iterable[ItemVerdict], missing: Verdict, why: str
) -> tuple[ItemVerdict, ...]:
    """Return one verdict for each item, in the order of the items."""
    worst: dict[Item, ItemVerdict] = {}
    for verdict in sorted(verdicts, key=lambda judged: _WORST_FIRST.index(judged.verdict)):
        worst.setdefault(verdict.item, verdict)
    return tuple(worst.get(item) or ItemVerdict(item=item, verdict=missing, detail=why) for item in items)


def _select(verdicts: Iterable[ItemVerdict], verdict: Verdict) -> tuple[ItemVerdict, ...]:
    return tuple(candidate for candidate in verdicts if candidate.verdict is verdict)


def _pass(attempts: Attempts, unverifiable: tuple[Item, ...]) -> _GateStep:
    ended = attempts.model_copy(update={"asked": (), "unverifiable": unverifiable, "over": True})
    return ended, Verified(unverifiable=unverifiable)


def _spend_attempt(attempts: Attempts, reasons: tuple[ItemVerdict, ...]) -> _GateStep:
    limit = ATTEMPTS[attempts.tier]
    if attempts.attempt >= limit:
        return attempts.model_copy(update={"asked": (), "unverifiable": (), "over": True}), GaveUp(reasons=reasons)
    next_attempt = attempts.attempt + 1
    waiting = attempts.model_copy(update={"attempt": next_attempt, "asked": (), "unverifiable": ()})
    return waiting, SentBack(attempt=next_attempt, of=limit, reasons=reasons)


_OR_JSON: Final = "or with a single JSON object that matches the given schema, and no other text"
_OR_ANSWER_JSON: Final = "Or answer with a single JSON object that matches the given schema, and no other text."

MEANING: Final = {
    Item.TASK: "the analysis restates the task in its own words, and correctly",
    Item.POSITION: "the analysis says where the task belongs in the whole plan, and what comes before and after it",
    Item.UPSTREAM: "the analysis cites what the work depends on",
    Item.FILES: "the list of files is complete, and contains only files of the task",
    Item.INTERFACES: "the signatures that it names match the files",
    Item.OTHER_AGENTS: "the analysis says correctly what the work means for other agents",
    Item.DOWNSTREAM: "the analysis says what follows from the work, and the code confirms it",
    Item.BREAKING: "the analysis says what could break and for whom, and omits nothing that obviously breaks",
    Item.FACTS: "everything that it says about the repository is true",
    Item.OMISSIONS: "the analysis omits nothing that decides whether the task succeeds",
}
"""When each item holds."""

_IMPACT_INSTRUCTIONS: Final = (
    "Before you start, explain how you understand your task. Do not change anything yet. First look up what you need "
    "with your tools. Then answer with a message\n\n"
    f"{FORMS['IMPACT-ANALYSIS']}\n\n"
    "and below it these sections: task understanding, upstream context, files and functions impact map, interface "
    f"contracts, cross-agent impact, risk; {_OR_JSON}. Everything that you cite, list or quote is verified in the "
    "repository."
)


def impact(phase: int, attempt: int, of: int, items: Iterable[Item]) -> str:
    criteria = "\n".join(f"- {item}: {MEANING[item]}" for item in items)
    head = f"[IMPACT-ANALYSIS] Phase {phase} | Attempt {attempt}/{of}"
    return (
        f"First, submit your impact analysis: {head}\n\n{_IMPACT_INSTRUCTIONS}\n\n"
        f"It must satisfy these items:\n\n{criteria}"
    )


def rejected(reasons: Iterable[ItemVerdict]) -> str:
    return "\n".join(f"- {reason.item}: {brief(reason.detail) or MEANING[reason.item]}" for reason in reasons)


def challenge(phase: int, questions: Sequence[Question]) -> tuple[str, str]:
    """Return the question, alone and with instructions for the answer."""
    text = brief(" ".join(question.text for question in questions))
    line = write(Challenge(phase=phase, category=questions[0].category, question=text))
    return text, f"{line}\n\nAnswer this before you start:\n\n{FORMS['CHALLENGE-RESPONSE']}\n\n{_OR_ANSWER_JSON}"


def plan(phase: int, before: str) -> str:
    head = f"{before}\n\n" if before else ""
    return f"{head}Now submit your plan before you start:\n\n{FORMS['PLAN']}\n\n{_OR_ANSWER_JSON}"


def update(sent: ContextUpdate) -> str:
    return (
        f"{write(sent)}\n\nThe user has changed the requirements. Read the update and acknowledge it:\n\n"
        f"{FORMS['ACK-UPDATE']}\n\n{_OR_ANSWER_JSON}"
    )


def reverify(phase: int, target: str, asked: Asked, question: Question | None) -> str:
    reason = brief("; ".join(dict.fromkeys(cause.reason for cause in asked.causes)))
    text = brief(question.text) if question and asked.level is Level.QUESTION else None
    line = write(Reverify(phase=phase, level=asked.level, target=target, reason=reason, question=text))
    return f"{line}\n\n{_ANSWER_INSTRUCTIONS[asked.level]}"


_ANSWER_INSTRUCTIONS: Final = {
    Level.PING: f"Report your position:\n\n{FORMS['SELF-LOCATE']}\n\n{_OR_ANSWER_JSON}",
    Level.QUESTION: f"Answer this before you continue:\n\n{FORMS['REVERIFY-RESPONSE']}\n\n{_OR_ANSWER_JSON}",
    Level.ANALYSIS: (
        "Before you continue, answer with a message `[REVERIFY-RESPONSE] Phase {N} | Level 3` and below it\n\n"
        "## Abbreviated Re-IA\n"
        "- RC-01 (Task Understanding): …\n- RC-04 (File List): …\n- RC-07 (Downstream Chain): …\n\n"
        "## Change Summary\n- Original IA claimed: …\n- Current reality: …\n"
        "- Impact: NONE, MINOR_ADJUSTMENT or SIGNIFICANT_DEVIATION\n\n"
        f"{_OR_JSON}. Your answer is compared with the real changes."
    ),
}


GO_ON: Final = "Continue your work where you left off."


def not_taken_in(version: str, why: str) -> str:
    return f"The addition in {version} is not part of your task: {brief(why)}. Leave it to the planner."


def unreadable(wanted: Wanted, why: str) -> str:
    return f"Your answer ({wanted}) could not be read: {why}"
