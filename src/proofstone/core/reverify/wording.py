"""How agents are asked, in words: the line between brackets first, then how it can be answered. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from proofstone.contracts.reverify.context import ContextUpdate
from proofstone.contracts.reverify.ladder import Asked, Level, Question
from proofstone.contracts.reverify.messages import Challenge, Reverify
from proofstone.contracts.reverify.text import brief
from proofstone.contracts.reverify.understanding import Item, ItemVerdict
from proofstone.core.reverify.attendance import Wanted
from proofstone.core.reverify.wire import FORMS, write

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
    return "\n".join(f"- {one.item}: {brief(one.detail) or MEANING[one.item]}" for one in reasons)


def challenge(phase: int, questions: Sequence[Question]) -> tuple[str, str]:
    """The question, alone and with how it is answered."""
    text = brief(" ".join(one.text for one in questions))
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
    reason = brief("; ".join(dict.fromkeys(one.reason for one in asked.causes)))
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
