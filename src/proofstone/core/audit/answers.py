"""Roles that were asked and never answered.

A role is asked by a dispatch, or by a contract that another role hands to it in the control loop. Some are asked in no
other way: the controller is code, and a validator is not dispatched where the engine can look itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from proofstone.contracts.audit import AuditFinding, Detection
from proofstone.contracts.bus import Envelope
from proofstone.core.audit.observed import ObservedRun, task_of, text

ANSWERED_BY: Final[Mapping[str, frozenset[str]]] = {
    "ExecutionResult": frozenset(("CorrectionSignal", "SubTaskOutcome")),
    "ReplanRequest": frozenset(("PlanDirective", "FinalResult")),
    "OutcomeSummary": frozenset(("PlanDirective", "FinalResult")),
    "MemoryQuery": frozenset(("MemoryEntries",)),
}
"""Contracts that are handed over, and what whoever gets one must say to it."""

THROUGH: Final = frozenset(("passed", "failed"))
"""Ends of a run that has gone through its loop. Where it was only stopped, somebody may be about to answer."""


def silent_roles(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _unanswered_dispatches(run)
    yield from _unanswered_contracts(run)


def _unanswered_dispatches(run: ObservedRun) -> Iterator[AuditFinding]:
    """A dispatch without an answer, though the run has ended since, or has made another to the same role for the same
    task. While neither is so, it may still be thinking; begun anew after a crash it is the same dispatch."""
    answered = {_dispatch(said.sender, said) for said in run.said("Output", "Fault")}
    asked = {_dispatch(said.recipient, said): said for said in run.said("Dispatch")}
    ended = max((event.seq for event in run.happened("run.finished")), default=0)
    for key, said in asked.items():
        if key in answered:
            continue
        again = any(later.seq > said.seq and _same_errand(said, later) for later in asked.values())
        if again or ended > said.seq:
            yield _silent(run, said, f"dispatch {key[1]} has neither an output nor a fault", again=again)


def _unanswered_contracts(run: ObservedRun) -> Iterator[AuditFinding]:
    """A contract to which nothing was said before the next one like it, or before the run had gone through."""
    waiting: dict[tuple[str, str | None], Envelope] = {}
    for said in run.envelopes:
        waiting = {key: asked for key, asked in waiting.items() if not _answers(said, asked)}
        if said.type in ANSWERED_BY:
            key = said.type, task_of(said)
            if key in waiting:
                yield _silent(run, waiting[key], _without_answer(waiting[key]), again=True)
            waiting[key] = said
    ends = (event.seq for event in run.happened("run.finished") if text(event.row.payload, "outcome") in THROUGH)
    ended = max(ends, default=0)
    for asked in waiting.values():
        if ended > asked.seq:
            yield _silent(run, asked, _without_answer(asked), again=False)


def _silent(run: ObservedRun, asked: Envelope, what: str, *, again: bool) -> AuditFinding:
    detail = f"{what}, and {'it was asked again' if again else 'the run has ended'}"
    return run.finding(Detection.SILENT_ROLE, "no-answer", [asked], role=asked.recipient, detail=detail)


def _without_answer(asked: Envelope) -> str:
    return f"the {asked.type} of {asked.sender} has no answer"


def _answers(said: Envelope, asked: Envelope) -> bool:
    heard = said.sender == asked.recipient and said.type in ANSWERED_BY[asked.type]
    return heard and task_of(said) == task_of(asked)


def _dispatch(agent: str, said: Envelope) -> tuple[str, str]:
    """Who was asked, and the id by which the answers name their dispatch."""
    return agent, text(said.payload, "dispatch")


def _same_errand(one: Envelope, other: Envelope) -> bool:
    return (one.recipient, task_of(one)) == (other.recipient, task_of(other))
