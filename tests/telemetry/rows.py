"""Rows of runs, written by hand: dispatches with their calls, a second apart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from pydantic import JsonValue

from proofstone.agents.models import DispatchKey, Fault, FaultKind, ToolResult, Turn
from proofstone.common.models import Phase, Usage, Verdict
from proofstone.ledger.models import CheckRow, EventRow, MessageRow, StepStatus, TelemetryRow
from proofstone.ledger.schema import LedgerRow
from proofstone.ledger.sqlite import SqliteLedger

RUN, PLAN, GATE = "20260131T120000Z-aaaaaa", "20260131T120000Z-aaaaaa-p1", "20260131T120000Z-aaaaaa-g1"
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
Part = tuple[str, Mapping[str, JsonValue]]


def ledger_with(path: Path, *rows: LedgerRow) -> SqliteLedger:
    """Each a second after the one before."""
    seconds = count()
    ledger = SqliteLedger(path, clock=lambda: START + timedelta(seconds=next(seconds)))
    for row in rows:
        ledger.append(row)
    return ledger


def event(run_id: str, type: str, /, **payload: JsonValue) -> EventRow:
    return EventRow(run_id=run_id, type=type, payload=payload)


def turn(usage: Usage, seconds: float = 1.0, model: str = "openai:gpt-5") -> Part:
    return "Turn", {"turn": Turn(text="ok", model=model, usage=usage).model_dump(mode="json"), "seconds": seconds}


def fault(usage: Usage = Usage(), seconds: float = 1.0, kind: FaultKind = FaultKind.UNAVAILABLE) -> Part:  # noqa: B008
    return "Fault", {"fault": Fault(kind=kind, why="w", usage=usage).model_dump(mode="json"), "seconds": seconds}


def tool(name: str = "read", seconds: float = 0.5) -> Part:
    result = ToolResult(call_id="call-1", name=name, text="secret words")
    return "ToolResult", {"result": result.model_dump(mode="json"), "seconds": seconds}


REPAIR: Part = ("Repair", {})
OUTPUT: Part = ("Output", {})


def dispatch(occasion: DispatchKey, *parts: Part) -> list[LedgerRow]:
    begun: Part = ("Dispatch", {"occasion": occasion.model_dump(mode="json")})
    return [
        MessageRow(
            message_id=f"{occasion.run_id}/{occasion.id}#{number}",
            run_id=occasion.run_id,
            sender="engine",
            recipient=occasion.agent,
            type=type,
            payload={"dispatch": occasion.id, **payload},
        )
        for number, (type, payload) in enumerate((begun, *parts))
    ]


def step(run_id: str, name: str, agent: str, start: int, end: int | None = None, retry: int = 0) -> list[LedgerRow]:
    """So many seconds after the beginning; without an end it was cut off."""
    row = TelemetryRow(run_id=run_id, step=name, agent=agent, started_at=_at(start), retry_count=retry)
    if end is None:
        return [row]
    return [row, row.model_copy(update={"completed_at": _at(end), "status": StepStatus.DONE})]


def _at(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def check(run_id: str, name: str, duration_ms: int | None, reused_from: int | None = None) -> CheckRow:
    return CheckRow(
        run_id=run_id,
        task_id="task-01",
        phase=Phase.AFTER,
        check_name=name,
        tool="pytest",
        output_snippet="",
        state=Verdict.PASS,
        duration_ms=duration_ms,
        reused_from=reused_from,
    )
