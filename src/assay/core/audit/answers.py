"""Roles that were asked and never answered, and answers that were not true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue, ValidationError

from assay.contracts.audit import AuditFinding, Detection
from assay.contracts.bus import Envelope
from assay.contracts.plan_gate.report import HeldAgainst
from assay.core.audit.observed import Happened, ObservedRun, part, task_of, text, texts
from assay.core.gate.evidence import CLAIM_MISMATCH
from assay.core.plan_gate.findings import claimed


def silent_roles(run: ObservedRun) -> Iterator[AuditFinding]:
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
            since = "it was asked again" if again else "the run has ended"
            detail = f"dispatch {key[1]} has neither an output nor a fault, and {since}"
            yield run.finding(Detection.SILENT_ROLE, "no-answer", [said], role=said.recipient, detail=detail)


def claim_mismatches(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _of_executors(run)
    yield from _about_plans(run)


def _of_executors(run: ObservedRun) -> Iterator[AuditFinding]:
    """Recorded with the evidence where the attempt passed its checks, with the failure where it did not."""
    for event in run.happened("task.checked", "task.failed"):
        if details := (*_in_evidence(event), *_in_failure(event)):
            detail = "; ".join(details)
            yield run.finding(Detection.CLAIM_MISMATCH, CLAIM_MISMATCH, [event], role="executor", detail=detail)


def _about_plans(run: ObservedRun) -> Iterator[AuditFinding]:
    """What agents of the plan gate claimed, and the engine looked up and did not find to be so."""
    for event in run.happened("plan.held-against"):
        if (held := _held(event)) is not None:
            detail = f"claimed for {held.about}: {claimed(held.looked.claim)}; seen: {held.looked.saw}"
            yield run.finding(Detection.CLAIM_MISMATCH, CLAIM_MISMATCH, [event], role=held.agent, detail=detail)


def _held(event: Happened) -> HeldAgainst | None:
    """None: it is not written in our form."""
    try:
        return HeldAgainst.model_validate(dict(event.row.payload))
    except ValidationError:
        return None


def _dispatch(agent: str, said: Envelope) -> tuple[str, str]:
    """Who was asked, and the id by which the answers name their dispatch."""
    return agent, text(said.payload, "dispatch")


def _same_errand(one: Envelope, other: Envelope) -> bool:
    return (one.recipient, task_of(one)) == (other.recipient, task_of(other))


def _in_evidence(event: Happened) -> tuple[str, ...]:
    return texts(part(event.row.payload, "event", "evidence"), "mismatches")


def _in_failure(event: Happened) -> Iterator[str]:
    reasons = part(event.row.payload, "event", "failure").get("reasons")
    for reason in _objects(reasons):
        if text(reason, "check") == CLAIM_MISMATCH:
            yield text(reason, "detail")


def _objects(value: JsonValue) -> Sequence[dict[str, JsonValue]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
