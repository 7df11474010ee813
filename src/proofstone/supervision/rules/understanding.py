"""The understanding gate: which items an impact analysis is held to, and what comes of it.

| tier                         | items                       | attempts |
|------------------------------|-----------------------------|----------|
| 1 implementer                | RC-01 to RC-10              | 3        |
| 2 architect                  | RC-01 to RC-07              | 3        |
| 3 researcher                 | RC-01, 02, 03, 09, 10       | 2        |
| 0 whoever reads and answers  | exempt                      | none     |

| items that fail | outcome                                                                                       |
|-----------------|-----------------------------------------------------------------------------------------------|
| none            | VERIFIED                                                                                      |
| one or two      | QUESTION: all that was asked must be put right by the answer, or the attempt is spent          |
| three or more   | REJECTED: the attempt is spent                                                                |

When the last attempt is spent, another agent begins with another approach. An item about which nobody can say anything
does not fail: it caps the confidence. But RC-05, RC-06 and RC-07, once seen to fail, must be answered so that somebody
can see that they hold: an answer about them that nobody can judge is none.

How agents are asked, in words: the line between brackets first, then how it can be answered. Pure.
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
"""The engine sees for itself whether these hold; the others are judged."""
MANDATORY: Final = frozenset({Item.INTERFACES, Item.OTHER_AGENTS, Item.DOWNSTREAM})
"""What goes wrong here goes wrong for others."""
_MOST_QUESTIONS: Final = 2
_WORST_FIRST: Final = (Verdict.FAIL, Verdict.UNVERIFIABLE, Verdict.PASS)

_Step = tuple[Attempts, GateDecision]


class OutOfTurnError(ValueError):
    """An analysis where an answer is waited for, an answer where none is, or either after the end."""


def enter(tier: Tier, exempt: str = "") -> Attempts | NotApplicable:
    """`exempt`: why this agent cannot be asked (`watched.why_exempt`); empty: it can."""
    if tier is Tier.EXEMPT or exempt:
        return NotApplicable(why=exempt or f"tier {Tier.EXEMPT:d} is exempt")
    return Attempts(tier=tier)


def judged_items(tier: Tier) -> tuple[Item, ...]:
    """Those that somebody has to judge."""
    return tuple(item for item in ITEMS[tier] if item not in LOOKED_UP)


def outcome(failed: int) -> Outcome:
    if not failed:
        return Outcome.VERIFIED
    return Outcome.QUESTION if failed <= _MOST_QUESTIONS else Outcome.REJECTED


def judge(attempts: Attempts, verdicts: Iterable[ItemVerdict]) -> _Step:
    """What comes of an impact analysis. An item that nobody looked at is unverifiable; of several verdicts about one
    item the worst counts; items that do not concern the tier are left alone."""
    if attempts.over or attempts.asked:
        raise OutOfTurnError("no impact analysis is waited for")
    found = _each(ITEMS[attempts.tier], verdicts, Verdict.UNVERIFIABLE, "nobody looked at it")
    failed = _of(found, Verdict.FAIL)
    unverifiable = tuple(item.item for item in _of(found, Verdict.UNVERIFIABLE))
    match outcome(len(failed)):
        case Outcome.VERIFIED:
            return _passed(attempts, unverifiable)
        case Outcome.QUESTION:
            ordered = tuple(sorted(failed, key=lambda one: one.item not in MANDATORY))
            asked = tuple(item.item for item in ordered)
            waiting = attempts.model_copy(update={"asked": asked, "unverifiable": unverifiable})
            return waiting, Questioned(items=ordered)
        case Outcome.REJECTED:
            return _spent(attempts, failed)


def answered(attempts: Attempts, verdicts: Iterable[ItemVerdict]) -> _Step:
    """What comes of the answer to the questions: verdicts about the items that were asked about. One that has none was
    not answered."""
    if attempts.over or not attempts.asked:
        raise OutOfTurnError("no answer is waited for")
    found = tuple(map(_as_answer, _each(attempts.asked, verdicts, Verdict.FAIL, "it was not answered")))
    if failed := _of(found, Verdict.FAIL):
        return _spent(attempts, failed)
    more = {entry.item for entry in _of(found, Verdict.UNVERIFIABLE)}.union(attempts.unverifiable)
    return _passed(attempts, tuple(item for item in Item if item in more))


def _as_answer(verdict: ItemVerdict) -> ItemVerdict:
    if verdict.verdict is Verdict.UNVERIFIABLE and verdict.item in MANDATORY:
        why = f"nobody could see that it holds now: {verdict.detail}".removesuffix(": ")
        return verdict.model_copy(update={"verdict": Verdict.FAIL, "detail": why})
    return verdict


def _each(
    items: Sequence[Item], verdicts: Iterable[ItemVerdict], missing: Verdict, why: str
) -> tuple[ItemVerdict, ...]:
    """One verdict for each item, in their order."""
    worst: dict[Item, ItemVerdict] = {}
    for verdict in sorted(verdicts, key=lambda judged: _WORST_FIRST.index(judged.verdict)):
        worst.setdefault(verdict.item, verdict)
    return tuple(worst.get(item) or ItemVerdict(item=item, verdict=missing, detail=why) for item in items)


def _of(found: Iterable[ItemVerdict], verdict: Verdict) -> tuple[ItemVerdict, ...]:
    return tuple(item for item in found if item.verdict is verdict)


def _passed(attempts: Attempts, unverifiable: tuple[Item, ...]) -> _Step:
    ended = attempts.model_copy(update={"asked": (), "unverifiable": unverifiable, "over": True})
    return ended, Verified(unverifiable=unverifiable)


def _spent(attempts: Attempts, reasons: tuple[ItemVerdict, ...]) -> _Step:
    most = ATTEMPTS[attempts.tier]
    if attempts.attempt >= most:
        return attempts.model_copy(update={"asked": (), "unverifiable": (), "over": True}), GaveUp(reasons=reasons)
    again = attempts.attempt + 1
    waiting = attempts.model_copy(update={"attempt": again, "asked": (), "unverifiable": ()})
    return waiting, SentBack(attempt=again, of=most, reasons=reasons)


_OR: Final = "or with one JSON object of the schema that you are given now, and nothing around it"
_OTHERWISE: Final = "Or answer with one JSON object of the schema that you are given now, and nothing around it."

MEANING: Final = {
    Item.TASK: "the task is restated in its own words, and it is this task",
    Item.POSITION: "it knows where in the whole its work stands, and what comes before and after",
    Item.UPSTREAM: "what its work rests on is cited",
    Item.FILES: "the list of files is complete, and nothing in it is foreign to the task",
    Item.INTERFACES: "the signatures that it names are as they stand in the files",
    Item.OTHER_AGENTS: "what its work means for the work of others is said, and is right",
    Item.DOWNSTREAM: "the chain of consequences after its work is said, and leads where the code leads",
    Item.BREAKING: "what could break, and for whom, is said; nothing that obviously breaks is left out",
    Item.FACTS: "nothing that it says about the repository is false",
    Item.OMISSIONS: "nothing is left out that decides whether the task succeeds",
}
"""When an item holds."""

_SECTIONS: Final = (
    "Say what you understand before you begin; change nothing yet. Look things up with your tools first, as far as you "
    "need to. Then answer with a message\n\n"
    f"{FORMS['IMPACT-ANALYSIS']}\n\n"
    "and below it the sections task understanding, upstream context, files and functions impact map, interface "
    f"contracts, cross-agent impact, risk; {_OR}. What you cite, list and quote is looked up in the repository."
)


def impact(phase: int, attempt: int, of: int, items: Iterable[Item]) -> str:
    held_to = "\n".join(f"- {item}: {MEANING[item]}" for item in items)
    head = f"[IMPACT-ANALYSIS] Phase {phase} | Attempt {attempt}/{of}"
    return f"First, your impact analysis: {head}\n\n{_SECTIONS}\n\nIt is held to these items:\n\n{held_to}"


def rejected(reasons: Iterable[ItemVerdict]) -> str:
    return "\n".join(f"- {reason.item}: {brief(reason.detail) or MEANING[reason.item]}" for reason in reasons)


def challenge(phase: int, questions: Sequence[Question]) -> tuple[str, str]:
    """The question, alone and with how it is answered."""
    text = brief(" ".join(question.text for question in questions))
    line = write(Challenge(phase=phase, category=questions[0].category, question=text))
    return text, f"{line}\n\nAnswer it before you begin:\n\n{FORMS['CHALLENGE-RESPONSE']}\n\n{_OTHERWISE}"


def plan(phase: int, before: str) -> str:
    head = f"{before}\n\n" if before else ""
    return f"{head}Now say how you mean to work, before you begin:\n\n{FORMS['PLAN']}\n\n{_OTHERWISE}"


def update(sent: ContextUpdate) -> str:
    return (
        f"{write(sent)}\n\nThe person has changed what is wanted. Take it in, and acknowledge it:\n\n"
        f"{FORMS['ACK-UPDATE']}\n\n{_OTHERWISE}"
    )


def reverify(phase: int, target: str, asked: Asked, question: Question | None) -> str:
    reason = brief("; ".join(dict.fromkeys(cause.reason for cause in asked.causes)))
    text = brief(question.text) if question and asked.level is Level.QUESTION else None
    line = write(Reverify(phase=phase, level=asked.level, target=target, reason=reason, question=text))
    return f"{line}\n\n{_ANSWER[asked.level]}"


_ANSWER: Final = {
    Level.PING: f"Say where you are:\n\n{FORMS['SELF-LOCATE']}\n\n{_OTHERWISE}",
    Level.QUESTION: f"Answer it before you go on:\n\n{FORMS['REVERIFY-RESPONSE']}\n\n{_OTHERWISE}",
    Level.ANALYSIS: (
        "Answer before you go on, with a message `[REVERIFY-RESPONSE] Phase {N} | Level 3` and below it\n\n"
        "## Abbreviated Re-IA\n"
        "- RC-01 (Task Understanding): …\n- RC-04 (File List): …\n- RC-07 (Downstream Chain): …\n\n"
        "## Change Summary\n- Original IA claimed: …\n- Current reality: …\n"
        "- Impact: NONE, MINOR_ADJUSTMENT or SIGNIFICANT_DEVIATION\n\n"
        f"{_OR}. It is compared with what has really changed."
    ),
}


GO_ON: Final = "Go on with your work where you were."


def not_taken_in(version: str, why: str) -> str:
    return f"What {version} has added is not a part of your task: {brief(why)}. Leave it to whoever plans."


def unreadable(wanted: Wanted, why: str) -> str:
    return f"Your answer ({wanted}) could not be read: {why}"
