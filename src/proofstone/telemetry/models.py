"""What a run has cost, by step, by agent and model; and the same as spans, for whoever collects those.

What nobody has told is None and never 0: a model that reports no usage is not free.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from proofstone.common.models import Contract
from proofstone.ledger.models import StepStatus


class Cost(Contract):
    """What something has used. A figure beside `unmeasured` or `unpriced` calls is what is known of it; None: nothing
    is."""

    dispatches: int = 0
    """How often an agent was asked. One that is asked on after a crash was asked once."""
    retries: int = 0
    """Dispatches that were made again, calls made again after a fault, answers that had to be mended."""
    requests: int = 0
    """Calls of a model."""
    tool_calls: int = 0
    seconds: float = 0.0
    """That agents and their tools were at work, one beside the other added up."""
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_tokens: int | None = 0
    usd: float | None = 0.0
    unmeasured: int = 0
    """Calls of which nobody has said how many tokens they took."""
    unpriced: int = 0
    """Calls of which nobody knows the price."""
    untold: int = 0
    """Steps of a program of the person's, which tells neither what it calls nor what that costs."""


class StepCost(Contract):
    part: str = ""
    """Of which part of the run: `plan 1`, `gate 2`; empty: of the run itself."""
    step: str
    agent: str
    """The role; of a step that no agent takes, `engine`."""
    instance: str = ""
    models: tuple[str, ...] = ()
    """Who answered, as they call themselves."""
    status: StepStatus | None = None
    """None: only its dispatches are on record."""
    wall_seconds: float | None = None
    """From its beginning to its end, each time that it came to one; None: it is not on record, or has not ended."""
    cost: Cost


class AgentCost(Contract):
    role: str
    model: str
    """Empty: nobody has said who it was."""
    cost: Cost


class CheckTime(Contract):
    """What checks took. They run side by side, so that their times add up to more than the clock shows."""

    runs: int = 0
    reused: int = 0
    """Results that were taken over from an earlier run of the same check on the same tree."""
    seconds: float | None = 0.0
    """None: the ledger does not say."""


class PartCost(Contract):
    """The run itself, or a run of its own that was a part of it."""

    run_id: str
    command: str
    part: str = ""
    outcome: str = ""
    """Empty: it has not ended."""
    cost: Cost
    checks: CheckTime


class VerificationCost(Contract):
    """What it has cost to ask agents whether they know what they are doing. It is a part of what everything has cost.
    Shares go from 0 to 1; None: they are not known, or there is nothing to have a share in."""

    questions: int
    """How often an agent was asked."""
    judgements: int
    """How often somebody was asked to judge an answer."""
    cost: Cost
    """Its dispatches are those in which anybody answered or judged."""
    share_of_tokens: float | None
    share_of_calls: float | None
    """Of the calls of models."""


class RunCost(Contract):
    schema_version: Literal["1"] = "1"
    run_id: str
    command: str
    outcome: str = ""
    """Empty: it has not ended."""
    running: bool = False
    """Somebody is at work on it now, so that there may be more by the time that this is read."""
    worked_seconds: float = 0.0
    """That processes were at work on it, by the clock."""
    dispatches: int = 0
    """Without those at the plan gate that is a part of it."""
    plan_gate_dispatches: int = 0
    total: Cost
    checks: CheckTime
    parts: tuple[PartCost, ...]
    """The run itself first."""
    agents: tuple[AgentCost, ...] = ()
    steps: tuple[StepCost, ...] = ()
    """In the order in which they began."""
    verification: VerificationCost | None = None
    """None: nobody was asked whether they know what they are doing."""


class SpanKind(StrEnum):
    INTERNAL = "internal"
    CLIENT = "client"
    """A call of somebody else's service."""


class Span(Contract):
    """Something that took time, by the conventions of OpenTelemetry. Nothing of what was asked or said is in it."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str
    kind: SpanKind = SpanKind.INTERNAL
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int | float | bool | tuple[str, ...]] = {}
    error: str = ""
    """What kind of error it ended with; empty: none."""
    seq: int
    """The last row of the ledger that it comes from."""
