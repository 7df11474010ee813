"""The dispatches of a run as the bus has them: each with its calls of models and tools, and what those have used.

This is the one place that reads cost from messages; the tables, the evidence bundle and the spans are made of it.

A run and the runs that were parts of it, as far as their cost is concerned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Final

from proofstone.agents.models import Fault, Occasion, RefusalRule, ToolResult, Turn
from proofstone.agents.roles.gate import JUDGE
from proofstone.common.models import Spent, Usage
from proofstone.errors import InputError
from proofstone.ledger import Ledger
from proofstone.ledger.models import CheckRow, EventRow, MessageRow, TelemetryRow
from proofstone.ledger.schema import Stored
from proofstone.runtime.run_index import CHILD

_UNLISTED: Final = "unlisted"
_NOTHING: Final = Usage()


class CallKind(StrEnum):
    TURN = "turn"
    FAULT = "fault"
    TOOL = "tool"


@dataclass(frozen=True)
class Mark:
    """A row, and when it was written."""

    seq: int
    hash: str
    at: datetime


@dataclass(frozen=True)
class Call:
    """One call of a model, whether it came to a turn or to a fault; or one of a tool."""

    kind: CallKind
    written: Mark
    """Once it was over."""
    model: str
    """Who was called; of a tool or a fault, whoever spoke last."""
    spent: Spent
    usage: Usage = _NOTHING
    tool: str = ""
    id: str = ""
    """Of the tool's call, in its conversation."""
    ended: str = ""
    """How a turn ended: `stop`, `tool_calls`, `length`."""
    error: str = ""
    """What kind of error it ended with."""
    verifies: bool = False
    """It was made to show whether an agent knows what it is doing."""

    @property
    def unmeasured(self) -> int:
        """Calls of which nobody has counted the tokens: none are told, though it is not known to be free."""
        silent = not self.usage.tokens and self.usage.usd != 0
        return self.usage.requests if silent else 0

    @property
    def is_made(self) -> bool:
        """A fault may also be that nobody was called any more."""
        return self.kind is not CallKind.FAULT or bool(self.spent.requests or self.spent.seconds)

    @property
    def began(self) -> datetime:
        return self.written.at - timedelta(seconds=self.spent.seconds)


@dataclass
class Dispatch:
    id: str
    occasion: Occasion
    begun: Mark
    last: Mark
    """The last row that is about it."""
    calls: list[Call] = field(default_factory=list)
    repairs: int = 0
    answered: bool = False
    questions: int = 0
    """So often it was asked whether it knows what it is doing."""
    asked: bool = False
    """Such a question is open."""

    @property
    def judges(self) -> bool:
        """It was made to judge what another agent has answered."""
        return self.occasion.role == JUDGE.name and self.occasion.focus in JUDGE.foci

    @property
    def model(self) -> str:
        """Who spoke last."""
        return self.calls[-1].model if self.calls else ""

    @property
    def fault(self) -> str:
        """What kind of fault it ended with; empty: none, or it has not ended."""
        faults = [call.error for call in self.calls[-1:] if call.kind is CallKind.FAULT]
        return "" if self.answered or not faults else faults[0]

    @property
    def retries(self) -> int:
        """What had to be done again: the dispatch itself, calls that ended in a fault, answers that were no use."""
        thinking = [call for call in self.calls if call.kind is not CallKind.TOOL and call.is_made]
        overcome = sum(call.kind is CallKind.FAULT for call in thinking[:-1])
        again = self.occasion.dispatch > 1 or self.occasion.attempt > 1
        return int(again) + overcome + self.repairs


def dispatches_in(messages: Iterable[Stored[MessageRow]]) -> list[Dispatch]:
    """In the order in which they began."""
    found: dict[str, Dispatch] = {}
    for stored in messages:
        row = stored.row
        if not isinstance(id := row.payload.get("dispatch"), str):
            continue
        mark = mark_of(stored)
        if row.type == "Dispatch" and id not in found:
            occasion = Occasion.model_validate(row.payload["occasion"])
            found[id] = Dispatch(id, occasion, mark, mark)
        elif id in found:
            _add(found[id], row, mark)
    return list(found.values())


def mark_of(stored: Stored[MessageRow]) -> Mark:
    return Mark(stored.seq, stored.link.hash, datetime.fromisoformat(stored.ts))


def _add(one: Dispatch, row: MessageRow, mark: Mark) -> None:
    one.last = mark
    seconds = float(str(row.payload.get("seconds", 0)))
    verifies = one.judges or one.asked
    match row.type:
        case "Dispatch":  # it begins anew, and so does what it is asked
            one.asked = False
        case "Turn":
            turn = Turn.model_validate(row.payload["turn"])
            spent, model = Spent.of_turn(turn.usage, seconds), turn.model or one.model
            ended = _ended(turn)
            one.calls.append(Call(CallKind.TURN, mark, model, spent, turn.usage, ended=ended, verifies=verifies))
        case "Fault":
            fault = Fault.model_validate(row.payload["fault"])
            spent, kind = Spent.of_turn(fault.usage, seconds), fault.kind.value
            one.calls.append(
                Call(CallKind.FAULT, mark, one.model, spent, fault.usage, error=kind, verifies=verifies),
            )
        case "ToolResult":
            one.calls.append(_tool(one, ToolResult.model_validate(row.payload["result"]), mark, seconds))
        case "Attended" if isinstance(told := row.payload["told"], Mapping):
            one.asked = bool(told["asked"])
            one.questions += one.asked
        case "Aloud":
            one.questions += 1
        case "Repair":
            one.repairs += 1
        case "Output":
            one.answered = True


def _tool(one: Dispatch, result: ToolResult, mark: Mark, seconds: float) -> Call:
    # A name that is no tool's is the agent's own words.
    tool = _UNLISTED if result.refused is RefusalRule.UNLISTED else result.name
    return Call(
        CallKind.TOOL,
        mark,
        one.model,
        Spent(tool_calls=1, seconds=seconds),
        tool=tool,
        id=result.call_id,
        error=result.refused.value if result.refused else "" if result.ok else "failed",
        verifies=one.judges or one.asked,
    )


def _ended(turn: Turn) -> str:
    return "length" if turn.cut else "tool_calls" if turn.calls else "stop"


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
        last = [event.row for event in self.events if event.row.type in ("run.started", "run.resumed", "run.finished")][
            -1:
        ]
        return str(last[0].payload.get("outcome", "")) if last else ""


def parts_of(ledger: Ledger, run_id: str) -> tuple[Part, ...]:
    """The run itself first, then its parts in the order in which they were begun."""
    return tuple(_parts(ledger, run_id))


def _parts(ledger: Ledger, run_id: str) -> Iterator[Part]:
    own = read_part(ledger, run_id)
    yield own
    begun = [event.row.payload for event in own.events if event.row.type == CHILD]
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
    commands = [str(event.row.payload.get("command", "")) for event in events if event.row.type == "run.started"]
    return Part(
        run_id=run_id,
        command=commands[0] if commands else "",
        name=name,
        messages=messages,
        steps=ledger.read(TelemetryRow, run_id=run_id),
        checks=checks,
        events=events,
    )
