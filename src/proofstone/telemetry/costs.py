"""What a run has cost: by step, by agent and model, by part, and in total.

The cost of supervision is counted too: asking agents whether they understand their task, and judging their answers. A
question to a working agent is recorded at a turn boundary; every call of the agent until it is told to continue counts
towards its answer. All calls of a judge count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from proofstone.common.models import BudgetUsage
from proofstone.ledger import Ledger
from proofstone.ledger.models import CheckRow, TelemetryRow
from proofstone.ledger.schema import StoredRow
from proofstone.runtime.journal import read_work_ms
from proofstone.telemetry.dispatches import (
    GATE_COMMAND,
    PLAN_GATE_COMMAND,
    ModelCall,
    RecordedDispatch,
    RunPart,
    read_run_parts,
)
from proofstone.telemetry.models import AgentCost, CheckTime, Cost, PartCost, RunCost, StepCost, VerificationCost


@dataclass
class CostTally:
    """A sum of costs, with the rows that it comes from."""

    dispatches: set[tuple[str, str]] = field(default_factory=set)
    """The run id and the dispatch id of each dispatch."""
    retries: int = 0
    spent: BudgetUsage = field(default_factory=BudgetUsage)
    unmeasured: int = 0
    untold: int = 0
    rows: list[int] = field(default_factory=list)

    def add(self, run_id: str, dispatch: RecordedDispatch, calls: Iterable[ModelCall]) -> None:
        self.dispatches.add((run_id, dispatch.id))
        for call in calls:
            self.spent += call.spent
            self.unmeasured += call.unmeasured_requests
            self.rows.append(call.row_mark.seq)

    def __iadd__(self, other: CostTally) -> CostTally:
        self.dispatches |= other.dispatches
        self.retries += other.retries
        self.spent += other.spent
        self.unmeasured += other.unmeasured
        self.untold += other.untold
        self.rows += other.rows
        return self

    def to_cost(self) -> Cost:
        """Return the cost. Figures that nobody reported are None, because unknown is not zero."""
        spent = self.spent
        is_measured = spent.requests > self.unmeasured or not (self.unmeasured or self.untold)
        is_priced = spent.requests > spent.unpriced or not (spent.unpriced or self.untold)
        return Cost(
            dispatches=len(self.dispatches),
            retries=self.retries,
            requests=spent.requests,
            tool_calls=spent.tool_calls,
            seconds=round(spent.seconds, 3),
            input_tokens=spent.input_tokens if is_measured else None,
            output_tokens=spent.output_tokens if is_measured else None,
            cache_read_tokens=spent.cache_read_tokens if is_measured else None,
            usd=round(spent.usd, 6) if is_priced else None,
            unmeasured=self.unmeasured,
            unpriced=spent.unpriced,
            untold=self.untold,
        )


@dataclass
class SupervisionTally:
    questions: int = 0
    judgements: int = 0
    tally: CostTally = field(default_factory=CostTally)

    @classmethod
    def of(cls, parts: Iterable[RunPart]) -> SupervisionTally:
        verification = cls()
        for part in parts:
            for dispatch in part.dispatches:
                verification.questions += dispatch.questions
                verification.judgements += dispatch.is_judgement
                if calls := [call for call in dispatch.calls if call.is_supervision]:
                    verification.tally.add(part.run_id, dispatch, calls)
        return verification

    def to_cost(self, total: Cost) -> VerificationCost | None:
        """Return the cost of supervision with its share of the total; None if no agent was asked."""
        if not self.questions and not self.judgements:
            return None
        cost = self.tally.to_cost()
        return VerificationCost(
            questions=self.questions,
            judgements=self.judgements,
            cost=cost,
            share_of_tokens=compute_share(_count_tokens(cost), _count_tokens(total)),
            share_of_calls=compute_share(cost.requests, None if total.untold else total.requests),
        )


def compute_share(part: int | None, whole: int | None) -> float | None:
    """Return the share; None if one of the numbers is unknown, or if the whole is 0."""
    return None if part is None or not whole else round(part / whole, 4)


def _count_tokens(cost: Cost) -> int | None:
    if cost.input_tokens is None or cost.output_tokens is None or cost.unmeasured or cost.untold:
        return None
    return cost.input_tokens + cost.output_tokens


ENGINE_ROLE: Final = "engine"
_ROLE_OF_STEP: Final = {"execute": "executor", "review": "architect", "check": ENGINE_ROLE}
"""The role of each step of a task at the gate."""
_UNRECORDED_PREFIX: Final = "cmd:"
"""The prefix of an executor or architect that is a program of the user: its calls are not recorded."""


# By agent and model.


class AgentTally(NamedTuple):
    role: str
    model: str
    tally: CostTally


def group_by_agent(parts: Iterable[RunPart]) -> list[AgentTally]:
    """Return the calls by role and model, in the order of the first call."""
    tallies: dict[tuple[str, str], CostTally] = {}
    for part in parts:
        for dispatch in part.dispatches:
            for model in dict.fromkeys(call.model for call in dispatch.calls):
                tally = tallies.setdefault((dispatch.occasion.role, model), CostTally())
                tally.add(part.run_id, dispatch, (call for call in dispatch.calls if call.model == model))
            if dispatch.calls:
                tallies[dispatch.occasion.role, dispatch.model].retries += dispatch.retries
    lines = [AgentTally(role, model, tally) for (role, model), tally in tallies.items()]
    return sorted(lines, key=lambda line: min(line.tally.rows))


# By step.


class _StepKey(NamedTuple):
    part: str
    step: str
    agent: str
    instance: str


@dataclass
class _StepTally:
    tally: CostTally = field(default_factory=CostTally)
    models: dict[str, None] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    """The sequence numbers of the rows about the step."""
    rows: dict[str, TelemetryRow] = field(default_factory=dict)
    """The last row of each start of the step."""

    def take(self, run_id: str, dispatch: RecordedDispatch) -> None:
        self.seen.append(dispatch.first.seq)
        self.tally.add(run_id, dispatch, dispatch.calls)
        self.tally.retries += dispatch.retries
        self.models.update(dict.fromkeys(call.model for call in dispatch.calls if call.model))

    def take_untold(self) -> None:
        """Count the steps of a program whose calls are not on the bus."""
        rows = [row for row in self.rows.values() if row.agent.startswith(_UNRECORDED_PREFIX)]
        if not self.tally.dispatches:
            self.tally.untold = len(rows)
            self.tally.retries = sum(row.retry_count > 0 for row in rows)

    @property
    def wall_seconds(self) -> float | None:
        """The duration of the step; None if it has not ended. An interrupted start does not count."""
        starts = list(self.rows.values())
        finished = [(row.started_at, row.completed_at) for row in starts if row.completed_at]
        if not starts or starts[-1].completed_at is None:
            return None
        return round(sum(_seconds_between(start, end) for start, end in finished), 3)

    def cost(self, key: _StepKey) -> StepCost:
        return StepCost(
            part=key.part,
            step=key.step,
            agent=key.agent,
            instance=key.instance,
            models=tuple(self.models),
            status=list(self.rows.values())[-1].status if self.rows else None,
            wall_seconds=self.wall_seconds,
            cost=self.tally.to_cost(),
        )


def _collect_steps(parts: Iterable[RunPart]) -> list[tuple[_StepKey, _StepTally]]:
    """Return the steps in the order of their starts."""
    steps: dict[_StepKey, _StepTally] = {}
    for part in parts:
        for dispatch in part.dispatches:
            steps.setdefault(_key_of_dispatch(part, dispatch), _StepTally()).take(part.run_id, dispatch)
        for stored in part.steps:
            row = stored.row
            step = steps.setdefault(_key_of_row(part, row), _StepTally())
            step.seen.append(stored.seq)
            step.rows[row.started_at] = row
    for step in steps.values():
        step.take_untold()
    return sorted(steps.items(), key=lambda item: min(item[1].seen))


def _key_of_dispatch(part: RunPart, dispatch: RecordedDispatch) -> _StepKey:
    """Return the step of a dispatch. A second review of the same attempt at the gate is the same step."""
    occasion = dispatch.occasion
    step = f"{occasion.task}/a{occasion.attempt}" if part.command == GATE_COMMAND and occasion.task else occasion.step
    return _StepKey(part.name, step, occasion.role, occasion.focus or "")


def _key_of_row(part: RunPart, row: TelemetryRow) -> _StepKey:
    """Return the step of a row. The gate names its steps differently from its dispatches: `task-01/execute` is the
    executor's step of `task-01/a1`.
    """
    task, _, name = row.step.rpartition("/")
    if part.command == GATE_COMMAND and name in _ROLE_OF_STEP:
        return _StepKey(part.name, f"{task}/a{row.retry_count + 1}", _ROLE_OF_STEP[name], row.instance or "")
    return _StepKey(part.name, row.step, row.agent, row.instance or "")


# Totals.


def compute_run_cost(ledger: Ledger, run_id: str, *, running: bool = False) -> RunCost:
    """Return the cost of a run with its parts, even while it runs. `running` says whether a process works on it."""
    parts = read_run_parts(ledger, run_id)
    steps = _collect_steps(parts)
    part_costs = tuple(_compute_part_cost(part, steps) for part in parts)
    total = _sum_tallies(step.tally for _, step in steps)
    total_cost = total.to_cost()
    plan_gate_dispatches = sum(part.cost.dispatches for part in part_costs[1:] if part.command == PLAN_GATE_COMMAND)
    return RunCost(
        run_id=run_id,
        command=parts[0].command,
        outcome=parts[0].outcome,
        running=running,
        worked_seconds=read_work_ms(ledger, run_id) / 1000,
        dispatches=len(total.dispatches) - plan_gate_dispatches,
        plan_gate_dispatches=plan_gate_dispatches,
        total=total_cost,
        checks=sum_check_time([check for part in parts for check in part.checks]),
        parts=part_costs,
        agents=tuple(
            AgentCost(role=role, model=model, cost=tally.to_cost()) for role, model, tally in group_by_agent(parts)
        ),
        steps=tuple(step.cost(key) for key, step in steps),
        verification=SupervisionTally.of(parts).to_cost(total_cost),
    )


def _compute_part_cost(part: RunPart, steps: Sequence[tuple[_StepKey, _StepTally]]) -> PartCost:
    return PartCost(
        run_id=part.run_id,
        command=part.command,
        part=part.name,
        outcome=part.outcome,
        cost=_sum_tallies(step.tally for key, step in steps if key.part == part.name).to_cost(),
        checks=sum_check_time(part.checks),
    )


def _sum_tallies(tallies: Iterable[CostTally]) -> CostTally:
    total = CostTally()
    for tally in tallies:
        total += tally
    return total


def sum_check_time(checks: Iterable[StoredRow[CheckRow]]) -> CheckTime:
    """Return the time of the executed checks: the verdict of a reviewer is a row too, but has no duration."""
    rows = [row for stored in checks if (row := stored.row).duration_ms is not None]
    durations = [row.duration_ms or 0 for row in rows if row.reused_from is None]
    return CheckTime(runs=len(durations), reused=len(rows) - len(durations), seconds=round(sum(durations) / 1000, 3))


def _seconds_between(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
