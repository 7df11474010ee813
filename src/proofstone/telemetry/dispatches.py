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

from proofstone.agents.models import DispatchKey, Fault, RefusalRule, ToolResult, Turn
from proofstone.agents.roles.gate import JUDGE
from proofstone.common.models import BudgetUsage, Usage
from proofstone.errors import InputError
from proofstone.ledger import Ledger
from proofstone.ledger.models import CheckRow, EventRow, MessageRow, TelemetryRow
from proofstone.ledger.schema import StoredRow
from proofstone.runtime.run_index import CHILD_RUN_EVENT

_UNLISTED_TOOL: Final = "unlisted"
_NO_USAGE: Final = Usage()


class CallKind(StrEnum):
    TURN = "turn"
    FAULT = "fault"
    TOOL = "tool"


@dataclass(frozen=True)
class RowMark:
    """A row, and when it was written."""

    seq: int
    hash: str
    at: datetime


@dataclass(frozen=True)
class ModelCall:
    """A call of a model, whether it ended in a turn or in a fault, or a call of a tool."""

    kind: CallKind
    row_mark: RowMark
    """The row that was written when the call was over."""
    model: str
    """The model that was called; for a tool or a fault, the model that answered last."""
    spent: BudgetUsage
    usage: Usage = _NO_USAGE
    tool: str = ""
    id: str = ""
    """The id of the tool call in its conversation."""
    finish_reason: str = ""
    """How a turn ended: `stop`, `tool_calls`, `length`."""
    error: str = ""
    """The kind of error, if the call failed."""
    is_supervision: bool = False
    """Whether the call was made to check the understanding of an agent."""

    @property
    def unmeasured_requests(self) -> int:
        """The number of calls whose tokens were not counted, unless they are known to be free."""
        is_unreported = not self.usage.tokens and self.usage.usd != 0
        return self.usage.requests if is_unreported else 0

    @property
    def was_made(self) -> bool:
        """Whether a call was really made: a fault may also mean that no model was called."""
        return self.kind is not CallKind.FAULT or bool(self.spent.requests or self.spent.seconds)

    @property
    def started_at(self) -> datetime:
        return self.row_mark.at - timedelta(seconds=self.spent.seconds)


@dataclass
class RecordedDispatch:
    id: str
    occasion: DispatchKey
    first: RowMark
    last: RowMark
    """The last row about the dispatch."""
    calls: list[ModelCall] = field(default_factory=list)
    repairs: int = 0
    is_answered: bool = False
    questions: int = 0
    """How often the agent was asked whether it understands its task."""
    has_open_question: bool = False
    """Whether such a question is open."""

    @property
    def is_judgement(self) -> bool:
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
        return "" if self.is_answered or not faults else faults[0]

    @property
    def retries(self) -> int:
        """The number of repetitions: of the dispatch itself, of calls that ended in a fault, and of invalid answers."""
        model_calls = [call for call in self.calls if call.kind is not CallKind.TOOL and call.was_made]
        faults = sum(call.kind is CallKind.FAULT for call in model_calls[:-1])
        was_repeated = self.occasion.dispatch > 1 or self.occasion.attempt > 1
        return int(was_repeated) + faults + self.repairs


def read_dispatches(messages: Iterable[StoredRow[MessageRow]]) -> list[RecordedDispatch]:
    """Return the dispatches in the order of their starts."""
    dispatches: dict[str, RecordedDispatch] = {}
    for stored in messages:
        row = stored.row
        if not isinstance(id := row.payload.get("dispatch"), str):
            continue
        mark = row_mark_of(stored)
        if row.type == "Dispatch" and id not in dispatches:
            occasion = DispatchKey.model_validate(row.payload["occasion"])
            dispatches[id] = RecordedDispatch(id, occasion, mark, mark)
        elif id in dispatches:
            _apply_message(dispatches[id], row, mark)
    return list(dispatches.values())


def row_mark_of(stored: StoredRow[MessageRow]) -> RowMark:
    return RowMark(stored.seq, stored.link.hash, datetime.fromisoformat(stored.ts))


