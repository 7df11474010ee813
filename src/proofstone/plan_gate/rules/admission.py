"""Whether a plan may reach implementation. It must have gone through the gate as it is, byte by byte. What agents have
said of it goes before what the rules say alone.

| the last word about the plan | may it |
|---|---|
| PROCEED, and it names no mitigations | yes |
| PROCEED or REVISE, and its mitigations were taken in, by the engine and with nothing else changed | yes |
| PROCEED or REVISE with mitigations that were not, RETHINK, a question that waits, none | no |

Taking what a verdict asked for into the plan: into its context, which every executor is shown. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.roles.models.plan_gate_records import Challenge, ChallengeStatus, Origin, PlanSeverity
from proofstone.documents.markdown import visible
from proofstone.plan_gate.models import PlanVerdict
from proofstone.plans.models import Plan
from proofstone.plans.reading import read_plan


@dataclass(frozen=True)
class Judged:
    """A verdict on a plan."""

    run_id: str
    digest: str
    verdict: PlanVerdict | None
    """None: a question is waiting."""
    mitigations: bool = False
    """Whether there is something to be taken in: whoever does the work would not know of it."""
    alone: bool = False
    """The rules decided alone. Where somebody was asked about the same plan, that does not count."""
    forced: bool = False
    """It had to end before it converged: it may not be taken for more than it is."""


@dataclass(frozen=True)
class Mitigated:
    """A plan into which the engine has written the mitigations of a verdict."""

    run_id: str
    digest: str
    """Of the plan as it is since."""


@dataclass(frozen=True)
class NotAdmitted:
    why: str
    next: str
    """What would let it through, as a command without the name of the plan; empty: to verify it."""


def why_not_admitted(digest: str, judged: Sequence[Judged], mitigated: Sequence[Mitigated]) -> NotAdmitted | None:
    """Why the plan with that digest may not be implemented; None if it may. The last word counts."""
    own = [item for item in judged if item.digest == digest]
    own = [item for item in own if not item.alone] or own
    if own:
        return _by_its_verdict(own[-1])
    taken_in = [item.run_id for item in mitigated if item.digest == digest]
    verdicts = {item.run_id: item.verdict for item in judged if not item.forced}
    if any(verdicts.get(run_id) in (PlanVerdict.PROCEED, PlanVerdict.REVISE) for run_id in taken_in):
        return None
    return NotAdmitted("it has not gone through the plan gate as it is", "")


def _by_its_verdict(last: Judged) -> NotAdmitted | None:
    take_in = f"proofstone verify-plan --apply-mitigations {last.run_id}"
    match last.verdict:
        case None:
            return NotAdmitted(
                f"a question about it is waiting (run {last.run_id})", f"proofstone verify-plan --resume {last.run_id}"
            )
        case PlanVerdict.PROCEED:
            return NotAdmitted("its mitigations are not taken in", take_in) if last.mitigations else None
        case PlanVerdict.REVISE if last.mitigations and not last.forced:
            return NotAdmitted(f"the plan gate says REVISE (run {last.run_id})", take_in)
    return NotAdmitted(f"the plan gate says {last.verdict} (run {last.run_id})", "")


_OPENING: Final = re.compile(r"^[ \t]{0,40}<context\b[^>\n]{0,200}>", re.MULTILINE | re.IGNORECASE)
_TAG: Final = re.compile(r"</?context>", re.IGNORECASE)
_TITLE: Final = re.compile(r"^#{1,6}[ \t]+context[ \t:]*$\n?", re.MULTILINE | re.IGNORECASE)
_FIRST_TASK: Final = re.compile(r"^[ \t]*<task\b", re.MULTILINE | re.IGNORECASE)
_HEADING: Final = "Mitigations that the plan gate asked for"


def to_take_in(challenges: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Challenges whose answer is to be part of the plan: those that stand, and those that a mitigation has settled.
    What the rules advise is for the author: it is followed in the plan's text, not quoted there."""
    settled = (ChallengeStatus.RESOLVED, ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED)
    return tuple(item for item in _grave(challenges) if _is_mitigated(item) and item.status in settled)


def without_mitigation(challenges: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Challenges that stand and that nothing which could be taken in would answer."""
    undiscussed = ChallengeStatus.DEFERRED_SURFACED
    return tuple(
        item
        for item in _grave(challenges)
        if item.status is undiscussed or (item.status.is_open and not _is_mitigated(item))
    )


def with_mitigations(text: str, challenges: Iterable[Challenge], run_id: str) -> str:
    """The plan with them in it, and otherwise as it was."""
    items = "\n".join(
        f"- {challenge.id}: {visible(' '.join(challenge.mitigation.split()))}" for challenge in challenges
    )
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
    return (challenge for challenge in challenges if challenge.severity is not PlanSeverity.MINOR)


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
