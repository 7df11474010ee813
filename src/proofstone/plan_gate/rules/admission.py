"""Decide whether a plan may be implemented, and write the mitigations of a verdict into a plan. Pure.

A plan must have passed the gate exactly as it is, byte by byte. A verdict with agents takes precedence over a verdict
of the rules alone.

    | the last verdict on the plan | may it be implemented |
    |---|---|
    | PROCEED without mitigations | yes |
    | PROCEED or REVISE, and Proofstone added the mitigations and changed nothing else | yes |
    | PROCEED or REVISE with mitigations that were not added, RETHINK, an open question, none | no |

Mitigations are added to the plan's context, which every executor sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.roles.models.plan_gate_records import Challenge, ChallengeOrigin, ChallengeStatus, PlanSeverity
from proofstone.documents.markdown import make_visible
from proofstone.plan_gate.models import PlanVerdict
from proofstone.plans.models import Plan
from proofstone.plans.parser import read_plan


@dataclass(frozen=True)
class PlanJudgement:
    """A verdict on a plan."""

    run_id: str
    digest: str
    verdict: PlanVerdict | None
    """None while a question is open."""
    has_mitigations: bool = False
    """Whether there are mitigations to add. Without that, the executor would not know them."""
    is_by_rules_alone: bool = False
    """The rules decided alone. This verdict does not count if agents were asked about the same plan."""
    is_forced: bool = False
    """The run had to end before it converged, so the verdict must not count for more."""


@dataclass(frozen=True)
class MitigatedPlan:
    """A plan to which Proofstone added the mitigations of a verdict."""

    run_id: str
    digest: str
    """Digest of the plan with the mitigations."""


@dataclass(frozen=True)
class AdmissionRefusal:
    """Why a plan may not be implemented, and what to do about it."""

    why: str
    next_command: str
    """The command that would admit it, without the name of the plan; "" if it must be verified."""


def explain_not_admitted(
    digest: str, judged: Sequence[PlanJudgement], mitigated: Sequence[MitigatedPlan]
) -> AdmissionRefusal | None:
    """Explain why the plan with this digest may not be implemented; None if it may. The last verdict counts."""
    judgements = [judgement for judgement in judged if judgement.digest == digest]
    judgements = [judgement for judgement in judgements if not judgement.is_by_rules_alone] or judgements
    if judgements:
        return _explain_verdict(judgements[-1])
    mitigated_runs = [judgement.run_id for judgement in mitigated if judgement.digest == digest]
    verdicts = {judgement.run_id: judgement.verdict for judgement in judged if not judgement.is_forced}
    if any(verdicts.get(run_id) in (PlanVerdict.PROCEED, PlanVerdict.REVISE) for run_id in mitigated_runs):
        return None
    return AdmissionRefusal("it has not gone through the plan gate as it is", "")


def _explain_verdict(last: PlanJudgement) -> AdmissionRefusal | None:
    command = f"proofstone verify-plan --apply-mitigations {last.run_id}"
    match last.verdict:
        case None:
            return AdmissionRefusal(
                f"a question about it is waiting (run {last.run_id})", f"proofstone verify-plan --resume {last.run_id}"
            )
        case PlanVerdict.PROCEED:
            return (
                AdmissionRefusal("its mitigations are not in the plan yet", command) if last.has_mitigations else None
            )
        case PlanVerdict.REVISE if last.has_mitigations and not last.is_forced:
            return AdmissionRefusal(f"the plan gate says REVISE (run {last.run_id})", command)
    return AdmissionRefusal(f"the plan gate says {last.verdict} (run {last.run_id})", "")


_OPENING: Final = re.compile(r"^[ \t]{0,40}<context\b[^>\n]{0,200}>", re.MULTILINE | re.IGNORECASE)
_TAG: Final = re.compile(r"</?context>", re.IGNORECASE)
_TITLE: Final = re.compile(r"^#{1,6}[ \t]+context[ \t:]*$\n?", re.MULTILINE | re.IGNORECASE)
_FIRST_TASK: Final = re.compile(r"^[ \t]*<task\b", re.MULTILINE | re.IGNORECASE)
_HEADING: Final = "Mitigations that the plan gate asked for"


def select_mitigations(challenges: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Return the challenges whose mitigation should be part of the plan: open ones, and those that a mitigation
    settled.

    Hints of the rules are for the author, who follows them in the text of the plan; they are not quoted there.
    """
    settled = (ChallengeStatus.RESOLVED, ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED)
    return tuple(
        challenge
        for challenge in _select_serious(challenges)
        if _is_mitigated(challenge) and challenge.status in settled
    )


def select_unmitigated(challenges: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Return the open challenges for which there is no mitigation to add."""
    undiscussed = ChallengeStatus.DEFERRED_SURFACED
    return tuple(
        challenge
        for challenge in _select_serious(challenges)
        if challenge.status is undiscussed or (challenge.status.is_open and not _is_mitigated(challenge))
    )


def add_mitigations(text: str, challenges: Iterable[Challenge], run_id: str) -> str:
    """Return the plan with the mitigations added, and otherwise unchanged."""
    items = "\n".join(
        f"- {challenge.id}: {make_visible(' '.join(challenge.mitigation.split()))}" for challenge in challenges
    )
    body = f"(run {run_id}):\n\n{items}\n"
    section = f"**{_HEADING}** {body}"
    if (end := _find_context_end(text)) is not None:
        return f"{text[:end].rstrip()}\n\n{section}{text[end:]}"
    if title := _TITLE.search(text):
        return f"{text[: title.end()]}\n{section}{text[title.end() :]}"
    if first := _FIRST_TASK.search(text):
        return f"{text[: first.start()]}<context>\n{section}</context>\n\n{text[first.start() :]}"
    return f"{text.rstrip()}\n\n## {_HEADING}\n\n{body}"


def _find_context_end(text: str) -> int | None:
    """Return the end of the first complete context element."""
    opening = _OPENING.search(text)
    end = text.lower().find("</context>", opening.end()) if opening else -1
    return end if end >= 0 else None


def _select_serious(challenges: Iterable[Challenge]) -> Iterable[Challenge]:
    return (challenge for challenge in challenges if challenge.severity is not PlanSeverity.MINOR)


def _is_mitigated(challenge: Challenge) -> bool:
    return bool(challenge.mitigation.strip()) and challenge.origin is not ChallengeOrigin.RULES


def is_same_plan(before: str, after: str) -> bool:
    """Whether only the context differs, and it contains everything that was added.

    A plan with unusual text must not be changed by accident, nor be admitted with mitigations that no executor sees.
    """
    old, old_problems = read_plan(before, "")
    new, new_problems = read_plan(after, "")
    if old is None or new is None:
        return old is new
    if len(new_problems) > len(old_problems):
        return False
    is_added = all(line in new.context for line in _split_lines(after) - _split_lines(before))
    return _without_context(old) == _without_context(new) and old.context in new.context and is_added


def _split_lines(text: str) -> set[str]:
    return {line.strip() for line in _TAG.sub("", text).splitlines()}


def _without_context(plan: Plan) -> Plan:
    tasks = tuple(task.model_copy(update={"line": 1}) for task in plan.tasks)
    return plan.model_copy(update={"tasks": tasks, "context": ""})
