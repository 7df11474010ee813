"""What agents are asked, when, and what follows: from the tables of `proofstone.supervision.rules`."""

from __future__ import annotations

from collections.abc import Mapping

from proofstone.supervision.models.ladder import Result
from proofstone.supervision.models.understanding import Item, Tier
from proofstone.supervision.rules.course import LADDER, Move
from proofstone.supervision.rules.monitor_state import TRIGGERS, Limits
from proofstone.supervision.rules.understanding import ATTEMPTS, ITEMS, LOOKED_UP, MEANING
from proofstone.supervision.rules.wire import FORMS

ANSWERS: Mapping[Result, str] = {
    Result.FITS: "fits what was seen",
    Result.ANOMALY: "does not fit what was seen",
    Result.UNDERSTOOD: "shows that it understands",
    Result.GAP: "shows a gap, or is wrong",
    Result.UNVERIFIABLE: "nobody can judge",
    Result.INTACT: "is true, and there is no deviation",
    Result.JUSTIFIED: "names the deviation as it is",
    Result.UNJUSTIFIED: "hides it, or is wrong",
    Result.UNANSWERED: "does not come, or cannot be read",
}
MOVES: Mapping[Move, str] = {
    Move.RESUME: "it goes on",
    Move.UPDATE: "what it needs is added to its task, and it goes on",
    Move.ESCALATE: "one level up",
    Move.AGAIN: f"it is asked again; after {Limits().pings} times, another agent begins",
    Move.CORRECT: f"it is told what is wrong and asked again; after {Limits().submissions} times, another agent begins",
}


def triggers() -> str:
    rows = [f"| {trigger} {row.title} | RV-{row.level:d} | {row.when} |" for trigger, row in TRIGGERS.items()]
    return "\n".join(["| trigger | level | when |", "|---|---|---|", *rows, ""])


def ladder() -> str:
    rows = [f"| RV-{level:d} | {ANSWERS[result]} | {MOVES[move]} |" for (level, result), move in LADDER.items()]
    return "\n".join(["| level | the answer | then |", "|---|---|---|", *rows, ""])


def wire_lines() -> str:
    return "\n".join(["```text", *FORMS.values(), "```", ""])


def items() -> str:
    head = ["| item | holds if | seen by | researcher | planner, designer | executor |", "|---|---|---|---|---|---|"]
    tiers = (Tier.RESEARCHER, Tier.ARCHITECT, Tier.IMPLEMENTER)
    rows = []
    for item in Item:
        held = ["yes" if item in ITEMS[tier] else "–" for tier in tiers]
        by = "Proofstone" if item in LOOKED_UP else "the judge"
        rows.append(f"| {item} | {MEANING[item]} | {by} | {' | '.join(held)} |")
    attempts = " | ".join(str(ATTEMPTS[tier]) for tier in tiers)
    return "\n".join([*head, *rows, f"| | attempts | | {attempts} |", ""])
