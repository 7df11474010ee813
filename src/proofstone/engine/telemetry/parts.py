"""A run and the runs that were parts of it, as far as their cost is concerned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from proofstone.adapters.ledger import Ledger, Stored
from proofstone.contracts.evidence import CheckRow
from proofstone.contracts.rows import EventRow, MessageRow, TelemetryRow
from proofstone.engine.begun import CHILD
from proofstone.engine.telemetry.dispatches import Dispatch, dispatches_in
from proofstone.errors import InputError

GATE: Final = "gate"
PLAN_GATE: Final = "verify-plan"


@dataclass(frozen=True)
class Part:
    run_id: str
    command: str
    """That has begun it: `gate`."""
    name: str
    """`plan 1`, `gate 2`; empty: the run itself."""
    messages: list[Stored[MessageRow]]
    steps: list[Stored[TelemetryRow]]
    checks: list[Stored[CheckRow]]
    events: list[Stored[EventRow]]

    @cached_property
    def dispatches(self) -> list[Dispatch]:
        return dispatches_in(self.messages)

    @property
    def outcome(self) -> str:
        """Empty: it has not ended, or goes on."""
        last = [one.row for one in self.events if one.row.type in ("run.started", "run.resumed", "run.finished")][-1:]
        return str(last[0].payload.get("outcome", "")) if last else ""


def parts_of(ledger: Ledger, run_id: str) -> tuple[Part, ...]:
    """The run itself first, then its parts in the order in which they were begun."""
    return tuple(_parts(ledger, run_id))


def _parts(ledger: Ledger, run_id: str) -> Iterator[Part]:
    own = read_part(ledger, run_id)
    yield own
    begun = [one.row.payload for one in own.events if one.row.type == CHILD]
    named = {str(said["run_id"]): f"{said['kind']} {said['iteration']}" for said in begun}
    for id, name in named.items():
        # It is on record before it begins, so that one that never began has no rows.
        if ledger.read(EventRow, run_id=id, limit=1):
            yield read_part(ledger, id, name)


def read_part(ledger: Ledger, run_id: str, name: str = "") -> Part:
    events = ledger.read(EventRow, run_id=run_id)
    messages = ledger.read(MessageRow, run_id=run_id)
    checks = ledger.read(CheckRow, run_id=run_id)
    if not events and not messages and not checks:
        raise InputError(f"{run_id}: is no run that the ledger knows", hint="`proofstone ledger show` lists the runs")
    commands = [str(one.row.payload.get("command", "")) for one in events if one.row.type == "run.started"]
    return Part(
        run_id=run_id,
        command=commands[0] if commands else "",
        name=name,
        messages=messages,
        steps=ledger.read(TelemetryRow, run_id=run_id),
        checks=checks,
        events=events,
    )
