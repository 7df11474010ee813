"""What calls of agents add up to.

What it has cost to ask agents whether they know what they are doing, and to have their answers judged.

What an agent was asked for in the middle of its work is on record with the turn boundary where it was asked; all that
it does until it is told to go on, it does to answer. A judge does nothing else.

What a run has cost: by step, by agent and model, by part, and in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from proofstone.common.models import Spent
from proofstone.ledger import Ledger
from proofstone.ledger.models import CheckRow, TelemetryRow
from proofstone.ledger.schema import Stored
from proofstone.runtime.journal import worked_on
from proofstone.telemetry.dispatches import GATE, PLAN_GATE, Call, Dispatch, Part, parts_of
from proofstone.telemetry.models import AgentCost, CheckTime, Cost, PartCost, RunCost, StepCost, VerificationCost


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


@dataclass
class Verification:
    questions: int = 0
    judgements: int = 0
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Verification:
        found = cls()
        for part in parts:
            for dispatch in part.dispatches:
                found.questions += dispatch.questions
                found.judgements += dispatch.judges
                if calls := [call for call in dispatch.calls if call.verifies]:
                    found.tally.add(part.run_id, dispatch, calls)
        return found

    def cost(self, total: Cost) -> VerificationCost | None:
        """With its share of all that was spent; None: nobody was asked."""
        if not self.questions and not self.judgements:
            return None
        mine = self.tally.cost()
        return VerificationCost(
            questions=self.questions,
            judgements=self.judgements,
            cost=mine,
            share_of_tokens=share(_tokens(mine), _tokens(total)),
            share_of_calls=share(mine.requests, None if total.untold else total.requests),
        )


def share(part: int | None, whole: int | None) -> float | None:
    """None: one of them is not known, or there is nothing to have a share in."""
    return None if part is None or not whole else round(part / whole, 4)


def _tokens(cost: Cost) -> int | None:
    if cost.input_tokens is None or cost.output_tokens is None or cost.unmeasured or cost.untold:
        return None
    return cost.input_tokens + cost.output_tokens


ENGINE: Final = "engine"
_ROLES: Final = {"execute": "executor", "review": "architect", "check": ENGINE}
"""Who takes which step of a task at the gate."""
_TELLS_NOTHING: Final = "cmd:"
"""An executor or architect of this kind is no agent of the engine's: what it calls is not on record."""


# By agent and model.


class ByAgent(NamedTuple):
    role: str
    model: str
    tally: Tally


def by_agent(parts: Iterable[Part]) -> list[ByAgent]:
    """Each call on the account of whoever made it, those first who were called first."""
    found: dict[tuple[str, str], Tally] = {}
    for part in parts:
        for dispatch in part.dispatches:
            for model in dict.fromkeys(call.model for call in dispatch.calls):
                tally = found.setdefault((dispatch.occasion.role, model), Tally())
                tally.add(part.run_id, dispatch, (call for call in dispatch.calls if call.model == model))
            if dispatch.calls:
                found[dispatch.occasion.role, dispatch.model].retries += dispatch.retries
    lines = [ByAgent(role, model, tally) for (role, model), tally in found.items()]
    return sorted(lines, key=lambda line: min(line.tally.rows))


# By step.


class _Place(NamedTuple):
    part: str
    step: str
    agent: str
    instance: str


@dataclass
class _Step:
    tally: Tally = field(default_factory=Tally)
    models: dict[str, None] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    """Rows that are about it."""
    rows: dict[str, TelemetryRow] = field(default_factory=dict)
    """The last one of each time that it was begun."""

    def take(self, run_id: str, one: Dispatch) -> None:
        self.seen.append(one.begun.seq)
        self.tally.add(run_id, one, one.calls)
        self.tally.retries += one.retries
        self.models.update(dict.fromkeys(call.model for call in one.calls if call.model))

    def take_untold(self) -> None:
        """Of a step that a program has taken of which nothing is on the bus."""
        told = [row for row in self.rows.values() if row.agent.startswith(_TELLS_NOTHING)]
        if not self.tally.dispatches:
            self.tally.untold = len(told)
            self.tally.retries = sum(row.retry_count > 0 for row in told)

    @property
    def wall_seconds(self) -> float | None:
        """A time that was cut off is not known, and does not count."""
        begun = list(self.rows.values())
        ended = [(item.started_at, item.completed_at) for item in begun if item.completed_at]
        if not begun or begun[-1].completed_at is None:
            return None
        return round(sum(_between(start, end) for start, end in ended), 3)

    def cost(self, place: _Place) -> StepCost:
        return StepCost(
            part=place.part,
            step=place.step,
            agent=place.agent,
            instance=place.instance,
            models=tuple(self.models),
            status=list(self.rows.values())[-1].status if self.rows else None,
            wall_seconds=self.wall_seconds,
            cost=self.tally.cost(),
        )


