"""Boundary violations: a message off the routes, a tool or a path beyond the role, a result from the wrong hand.

That an attempt was refused does not make it none: who tries the fence is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from proofstone.contracts.agent import ActivityKind, RefusalRule
from proofstone.contracts.audit import AuditFinding, Detection
from proofstone.core.agent.routes import REFUSED, why_not
from proofstone.core.agent.tool_rules import shortened
from proofstone.core.audit.observed import NAME, ObservedRun, part, text

FENCES: Final = frozenset((RefusalRule.UNLISTED, RefusalRule.OUTSIDE, RefusalRule.SCOPE, RefusalRule.SECRET))
"""Refusals that are about what a role may do; the others are slips of the pen and spent budgets."""

_VIOLATION: Final = Detection.BOUNDARY_VIOLATION


def boundary_violations(run: ObservedRun) -> Iterator[AuditFinding]:
    yield from _refused_messages(run)
    yield from _messages_off_route(run)
    yield from _refused_tools(run)
    yield from _refused_to_programs(run)


def _refused_messages(run: ObservedRun) -> Iterator[AuditFinding]:
    for event in run.happened(REFUSED):
        sender, recipient, type, why = (text(event.row.payload, key) for key in ("from", "to", "type", "why"))
        detail = f"{type} to {recipient} was refused: {why}"
        yield run.finding(_VIOLATION, _rule(type), [event], role=sender, detail=detail)


def _messages_off_route(run: ObservedRun) -> Iterator[AuditFinding]:
    """Messages that the bus would not have let through: somebody wrote them past it."""
    for said in run.envelopes:
        if why := why_not(said.sender, said.recipient, said.type):
            detail = f"{said.type} to {said.recipient} stands in the ledger: {why}"
            yield run.finding(_VIOLATION, _rule(said.type), [said], role=said.sender, detail=detail)


def _refused_tools(run: ObservedRun) -> Iterator[AuditFinding]:
    for said in run.said("ToolResult"):
        result = part(said.payload, "result")
        rule, name, shown = (text(result, key) for key in ("refused", "name", "text"))
        if rule in FENCES:
            detail = f"{shortened(name, NAME)} was refused: {shown.strip().partition(chr(10))[0]}"
            yield run.finding(_VIOLATION, rule, [said], role=said.recipient, detail=detail)


def _refused_to_programs(run: ObservedRun) -> Iterator[AuditFinding]:
    """What coding agents tried by themselves and were kept from."""
    for said in run.said("Activity"):
        activity = part(said.payload, "activity")
        kind, name, shown = (text(activity, key) for key in ("kind", "name", "text"))
        if kind == ActivityKind.REFUSED:
            detail = f"{shortened(name, NAME)} was refused: {shown.strip().partition(chr(10))[0]}"
            yield run.finding(_VIOLATION, "program", [said], role=said.sender, detail=detail)


def _rule(type: str) -> str:
    return "final-result" if type == "FinalResult" else "off-route"
