"""What calls of agents add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from proofstone.contracts.budget import Spent
from proofstone.contracts.telemetry import Cost
from proofstone.engine.telemetry.dispatches import Call, Dispatch


@dataclass
class Tally:
    """What is added up, with the rows that it comes from."""

    dispatches: set[tuple[str, str]] = field(default_factory=set)
    """Run and id."""
    retries: int = 0
    spent: Spent = field(default_factory=Spent)
    unmeasured: int = 0
    untold: int = 0
    rows: list[int] = field(default_factory=list)

    def add(self, run_id: str, one: Dispatch, calls: Iterable[Call]) -> None:
        self.dispatches.add((run_id, one.id))
        for call in calls:
            self.spent += call.spent
            self.unmeasured += call.unmeasured
            self.rows.append(call.written.seq)

    def __iadd__(self, other: Tally) -> Tally:
        self.dispatches |= other.dispatches
        self.retries += other.retries
        self.spent += other.spent
        self.unmeasured += other.unmeasured
        self.untold += other.untold
        self.rows += other.rows
        return self

    def cost(self) -> Cost:
        """What nobody has told anything about is None: it is not known to be nothing."""
        spent = self.spent
        counted = spent.requests > self.unmeasured or not (self.unmeasured or self.untold)
        priced = spent.requests > spent.unpriced or not (spent.unpriced or self.untold)
        return Cost(
            dispatches=len(self.dispatches),
            retries=self.retries,
            requests=spent.requests,
            tool_calls=spent.tool_calls,
            seconds=round(spent.seconds, 3),
            input_tokens=spent.input_tokens if counted else None,
            output_tokens=spent.output_tokens if counted else None,
            cache_read_tokens=spent.cache_read_tokens if counted else None,
            usd=round(spent.usd, 6) if priced else None,
            unmeasured=self.unmeasured,
            unpriced=spent.unpriced,
            untold=self.untold,
        )