def _steps(parts: Iterable[Part]) -> list[tuple[_Place, _Step]]:
    """In the order in which they began."""
    found: dict[_Place, _Step] = {}
    for part in parts:
        for dispatch in part.dispatches:
            found.setdefault(_place(part, dispatch), _Step()).take(part.run_id, dispatch)
        for stored in part.steps:
            row = stored.row
            step = found.setdefault(_place_of_row(part, row), _Step())
            step.seen.append(stored.seq)
            step.rows[row.started_at] = row
    for step in found.values():
        step.take_untold()
    return sorted(found.items(), key=lambda item: min(item[1].seen))


def _place(part: Part, one: Dispatch) -> _Place:
    """A second look at the same attempt at the gate is the same step."""
    said = one.occasion
    step = f"{said.task}/a{said.attempt}" if part.command == GATE and said.task else said.step
    return _Place(part.name, step, said.role, said.focus or "")


def _place_of_row(part: Part, row: TelemetryRow) -> _Place:
    """The gate calls its steps otherwise than its dispatches: `task-01/execute` is the executor's of `task-01/a1`."""
    task, _, name = row.step.rpartition("/")
    if part.command == GATE and name in _ROLES:
        return _Place(part.name, f"{task}/a{row.retry_count + 1}", _ROLES[name], row.instance or "")
    return _Place(part.name, row.step, row.agent, row.instance or "")


# In all.


def cost_of(ledger: Ledger, run_id: str, *, running: bool = False) -> RunCost:
    """Of a run with its parts, also while it goes on. `running`: whether somebody is at work on it."""
    parts = parts_of(ledger, run_id)
    steps = _steps(parts)
    each = tuple(_cost_of_part(part, steps) for part in parts)
    total = _sum(step.tally for _, step in steps)
    whole = total.cost()
    at_the_plan_gate = sum(item.cost.dispatches for item in each[1:] if item.command == PLAN_GATE)
    return RunCost(
        run_id=run_id,
        command=parts[0].command,
        outcome=parts[0].outcome,
        running=running,
        worked_seconds=worked_on(ledger, run_id) / 1000,
        dispatches=len(total.dispatches) - at_the_plan_gate,
        plan_gate_dispatches=at_the_plan_gate,
        total=whole,
        checks=check_time([check for part in parts for check in part.checks]),
        parts=each,
        agents=tuple(AgentCost(role=role, model=model, cost=tally.cost()) for role, model, tally in by_agent(parts)),
        steps=tuple(step.cost(place) for place, step in steps),
        verification=Verification.of(parts).cost(whole),
    )


def _cost_of_part(part: Part, steps: Sequence[tuple[_Place, _Step]]) -> PartCost:
    return PartCost(
        run_id=part.run_id,
        command=part.command,
        part=part.name,
        outcome=part.outcome,
        cost=_sum(step.tally for place, step in steps if place.part == part.name).cost(),
        checks=check_time(part.checks),
    )


def _sum(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total += tally
    return total


def check_time(checks: Iterable[Stored[CheckRow]]) -> CheckTime:
    """Of what was run: a reviewer's word is a row too, and has no duration."""
    timed = [row for stored in checks if (row := stored.row).duration_ms is not None]
    own = [row.duration_ms or 0 for row in timed if row.reused_from is None]
    return CheckTime(runs=len(own), reused=len(timed) - len(own), seconds=round(sum(own) / 1000, 3))


def _between(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
