"""Taking what a verdict asked for into the plan: into its context, which every executor is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from assay.contracts.plan import Plan
from assay.contracts.plan_gate.record import Challenge, ChallengeStatus, PlanSeverity
from assay.core.plan.reading import read_plan

_CONTEXT: Final = re.compile(
    r"^[ \t]*<context\b[^>]*>.*?(?P<closing>[ \t]*</context>)", re.MULTILINE | re.IGNORECASE | re.DOTALL
)
_TAG: Final = re.compile(r"</?context>", re.IGNORECASE)
_TITLE: Final = re.compile(r"^#{1,6}[ \t]+context[ \t:]*$\n?", re.MULTILINE | re.IGNORECASE)
_FIRST_TASK: Final = re.compile(r"^[ \t]*<task\b", re.MULTILINE | re.IGNORECASE)
_HEADING: Final = "Mitigations that the plan gate asked for"


def to_take_in(challenges: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Challenges whose answer is to be part of the plan: those that stand, and those that a mitigation has settled."""
    settled = (ChallengeStatus.RESOLVED, ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED)
    return tuple(
        one
        for one in challenges
        if one.mitigation.strip() and one.status in settled and one.severity is not PlanSeverity.MINOR
    )


def without_mitigation(challenges: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Challenges that stand and that nothing which could be taken in would answer."""
    grave = (one for one in challenges if one.severity is not PlanSeverity.MINOR)
    undiscussed = ChallengeStatus.DEFERRED_SURFACED
    return tuple(
        one
        for one in grave
        if (one.status.is_open or one.status is undiscussed) and not (one.status.is_open and one.mitigation.strip())
    )


def with_mitigations(text: str, challenges: Iterable[Challenge], run_id: str) -> str:
    """The plan with them in it, and otherwise as it was."""
    items = "\n".join(f"- {one.id}: {' '.join(one.mitigation.split())}" for one in challenges)
    section = f"**{_HEADING}** (run {run_id}):\n\n{items}\n"
    if context := _CONTEXT.search(text):
        end = context.start("closing")
        return f"{text[:end].rstrip()}\n\n{section}{text[end:]}"
    if title := _TITLE.search(text):
        return f"{text[: title.end()]}\n{section}{text[title.end() :]}"
    if first := _FIRST_TASK.search(text):
        return f"{text[: first.start()]}<context>\n{section}</context>\n\n{text[first.start() :]}"
    return f"{text.rstrip()}\n\n## {_HEADING}\n\n{section}"


def is_same_plan(before: str, after: str) -> bool:
    """Whether nothing differs but the context, and all that was added stands in it: a plan whose text is unusual must
    not be changed by accident, nor be let through with mitigations that no executor is shown."""
    old, _ = read_plan(before, "")
    new, _ = read_plan(after, "")
    if old is None or new is None:
        return old is new
    taken_in = all(line in new.context for line in _lines(after) - _lines(before))
    return _without_context(old) == _without_context(new) and old.context in new.context and taken_in


def _lines(text: str) -> set[str]:
    return {line.strip() for line in _TAG.sub("", text).splitlines()}


def _without_context(plan: Plan) -> Plan:
    tasks = tuple(task.model_copy(update={"line": 1}) for task in plan.tasks)
    return plan.model_copy(update={"tasks": tasks, "context": ""})
