"""Rows of the ledger, as the engine hands them over. The ledger adds sequence number, time and hashes.

Rows of the ledger besides `CheckRow`: what was said, decided and produced.

Nothing is ever updated: what begins and ends is two rows. `runs` and `tasks` are views over `EventRow`, by these
types: `run.started`, `run.finished` (payload `outcome`), `task.started`, `task.finished` (payload `outcome`), and
whatever else begins with `run.` or `task.`; the last of them names the state.

What every run was started with, whichever command has begun it: part of its first row.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from proofstone.common.models import Assurance, Contract, Phase, ReviewVerdict, Severity, Verdict

SNIPPET_LIMIT = 500


class CheckRow(Contract):
    """One row of `checks`: if the row is not there, the check did not happen."""

    run_id: str
    task_id: str
    phase: Phase
    check_name: str
    tool: str
    command: str | None = None
    exit_code: int | None = None
    output_snippet: str = Field(default="", max_length=SNIPPET_LIMIT)
    state: Verdict
    verdict: ReviewVerdict | None = None
    severity: Severity | None = None
    round: int = 1
    attempt: int = 1
    tree: str | None = None
    tier: int | None = None
    assurance: Assurance | None = None
    duration_ms: int | None = None
    artifact: str | None = None
    reused_from: int | None = None
    result_digest: str | None = None
    """Digest of the whole result as it may be kept for reuse; None where none is."""

    @property
    def passed(self) -> bool:
        return self.state is Verdict.PASS


def snippet(text: str) -> str:
    """Head and tail of `text`, within what a row may hold: a cut middle never hides how a check ended."""
    if len(text) <= SNIPPET_LIMIT:
        return text
    mark = "\n[…]\n"
    head = (SNIPPET_LIMIT - len(mark)) // 3
    tail = SNIPPET_LIMIT - len(mark) - head
    return text[:head] + mark + text[-tail:]


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


class BegunSetup(Contract):
    command: str
    version: str
    """Of the engine: another one may decide otherwise, so it does not go on with this run."""
    repository: str
    base_commit: str
    settings_commit: str = ""
    """Whose settings decide, if it is not the base: what earlier parts of a run have committed cannot loosen them."""
    parent: str = ""
    """The run that it is a part of, if it is one."""

    @property
    def about(self) -> str:
        """How one would name to the command what the run is about."""
        raise NotImplementedError
