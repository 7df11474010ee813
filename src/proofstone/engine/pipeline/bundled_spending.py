"""What a run has cost, by role and model, and how long each of its steps took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from proofstone.adapters.ledger import Stored
from proofstone.contracts.pipeline.bundle import CostLine, StepSeen, VerificationSpent
from proofstone.contracts.rows import TelemetryRow
from proofstone.engine.pipeline.records import RunRecord
from proofstone.engine.telemetry.costs import by_agent
from proofstone.engine.telemetry.parts import Part
from proofstone.engine.telemetry.verification import Verification, share


def costs(records: Sequence[RunRecord]) -> tuple[CostLine, ...]:
    return tuple(
        CostLine(
            role=role,
            model=model,
            dispatches=len(tally.dispatches),
            spent=tally.spent,
            rows=tuple(sorted(tally.rows)),
        )
        for role, model, tally in by_agent(map(_part, records))
    )


def dispatches(records: Sequence[RunRecord]) -> int:
    """How often an agent was asked. One that is asked on after a crash was asked once."""
    return sum(len(_part(record).dispatches) for record in records)


def verification(records: Sequence[RunRecord]) -> VerificationSpent | None:
    """What of it went into asking agents whether they know what they are doing."""
    parts = [*map(_part, records)]
    found = Verification.of(parts)
    if not found.tally.rows:
        return None
    lines = by_agent(parts)
    tokens = sum(line.tally.spent.tokens for line in lines)
    counted = not any(line.tally.unmeasured for line in lines)
    return VerificationSpent(
        questions=found.questions,
        judgements=found.judgements,
        spent=found.tally.spent,
        share=share(found.tally.spent.tokens, tokens) if counted else None,
        rows=tuple(sorted(found.tally.rows)),
    )


def timeline(records: Sequence[RunRecord]) -> tuple[StepSeen, ...]:
    """The steps in the order in which they began: their two rows are one line. The first record is the run's own."""
    steps = [step for record in records for step in _steps(record, is_part=record is not records[0])]
    return tuple(sorted(steps, key=lambda step: step.rows))


def _part(record: RunRecord) -> Part:
    return Part(
        run_id=record.run_id,
        command=record.kind,
        name=_called(record),
        messages=record.messages,
        steps=record.telemetry,
        checks=record.checks,
        events=record.events,
    )


def _called(record: RunRecord) -> str:
    return f"{record.kind} {record.iteration}"


def _steps(record: RunRecord, *, is_part: bool) -> Iterator[StepSeen]:
    part = _called(record) if is_part else ""
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
