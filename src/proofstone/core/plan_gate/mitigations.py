"""Taking what a verdict asked for into the plan: into its context, which every executor is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from proofstone.contracts.plan import Plan
from proofstone.contracts.plan_gate.record import Challenge, ChallengeStatus, Origin, PlanSeverity
from proofstone.core.gate.page_text import visible
from proofstone.core.plan.reading import read_plan

_OPENING: Final = re.compile(r"^[ \t]{0,40}<context\b[^>\n]{0,200}>", re.MULTILINE | re.IGNORECASE)
_TAG: Final = re.compile(r"</?context>", re.IGNORECASE)
_TITLE: Final = re.compile(r"^#{1,6}[ \t]+context[ \t:]*$\n?", re.MULTILINE | re.IGNORECASE)
_FIRST_TASK: Final = re.compile(r"^[ \t]*<task\b", re.MULTILINE | re.IGNORECASE)
_HEADING: Final = "Mitigations that the plan gate asked for"


def to_take_in(challenges: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Challenges whose answer is to be part of the plan: those that stand, and those that a mitigation has settled.
    What the rules advise is for the author: it is followed in the plan's text, not quoted there."""
    settled = (ChallengeStatus.RESOLVED, ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED)
    return tuple(one for one in _grave(challenges) if _is_mitigated(one) and one.status in settled)


def without_mitigation(challenges: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Challenges that stand and that nothing which could be taken in would answer."""
    undiscussed = ChallengeStatus.DEFERRED_SURFACED
    return tuple(
        one
        for one in _grave(challenges)
        if one.status is undiscussed or (one.status.is_open and not _is_mitigated(one))
    )


def with_mitigations(text: str, challenges: Iterable[Challenge], run_id: str) -> str:
    """The plan with them in it, and otherwise as it was."""
    items = "\n".join(f"- {one.id}: {visible(' '.join(one.mitigation.split()))}" for one in challenges)
    said = f"(run {run_id}):\n\n{items}\n"
    section = f"**{_HEADING}** {said}"
    if (end := _end_of_context(text)) is not None:
        return f"{text[:end].rstrip()}\n\n{section}{text[end:]}"
    if title := _TITLE.search(text):
        return f"{text[: title.end()]}\n{section}{text[title.end() :]}"
    if first := _FIRST_TASK.search(text):
        return f"{text[: first.start()]}<context>\n{section}</context>\n\n{text[first.start() :]}"
    return f"{text.rstrip()}\n\n## {_HEADING}\n\n{said}"


def _end_of_context(text: str) -> int | None:
    """Where the first context that is one ends."""
    opening = _OPENING.search(text)
    end = text.lower().find("</context>", opening.end()) if opening else -1
    return end if end >= 0 else None


def _grave(challenges: Iterable[Challenge]) -> Iterable[Challenge]:
    return (one for one in challenges if one.severity is not PlanSeverity.MINOR)


def _is_mitigated(challenge: Challenge) -> bool:
    return bool(challenge.mitigation.strip()) and challenge.origin is not Origin.RULES


def is_same_plan(before: str, after: str) -> bool:
    """Whether nothing differs but the context, and all that was added stands in it: a plan whose text is unusual must
    not be changed by accident, nor be let through with mitigations that no executor is shown."""
    old, old_problems = read_plan(before, "")
    new, new_problems = read_plan(after, "")
    if old is None or new is None:
        return old is new
    if len(new_problems) > len(old_problems):
        return False
    taken_in = all(line in new.context for line in _lines(after) - _lines(before))
    return _without_context(old) == _without_context(new) and old.context in new.context and taken_in


def _lines(text: str) -> set[str]:
    return {line.strip() for line in _TAG.sub("", text).splitlines()}


def _without_context(plan: Plan) -> Plan:
    tasks = tuple(task.model_copy(update={"line": 1}) for task in plan.tasks)
    return plan.model_copy(update={"tasks": tasks, "context": ""})
