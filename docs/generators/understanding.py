"""What agents are asked, when, and what follows: from the tables of `proofstone.supervision.rules`."""

from __future__ import annotations

from collections.abc import Mapping

from proofstone.supervision.models.ladder import AnswerResult
from proofstone.supervision.models.understanding import AnalysisItem, SupervisionTier
from proofstone.supervision.rules.monitor_state import TRIGGERS, SupervisionLimits
from proofstone.supervision.rules.monitor_step import LADDER_MOVES, LadderMove
from proofstone.supervision.rules.understanding import ENGINE_ITEMS, ITEM_CRITERIA, ITEMS_BY_TIER, MAX_ATTEMPTS_BY_TIER
from proofstone.supervision.rules.wire import MESSAGE_FORMS

ANSWERS: Mapping[AnswerResult, str] = {
    AnswerResult.FITS: "fits what was seen",
    AnswerResult.ANOMALY: "does not fit what was seen",
    AnswerResult.UNDERSTOOD: "shows that it understands",
    AnswerResult.GAP: "shows a gap, or is wrong",
    AnswerResult.UNVERIFIABLE: "nobody can judge",
    AnswerResult.INTACT: "is true, and there is no deviation",
    AnswerResult.JUSTIFIED: "names the deviation as it is",
    AnswerResult.UNJUSTIFIED: "hides it, or is wrong",
    AnswerResult.UNANSWERED: "does not come, or cannot be read",
}
MOVES: Mapping[LadderMove, str] = {
    LadderMove.RESUME: "it goes on",
    LadderMove.UPDATE: "what it needs is added to its task, and it goes on",
    LadderMove.ESCALATE: "one level up",
    LadderMove.AGAIN: f"it is asked again; after {SupervisionLimits().pings} times, another agent begins",
    LadderMove.CORRECT: f"it is told what is wrong and asked again; after {SupervisionLimits().submissions} "
    f"times, another agent begins",
}


def triggers() -> str:
    rows = [f"| {trigger} {row.title} | RV-{row.level:d} | {row.when} |" for trigger, row in TRIGGERS.items()]
    return "\n".join(["| trigger | level | when |", "|---|---|---|", *rows, ""])


def ladder() -> str:
    rows = [f"| RV-{level:d} | {ANSWERS[result]} | {MOVES[move]} |" for (level, result), move in LADDER_MOVES.items()]
    return "\n".join(["| level | the answer | then |", "|---|---|---|", *rows, ""])


def wire_lines() -> str:
    return "\n".join(["```text", *MESSAGE_FORMS.values(), "```", ""])


def items() -> str:
    head = ["| item | holds if | seen by | researcher | planner, designer | executor |", "|---|---|---|---|---|---|"]
    tiers = (SupervisionTier.RESEARCHER, SupervisionTier.ARCHITECT, SupervisionTier.IMPLEMENTER)
    rows = []
    for item in AnalysisItem:
        held = ["yes" if item in ITEMS_BY_TIER[tier] else "–" for tier in tiers]
        by = "Proofstone" if item in ENGINE_ITEMS else "the judge"
        rows.append(f"| {item} | {ITEM_CRITERIA[item]} | {by} | {' | '.join(held)} |")
    attempts = " | ".join(str(MAX_ATTEMPTS_BY_TIER[tier]) for tier in tiers)
    return "\n".join([*head, *rows, f"| | attempts | | {attempts} |", ""])
