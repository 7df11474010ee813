"""What a run has cost, by role and model, and how long each of its steps took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from assay.adapters.ledger import Stored
from assay.contracts.agent import Fault, Occasion, Turn
from assay.contracts.budget import Spent
from assay.contracts.pipeline.bundle import CostLine, StepSeen
from assay.contracts.rows import MessageRow, TelemetryRow
from assay.engine.pipeline.records import RunRecord


@dataclass
class _Line:
    dispatches: set[tuple[str, str]] = field(default_factory=set)
    spent: Spent = field(default_factory=Spent)
    rows: list[int] = field(default_factory=list)


@dataclass
class _Dispatch:
    role: str
    model: str = ""
    """Who spoke last: what a tool took, or a call that failed, is theirs."""


def costs(records: Sequence[RunRecord]) -> tuple[CostLine, ...]:
    lines: dict[tuple[str, str], _Line] = {}
    for record in records:
        under_way: dict[str, _Dispatch] = {}
        for stored in record.messages:
            _add(stored, under_way, lines)
    return tuple(
        CostLine(role=role, model=model, dispatches=len(line.dispatches), spent=line.spent, rows=tuple(line.rows))
        for (role, model), line in lines.items()
    )


def dispatches(records: Sequence[RunRecord]) -> int:
    """How often an agent was asked. One that is asked on after a crash was asked once."""
    found = {
        (record.run_id, str(stored.row.payload["dispatch"]))
        for record in records
        for stored in record.messages
        if stored.row.type == "Dispatch"
    }
    return len(found)


def _add(stored: Stored[MessageRow], under_way: dict[str, _Dispatch], lines: dict[tuple[str, str], _Line]) -> None:
    row = stored.row
    if not isinstance(id := row.payload.get("dispatch"), str):
        return
    if row.type == "Dispatch":
        under_way[id] = _Dispatch(Occasion.model_validate(row.payload["occasion"]).role)
        return
    if id not in under_way or (spent := _spent(row)) is None:
        return
    one = under_way[id]
    if row.type == "Turn":
        one.model = Turn.model_validate(row.payload["turn"]).model or one.model
    line = lines.setdefault((one.role, one.model), _Line())
    line.dispatches.add((row.run_id, id))
    line.spent += spent
    line.rows.append(stored.seq)


def _spent(row: MessageRow) -> Spent | None:
    """None: the message has cost nothing."""
    seconds = float(str(row.payload.get("seconds", 0)))
    match row.type:
        case "Turn":
            return Spent.of_turn(Turn.model_validate(row.payload["turn"]).usage, seconds)
        case "Fault":
            return Spent.of_turn(Fault.model_validate(row.payload["fault"]).usage, seconds)
        case "ToolResult":
            return Spent(tool_calls=1, seconds=seconds)
    return None


def timeline(records: Sequence[RunRecord]) -> tuple[StepSeen, ...]:
    """The steps in the order in which they began: their two rows are one line. The first record is the run's own."""
    steps = [step for record in records for step in _steps(record, is_part=record is not records[0])]
    return tuple(sorted(steps, key=lambda step: step.rows))


def _steps(record: RunRecord, *, is_part: bool) -> Iterator[StepSeen]:
    part = f"{record.kind} {record.iteration}" if is_part else ""
    begun: dict[tuple[JsonValue, ...], list[Stored[TelemetryRow]]] = {}
    for stored in record.telemetry:
        row = stored.row
        begun.setdefault((row.step, row.agent, row.instance, row.started_at), []).append(stored)
    for rows in begun.values():
        last = rows[-1].row
        yield StepSeen(
            part=part,
            step=last.step,
            agent=last.agent,
            instance=last.instance or "",
            started_at=last.started_at,
            completed_at=last.completed_at,
            status=last.status,
            dispatches=last.dispatch_count,
            retries=last.retry_count,
            notes=last.notes or "",
            rows=tuple(one.seq for one in rows),
        )
