"""What a run has cost, by step, agent and model; and the same as spans.

Unknown figures are None and never 0: a model that reports no usage is not free.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from proofstone.common.models import FrozenModel
from proofstone.ledger.models import StepStatus


class Cost(FrozenModel):
    """What something has used. With `unmeasured` or `unpriced` calls, a figure covers only the known part; None means
    that nothing is known.
    """

    dispatches: int = 0
    """The number of dispatches. A dispatch that is continued after a crash counts once."""
    retries: int = 0
    """Repeated dispatches, calls repeated after a fault, and answers that had to be repaired."""
    requests: int = 0
    """The number of model calls."""
    tool_calls: int = 0
    seconds: float = 0.0
    """The working time of agents and tools; parallel times are added up."""
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_tokens: int | None = 0
    usd: float | None = 0.0
    unmeasured: int = 0
    """The number of calls without a reported number of tokens."""
    unpriced: int = 0
    """The number of calls whose price is unknown."""
    untold: int = 0
    """The number of steps of a user's program, which reports neither its calls nor their cost."""


class StepCost(FrozenModel):
    part: str = ""
    """The part of the run: `plan 1`, `gate 2`; empty for the run itself."""
    step: str
    agent: str
    """The role; `engine` for a step without an agent."""
    instance: str = ""
    models: tuple[str, ...] = ()
    """The models that answered, by their own names."""
    status: StepStatus | None = None
    """None if only the dispatches of the step are recorded."""
    wall_seconds: float | None = None
    """The time from start to end, summed over all completed starts; None if it is not recorded or has not ended."""
    cost: Cost


class AgentCost(FrozenModel):
    role: str
    model: str
    """Empty if the model is unknown."""
    cost: Cost


class CheckTime(FrozenModel):
    """The time of checks. Checks run in parallel, so their times add up to more than the elapsed time."""

    runs: int = 0
    reused: int = 0
    """Results that were reused from an earlier run of the same check on the same tree."""
    seconds: float | None = 0.0
    """None if the ledger does not record it."""


class PartCost(FrozenModel):
    """The cost of the run itself, or of a child run."""

    run_id: str
    command: str
    part: str = ""
    outcome: str = ""
    """Empty if the part has not ended."""
    cost: Cost
    checks: CheckTime


class VerificationCost(FrozenModel):
    """The cost of asking agents whether they understand their task. It is included in the total cost. Shares are
    between 0 and 1; None means that a share is unknown, or that the total is 0.
    """

    questions: int
    """The number of questions to agents."""
    judgements: int
    """The number of judged answers."""
    cost: Cost
    """Its dispatches are those in which an agent answered or judged."""
    share_of_tokens: float | None
    share_of_calls: float | None
    """The share of model calls."""


class RunCost(FrozenModel):
    schema_version: Literal["1"] = "1"
    run_id: str
    command: str
    outcome: str = ""
    """Empty if the run has not ended."""
    running: bool = False
    """Whether a process works on the run now, so that the figures may still grow."""
    worked_seconds: float = 0.0
    """The elapsed time during which processes worked on the run."""
    dispatches: int = 0
    """Without the dispatches of the plan gate within the run."""
    plan_gate_dispatches: int = 0
    total: Cost
    checks: CheckTime
    parts: tuple[PartCost, ...]
    """The run itself comes first."""
    agents: tuple[AgentCost, ...] = ()
    steps: tuple[StepCost, ...] = ()
    """The steps in the order of their starts."""
    verification: VerificationCost | None = None
    """None if no agent was asked whether it understands its task."""


class SpanKind(StrEnum):
    INTERNAL = "internal"
    CLIENT = "client"
    """A call of an external service."""


class Span(FrozenModel):
    """An operation with a duration, by the conventions of OpenTelemetry. It contains no prompts and no answers."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str
    kind: SpanKind = SpanKind.INTERNAL
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int | float | bool | tuple[str, ...]] = {}
    error: str = ""
    """The kind of error; empty if there was none."""
    seq: int
    """The last ledger row that the span is based on."""
