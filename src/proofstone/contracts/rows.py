"""Rows of the ledger besides `CheckRow`: what was said, decided and produced.

Nothing is ever updated: what begins and ends is two rows. `runs` and `tasks` are views over `EventRow`, by these
types: `run.started`, `run.finished` (payload `outcome`), `task.started`, `task.finished` (payload `outcome`), and
whatever else begins with `run.` or `task.`; the last of them names the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from proofstone.contracts.base import Contract

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class StepStatus(StrEnum):
    RUNNING = "running"
    """The start row of a step."""
    DONE = "DONE"
    NEEDS_REVISION = "NEEDS_REVISION"
    ERROR = "ERROR"


class TelemetryRow(Contract):
    """A step of the pipeline: one row when it starts, a second one, with `completed_at`, when it ends."""

    run_id: str
    step: str
    agent: str
    instance: str | None = None
    started_at: str
    completed_at: str | None = None
    status: StepStatus = StepStatus.RUNNING
    dispatch_count: int = 1
    retry_count: int = 0
    notes: str | None = None


class MessageRow(Contract):
    """One envelope of the bus."""

    message_id: str
    run_id: str
    sender: str
    recipient: str
    type: str
    payload: Mapping[str, JsonValue] = {}


class DeliveryRow(Contract):
    """How far a subscriber of the bus has come; the last row of a subscriber is its cursor."""

    subscriber: str
    run_id: str | None = None
    """The run that it listens to; None: to all of them."""
    upto: int = Field(ge=0)
    """Sequence number of the last message that it has handled."""


class ApprovalRow(Contract):
    """A person, or a rule in a person's place, chose an option at a gate."""

    run_id: str
    task_id: str | None = None
    gate: str
    option: str
    decided_by: str
    reason: str = ""
    payload: Mapping[str, JsonValue] = {}


class OverrideRow(Contract):
    """A person set a gate aside. It is never a pass; it is a record of who did it and why."""

    run_id: str
    task_id: str
    action: str
    """`skip`, `force`, `done`, `amend`."""
    category: str | None = None
    reason: str
    decided_by: str
    payload: Mapping[str, JsonValue] = {}


class EventRow(Contract):
    """Something happened in a run."""

    run_id: str
    task_id: str | None = None
    type: str
    payload: Mapping[str, JsonValue] = {}


class ArtifactRow(Contract):
    """Bytes that the artifact store holds. `artifact` is their SHA-256, as in `checks.artifact`."""

    artifact: Sha256
    size: int = Field(ge=0)
    media_type: str = "application/octet-stream"
    truncated: bool = False
