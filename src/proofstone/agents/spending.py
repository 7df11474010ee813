"""What the agents of a run have spent, and whether they may go on. Threads of several agents share one meter.

What stops a whole run although an agent has met with it: it is no failure of the agent's, and everything is kept.

What the ledger holds of a run's dispatches: to go on after a crash, for the meter, and for `proofstone record`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proofstone.agents.attendant import Known
from proofstone.agents.models import Fault, FaultKind, Occasion, Told, ToolResult, Turn
from proofstone.agents.rules.budget import exhausted, scopes
from proofstone.common.models import Budget, Spent
from proofstone.errors import InputError, UnavailableError
from proofstone.ledger import Ledger
from proofstone.ledger.models import MessageRow
from proofstone.runtime.context import OutOfBudgetError


class Meter:
    def __init__(self, budget: Budget, spent: Iterable[tuple[str, str | None, Spent]] = ()) -> None:
        """`spent`: role, task and amount of what was spent before, by an earlier process."""
        self.budget = budget
        self._spent: dict[str, Spent] = {}
        self._stopped = ""
        self._lock = threading.Lock()
        for role, task, amount in spent:
            self.add(role, task, amount)

    def add(self, role: str, task: str | None, amount: Spent) -> None:
        with self._lock:
            for scope in scopes(role, task):
                self._spent[scope] = self._spent.get(scope, Spent()) + amount

    def exhausted(self, role: str, task: str | None) -> str:
        """Why an agent of that role, for that task, may not go on; empty if it may."""
        with self._lock:
            why = exhausted(self.budget, self._spent, role, task)
            self._stopped = self._stopped or why
            return why

    @property
    def stopped(self) -> str:
        """Why an agent was stopped, if one was: then the run stops, and everything is kept."""
        return self._stopped

    def spent(self, scope: str = "run") -> Spent:
        with self._lock:
            return self._spent.get(scope, Spent())


def stop_for(fault: Fault, agent: str) -> None:
    """Raise, if the run cannot go on after this; else return."""
    match fault.kind:
        case FaultKind.BUDGET:
            raise OutOfBudgetError(fault.why)
        case FaultKind.CANCELLED:
            raise KeyboardInterrupt
        case FaultKind.DENIED:
            raise InputError(f"{agent}: {fault.why}", hint="`proofstone backends` shows who serves whom")


def stop_if_unreached(fault: Fault, agent: str) -> None:
    """Raise, if the one who serves the agent has not answered, however often it was asked: nothing of that is on record
    as the agent's word, and the run goes on with the same question when it is answered again."""
    if fault.kind is FaultKind.UNAVAILABLE:
        raise unreached(f"{agent}: {fault.why}")


def unreached(why: str) -> UnavailableError:
    return UnavailableError(why, hint="everything is kept: `proofstone resume last` goes on when it can be reached")


@dataclass
class Recorded:
    """One dispatch, as far as it is on record."""

    occasion: Occasion | None = None
    take: int = 1
    """How often it was begun from the beginning."""
    turns: list[Turn] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    entries: list[Turn | ToolResult | Told | int] = field(default_factory=list)
    """Turns, results, asides and repairs (their numbers) in order."""
    attended: list[Known] = field(default_factory=list)
    """Turn boundaries, where somebody attended to them."""
    faults: int = 0
    fault: Fault | None = None
    """The last one, unless it was overcome."""
    acted: bool = False
    """An agent that ended in a fault had changed its work tree by then."""
    finished: bool = False
    """It has answered."""
    spent: Spent = field(default_factory=Spent)
    """In all takes."""

    @property
    def can_go_on(self) -> bool:
        """Whether the conversation leads to where it was. What an agent did behind the runtime's back, only the agent
        can do again."""
        return not self.acted and not any(turn.acted for turn in self.turns)

    def again(self) -> Recorded:
        """For another take: nothing but what it has cost."""
        return Recorded(take=self.take + 1, spent=self.spent)


def on_record(ledger: Ledger, run_id: str) -> dict[str, Recorded]:
    """The run's dispatches, by id, in the order in which they began."""
    found: dict[str, Recorded] = {}
    for stored in ledger.read(MessageRow, run_id=run_id):
        row = stored.row
        if not isinstance(id := row.payload.get("dispatch"), str):
            continue
        if row.type == "Dispatch":
            found[id] = found[id].again() if id in found else Recorded()
            found[id].occasion = Occasion.model_validate(row.payload["occasion"])
        elif id in found:
            _add(found[id], row)
    return found


def _add(one: Recorded, row: MessageRow) -> None:
    match row.type:
        case "Turn":
            turn = Turn.model_validate(row.payload["turn"])
            one.fault = None
            one.turns.append(turn)
            one.entries.append(turn)
            one.spent = one.spent + Spent.of_turn(turn.usage, _seconds(row))
        case "ToolResult":
            result = ToolResult.model_validate(row.payload["result"])
            one.results.append(result)
            one.entries.append(result)
            one.spent = one.spent + Spent(tool_calls=1, seconds=_seconds(row))
        case "Attended":
            told = row.payload["told"]
            known = Known(Told.model_validate(told) if told is not None else None, _standing(row))
            one.attended.append(known)
            one.entries += [known.told] if known.told else []
        case "Repair":
            one.entries.append(int(str(row.payload["repair"])))
        case "Fault":
            one.faults += 1
            one.fault = Fault.model_validate(row.payload["fault"])
            one.acted = one.acted or one.fault.acted
            one.spent = one.spent + Spent.of_turn(one.fault.usage, _seconds(row))
        case "Output":
            one.fault = None
            one.finished = True


def _standing(row: MessageRow) -> Mapping[str, JsonValue]:
    standing = row.payload["standing"]
    return standing if isinstance(standing, Mapping) else {}


def _seconds(row: MessageRow) -> float:
    return float(str(row.payload.get("seconds", 0)))


def spent_so_far(recorded: Mapping[str, Recorded]) -> Iterator[tuple[str, str | None, Spent]]:
    """Role, task and amount of everything that is on record."""
    for item in recorded.values():
        if item.occasion is not None:
            yield item.occasion.role, item.occasion.task, item.spent
