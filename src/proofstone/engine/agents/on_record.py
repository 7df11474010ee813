"""What the ledger holds of a run's dispatches: to go on after a crash, for the meter, and for `proofstone record`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proofstone.adapters.ledger import Ledger
from proofstone.contracts.agent import Fault, Occasion, Told, ToolResult, Turn
from proofstone.contracts.budget import Spent
from proofstone.contracts.rows import MessageRow
from proofstone.engine.agents.attending import Known


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
    for one in recorded.values():
        if one.occasion is not None:
            yield one.occasion.role, one.occasion.task, one.spent