def _apply_message(dispatch: RecordedDispatch, row: MessageRow, mark: RowMark) -> None:
    dispatch.last = mark
    seconds = float(str(row.payload.get("seconds", 0)))
    verifies = dispatch.is_judgement or dispatch.has_open_question
    match row.type:
        case "Dispatch":  # the dispatch was restarted, which drops an open question
            dispatch.has_open_question = False
        case "Turn":
            turn = Turn.model_validate(row.payload["turn"])
            spent, model = BudgetUsage.from_turn(turn.usage, seconds), turn.model or dispatch.model
            finish_reason = _finish_reason(turn)
            dispatch.calls.append(
                ModelCall(
                    CallKind.TURN, mark, model, spent, turn.usage, finish_reason=finish_reason, is_supervision=verifies
                )
            )
        case "Fault":
            fault = Fault.model_validate(row.payload["fault"])
            spent, kind = BudgetUsage.from_turn(fault.usage, seconds), fault.kind.value
            dispatch.calls.append(
                ModelCall(
                    CallKind.FAULT, mark, dispatch.model, spent, fault.usage, error=kind, is_supervision=verifies
                ),
            )
        case "ToolResult":
            dispatch.calls.append(_tool_call(dispatch, ToolResult.model_validate(row.payload["result"]), mark, seconds))
        case "Attended" if isinstance(message := row.payload["told"], Mapping):
            dispatch.has_open_question = bool(message["asked"])
            dispatch.questions += dispatch.has_open_question
        case "Aloud":
            dispatch.questions += 1
        case "Repair":
            dispatch.repairs += 1
        case "Output":
            dispatch.is_answered = True


def _tool_call(dispatch: RecordedDispatch, result: ToolResult, mark: RowMark, seconds: float) -> ModelCall:
    # The name of an unknown tool is the agent's own text.
    tool = _UNLISTED_TOOL if result.refused is RefusalRule.UNLISTED else result.name
    return ModelCall(
        CallKind.TOOL,
        mark,
        dispatch.model,
        BudgetUsage(tool_calls=1, seconds=seconds),
        tool=tool,
        id=result.call_id,
        error=result.refused.value if result.refused else "" if result.ok else "failed",
        is_supervision=dispatch.is_judgement or dispatch.has_open_question,
    )


def _finish_reason(turn: Turn) -> str:
    return "length" if turn.cut else "tool_calls" if turn.calls else "stop"


GATE_COMMAND: Final = "gate"
PLAN_GATE_COMMAND: Final = "verify-plan"


@dataclass(frozen=True)
class RunPart:
    run_id: str
    command: str
    """The command that started the run, for example `gate`."""
    name: str
    """`plan 1`, `gate 2`; empty for the run itself."""
    messages: list[StoredRow[MessageRow]]
    steps: list[StoredRow[TelemetryRow]]
    checks: list[StoredRow[CheckRow]]
    events: list[StoredRow[EventRow]]

    @cached_property
    def dispatches(self) -> list[RecordedDispatch]:
        return read_dispatches(self.messages)

    @property
    def outcome(self) -> str:
        """The outcome of the run; empty if it has not ended or was resumed."""
        last = [event.row for event in self.events if event.row.type in ("run.started", "run.resumed", "run.finished")][
            -1:
        ]
        return str(last[0].payload.get("outcome", "")) if last else ""


def read_run_parts(ledger: Ledger, run_id: str) -> tuple[RunPart, ...]:
    """Return the run itself, then its parts in the order of their starts."""
    return tuple(_iter_parts(ledger, run_id))


def _iter_parts(ledger: Ledger, run_id: str) -> Iterator[RunPart]:
    root = read_run_part(ledger, run_id)
    yield root
    payloads = [event.row.payload for event in root.events if event.row.type == CHILD_RUN_EVENT]
    names = {str(payload["run_id"]): f"{payload['kind']} {payload['iteration']}" for payload in payloads}
    for id, name in names.items():
        # A part is recorded before it starts, so a part that never started has no rows.
        if ledger.read(EventRow, run_id=id, limit=1):
            yield read_run_part(ledger, id, name)


def read_run_part(ledger: Ledger, run_id: str, name: str = "") -> RunPart:
    events = ledger.read(EventRow, run_id=run_id)
    messages = ledger.read(MessageRow, run_id=run_id)
    checks = ledger.read(CheckRow, run_id=run_id)
    if not events and not messages and not checks:
        raise InputError(f"{run_id}: the ledger has no such run", hint="list the runs with `proofstone ledger show`")
    commands = [str(event.row.payload.get("command", "")) for event in events if event.row.type == "run.started"]
    return RunPart(
        run_id=run_id,
        command=commands[0] if commands else "",
        name=name,
        messages=messages,
        steps=ledger.read(TelemetryRow, run_id=run_id),
        checks=checks,
        events=events,
    )
