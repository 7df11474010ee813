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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from proofstone.contracts.reverify.understanding import (
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
from proofstone.contracts.verdict import Verdict

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
    unverifiable = tuple(one.item for one in _of(found, Verdict.UNVERIFIABLE))
    match outcome(len(failed)):
        case Outcome.VERIFIED:
            return _passed(attempts, unverifiable)
        case Outcome.QUESTION:
            ordered = tuple(sorted(failed, key=lambda one: one.item not in MANDATORY))
            asked = tuple(one.item for one in ordered)
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
    more = {one.item for one in _of(found, Verdict.UNVERIFIABLE)}.union(attempts.unverifiable)
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
    for one in sorted(verdicts, key=lambda one: _WORST_FIRST.index(one.verdict)):
        worst.setdefault(one.item, one)
    return tuple(worst.get(item) or ItemVerdict(item=item, verdict=missing, detail=why) for item in items)


def _of(found: Iterable[ItemVerdict], verdict: Verdict) -> tuple[ItemVerdict, ...]:
    return tuple(one for one in found if one.verdict is verdict)


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
