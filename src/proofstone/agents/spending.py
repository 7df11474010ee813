"""Track what the agents of a run spend, stop a run that cannot continue, and read its dispatches from the ledger.

One meter is shared by the threads of several agents. A spent budget, a denied or an unreachable provider stops the
whole run: it is not a failure of the agent, and the run can be resumed. The recorded dispatches are used to resume
after a crash, for the meter, and by `proofstone record`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proofstone.agents.models import DispatchKey, EngineMessage, Fault, FaultKind, ToolResult, Turn
from proofstone.agents.rules.budget import explain_spent_budget, list_scopes
from proofstone.agents.supervisor import BoundaryRecord
from proofstone.common.models import Budget, BudgetUsage
from proofstone.errors import InputError, UnavailableError
from proofstone.ledger import Ledger
from proofstone.ledger.models import MessageRow
from proofstone.runtime.context import OutOfBudgetError


class SpendingMeter:
    def __init__(self, budget: Budget, spent: Iterable[tuple[str, str | None, BudgetUsage]] = ()) -> None:
        """Start with `spent`: role, task and amount of what an earlier process has spent."""
        self.budget = budget
        self._spent: dict[str, BudgetUsage] = {}
        self._stopped = ""
        self._lock = threading.Lock()
        for role, task, amount in spent:
            self.add(role, task, amount)

    def add(self, role: str, task: str | None, amount: BudgetUsage) -> None:
        with self._lock:
            for scope in list_scopes(role, task):
                self._spent[scope] = self._spent.get(scope, BudgetUsage()) + amount

    def explain_spent_budget(self, role: str, task: str | None) -> str:
        """Return why an agent of the role may not continue with the task; empty if it may."""
        with self._lock:
            why = explain_spent_budget(self.budget, self._spent, role, task)
            self._stopped = self._stopped or why
            return why

    @property
    def stop_reason(self) -> str:
        """Why an agent was stopped, if one was. The run then stops and can be resumed."""
        return self._stopped

    def get_spent(self, scope: str = "run") -> BudgetUsage:
        with self._lock:
            return self._spent.get(scope, BudgetUsage())


def raise_if_fatal(fault: Fault, agent: str) -> None:
    """Raise if the run cannot continue after the fault."""
    match fault.kind:
        case FaultKind.BUDGET:
            raise OutOfBudgetError(fault.why)
        case FaultKind.CANCELLED:
            raise KeyboardInterrupt
        case FaultKind.DENIED:
            raise InputError(f"{agent}: {fault.why}", hint="`proofstone backends` shows which backend serves each role")


def raise_if_unreachable(fault: Fault, agent: str) -> None:
    """Raise if the provider of the agent did not answer after all retries. No answer is recorded for the agent, so the
    run resumes with the same question when the provider can be reached again."""
    if fault.kind is FaultKind.UNAVAILABLE:
        raise unreachable_error(f"{agent}: {fault.why}")


def unreachable_error(why: str) -> UnavailableError:
    return UnavailableError(why, hint="everything is kept: `proofstone resume last` goes on when it can be reached")


@dataclass
class DispatchRecord:
    """What the ledger holds about one dispatch."""

    occasion: DispatchKey | None = None
    take: int = 1
    """How often the dispatch was started from the beginning."""
    turns: list[Turn] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    entries: list[Turn | ToolResult | EngineMessage | int] = field(default_factory=list)
    """Turns, results, interjections and the numbers of repairs, in order."""
    boundaries: list[BoundaryRecord] = field(default_factory=list)
    """The turn boundaries of a supervised dispatch."""
    faults: int = 0
    fault: Fault | None = None
    """The last fault, unless a later turn succeeded."""
    has_changed_tree: bool = False
    """Whether an agent changed its work tree before it ended in a fault."""
    has_answered: bool = False
    """Whether the agent has answered."""
    spent: BudgetUsage = field(default_factory=BudgetUsage)
    """What all takes have spent."""

    @property
    def can_resume(self) -> bool:
        """Whether the dispatch can resume from its conversation. Changes that an agent made with its own tools cannot
        be replayed."""
        return not self.has_changed_tree and not any(turn.acted for turn in self.turns)

    def next_take(self) -> DispatchRecord:
        """Return the record for another take. It keeps only the costs."""
        return DispatchRecord(take=self.take + 1, spent=self.spent)


def read_dispatch_records(ledger: Ledger, run_id: str) -> dict[str, DispatchRecord]:
    """Return the dispatches of the run by id, in the order in which they started."""
    dispatches: dict[str, DispatchRecord] = {}
    for stored in ledger.read(MessageRow, run_id=run_id):
        row = stored.row
        if not isinstance(id := row.payload.get("dispatch"), str):
            continue
        if row.type == "Dispatch":
            dispatches[id] = dispatches[id].next_take() if id in dispatches else DispatchRecord()
            dispatches[id].occasion = DispatchKey.model_validate(row.payload["occasion"])
        elif id in dispatches:
            _add_message(dispatches[id], row)
    return dispatches


def _add_message(dispatch: DispatchRecord, row: MessageRow) -> None:
    match row.type:
        case "Turn":
            turn = Turn.model_validate(row.payload["turn"])
            dispatch.fault = None
            dispatch.turns.append(turn)
            dispatch.entries.append(turn)
            dispatch.spent = dispatch.spent + BudgetUsage.from_turn(turn.usage, _read_seconds(row))
        case "ToolResult":
            result = ToolResult.model_validate(row.payload["result"])
            dispatch.results.append(result)
            dispatch.entries.append(result)
            dispatch.spent = dispatch.spent + BudgetUsage(tool_calls=1, seconds=_read_seconds(row))
        case "Attended":
            message = row.payload["told"]
            boundary = BoundaryRecord(
                EngineMessage.model_validate(message) if message is not None else None, _read_state(row)
            )
            dispatch.boundaries.append(boundary)
            dispatch.entries += [boundary.message] if boundary.message else []
        case "Repair":
            dispatch.entries.append(int(str(row.payload["repair"])))
        case "Fault":
            dispatch.faults += 1
            dispatch.fault = Fault.model_validate(row.payload["fault"])
            dispatch.has_changed_tree = dispatch.has_changed_tree or dispatch.fault.acted
            dispatch.spent = dispatch.spent + BudgetUsage.from_turn(dispatch.fault.usage, _read_seconds(row))
        case "Output":
            dispatch.fault = None
            dispatch.has_answered = True


def _read_state(row: MessageRow) -> Mapping[str, JsonValue]:
    state = row.payload["standing"]
    return state if isinstance(state, Mapping) else {}


def _read_seconds(row: MessageRow) -> float:
    return float(str(row.payload.get("seconds", 0)))


def list_spending(recorded: Mapping[str, DispatchRecord]) -> Iterator[tuple[str, str | None, BudgetUsage]]:
    """Yield role, task and amount of everything that was spent according to the ledger."""
    for dispatch in recorded.values():
        if dispatch.occasion is not None:
            yield dispatch.occasion.role, dispatch.occasion.task, dispatch.spent
