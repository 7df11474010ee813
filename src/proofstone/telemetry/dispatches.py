"""The dispatches of a run, read from the message bus, and the parts of a run.

Each dispatch has its calls of models and tools, with their usage. This is the only module that reads costs from
messages; the tables, the evidence bundle and the spans are built from it.
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

_UNLISTED_TOOL: Final = "unlisted"
_NO_USAGE: Final = Usage()


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
    """A call of a model, whether it ended in a turn or in a fault, or a call of a tool."""

    kind: CallKind
    written: Mark
    """The row that was written when the call was over."""
    model: str
    """The model that was called; for a tool or a fault, the model that answered last."""
    spent: Spent
    usage: Usage = _NO_USAGE
    tool: str = ""
    id: str = ""
    """The id of the tool call in its conversation."""
    ended: str = ""
    """How a turn ended: `stop`, `tool_calls`, `length`."""
    error: str = ""
    """The kind of error, if the call failed."""
    verifies: bool = False
    """Whether the call was made to check the understanding of an agent."""

    @property
    def unmeasured(self) -> int:
        """The number of calls whose tokens were not counted, unless they are known to be free."""
        is_unreported = not self.usage.tokens and self.usage.usd != 0
        return self.usage.requests if is_unreported else 0

    @property
    def is_made(self) -> bool:
        """Whether a call was really made: a fault may also mean that no model was called."""
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
    """The last row about the dispatch."""
    calls: list[Call] = field(default_factory=list)
    repairs: int = 0
    answered: bool = False
    questions: int = 0
    """How often the agent was asked whether it understands its task."""
    asked: bool = False
    """Whether such a question is open."""

    @property
    def judges(self) -> bool:
        """Whether the dispatch judges the answer of another agent."""
        return self.occasion.role == JUDGE.name and self.occasion.focus in JUDGE.foci

    @property
    def model(self) -> str:
        """The model that answered last."""
        return self.calls[-1].model if self.calls else ""

    @property
    def fault(self) -> str:
        """The kind of fault that ended the dispatch; empty if there was none, or if the dispatch has not ended."""
        faults = [call.error for call in self.calls[-1:] if call.kind is CallKind.FAULT]
        return "" if self.answered or not faults else faults[0]

    @property
    def retries(self) -> int:
        """The number of repetitions: of the dispatch itself, of calls that ended in a fault, and of invalid answers."""
        model_calls = [call for call in self.calls if call.kind is not CallKind.TOOL and call.is_made]
        faults = sum(call.kind is CallKind.FAULT for call in model_calls[:-1])
        was_repeated = self.occasion.dispatch > 1 or self.occasion.attempt > 1
        return int(was_repeated) + faults + self.repairs


def dispatches_in(messages: Iterable[Stored[MessageRow]]) -> list[Dispatch]:
    """Return the dispatches in the order of their starts."""
    dispatches: dict[str, Dispatch] = {}
    for stored in messages:
        row = stored.row
        if not isinstance(id := row.payload.get("dispatch"), str):
            continue
        mark = mark_of(stored)
        if row.type == "Dispatch" and id not in dispatches:
            occasion = Occasion.model_validate(row.payload["occasion"])
            dispatches[id] = Dispatch(id, occasion, mark, mark)
        elif id in dispatches:
            _apply_message(dispatches[id], row, mark)
    return list(dispatches.values())


def mark_of(stored: Stored[MessageRow]) -> Mark:
    return Mark(stored.seq, stored.link.hash, datetime.fromisoformat(stored.ts))


def _apply_message(dispatch: Dispatch, row: MessageRow, mark: Mark) -> None:
    dispatch.last = mark
    seconds = float(str(row.payload.get("seconds", 0)))
    verifies = dispatch.judges or dispatch.asked
    match row.type:
        case "Dispatch":  # the dispatch was restarted, which drops an open question
            dispatch.asked = False
        case "Turn":
            turn = Turn.model_validate(row.payload["turn"])
            spent, model = Spent.of_turn(turn.usage, seconds), turn.model or dispatch.model
            finish_reason = _finish_reason(turn)
            dispatch.calls.append(
                Call(CallKind.TURN, mark, model, spent, turn.usage, ended=finish_reason, verifies=verifies)
            )
        case "Fault":
            fault = Fault.model_validate(row.payload["fault"])
            spent, kind = Spent.of_turn(fault.usage, seconds), fault.kind.value
            dispatch.calls.append(
                Call(CallKind.FAULT, mark, dispatch.model, spent, fault.usage, error=kind, verifies=verifies),
            )
        case "ToolResult":
            dispatch.calls.append(_tool_call(dispatch, ToolResult.model_validate(row.payload["result"]), mark, seconds))
        case "Attended" if isinstance(message := row.payload["told"], Mapping):
            dispatch.asked = bool(message["asked"])
            dispatch.questions += dispatch.asked
        case "Aloud":
            dispatch.questions += 1
        case "Repair":
            dispatch.repairs += 1
        case "Output":
            dispatch.answered = True


def _tool_call(dispatch: Dispatch, result: ToolResult, mark: Mark, seconds: float) -> Call:
    # The name of an unknown tool is the agent's own text.
    tool = _UNLISTED_TOOL if result.refused is RefusalRule.UNLISTED else result.name
    return Call(
        CallKind.TOOL,
        mark,
        dispatch.model,
        Spent(tool_calls=1, seconds=seconds),
        tool=tool,
        id=result.call_id,
        error=result.refused.value if result.refused else "" if result.ok else "failed",
        verifies=dispatch.judges or dispatch.asked,
    )


def _finish_reason(turn: Turn) -> str:
    return "length" if turn.cut else "tool_calls" if turn.calls else "stop"


GATE: Final = "gate"
PLAN_GATE: Final = "verify-plan"


@dataclass(frozen=True)
class Part:
    run_id: str
    command: str
    """The command that started the run, for example `gate`."""
    name: str
    """`plan 1`, `gate 2`; empty for the run itself."""
    messages: list[Stored[MessageRow]]
    steps: list[Stored[TelemetryRow]]
    checks: list[Stored[CheckRow]]
    events: list[Stored[EventRow]]

    @cached_property
    def dispatches(self) -> list[Dispatch]:
        return dispatches_in(self.messages)

    @property
    def outcome(self) -> str:
        """The outcome of the run; empty if it has not ended or was resumed."""
        last = [event.row for event in self.events if event.row.type in ("run.started", "run.resumed", "run.finished")][
            -1:
        ]
        return str(last[0].payload.get("outcome", "")) if last else ""


def parts_of(ledger: Ledger, run_id: str) -> tuple[Part, ...]:
    """Return the run itself, then its parts in the order of their starts."""
    return tuple(_iter_parts(ledger, run_id))


def _iter_parts(ledger: Ledger, run_id: str) -> Iterator[Part]:
    root = read_part(ledger, run_id)
    yield root
    payloads = [event.row.payload for event in root.events if event.row.type == CHILD]
    names = {str(payload["run_id"]): f"{payload['kind']} {payload['iteration']}" for payload in payloads}
    for id, name in names.items():
        # A part is recorded before it starts, so a part that never started has no rows.
        if ledger.read(EventRow, run_id=id, limit=1):
            yield read_part(ledger, id, name)


def read_part(ledger: Ledger, run_id: str, name: str = "") -> Part:
    events = ledger.read(EventRow, run_id=run_id)
    messages = ledger.read(MessageRow, run_id=run_id)
    checks = ledger.read(CheckRow, run_id=run_id)
    if not events and not messages and not checks:
        raise InputError(f"{run_id}: the ledger has no such run", hint="list the runs with `proofstone ledger show`")
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
