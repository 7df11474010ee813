"""The rows of the ledger, as the engine writes them. The ledger adds the sequence number, the time and the hashes.

Rows are never updated: the start and the end of something are two rows. `runs` and `tasks` are views over `EventRow`,
by these types: `run.started`, `run.finished` (payload `outcome`), `task.started`, `task.finished` (payload `outcome`),
and all others that begin with `run.` or `task.`; the last of them names the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from proofstone.common.models import Assurance, FrozenModel, Phase, ReviewVerdict, Severity, Verdict

SNIPPET_LIMIT = 500


class CheckRow(FrozenModel):
    """A row of `checks`: if there is no row, the check did not happen."""

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
    """The digest of the complete result that may be stored for reuse; None if none is stored."""

    @property
    def passed(self) -> bool:
        return self.state is Verdict.PASS


def cut_snippet(text: str) -> str:
    """Return the head and the tail of `text`, within the limit of a row, so that the end of a check is never
    cut off.
    """
    if len(text) <= SNIPPET_LIMIT:
        return text
    mark = "\n[…]\n"
    head = (SNIPPET_LIMIT - len(mark)) // 3
    tail = SNIPPET_LIMIT - len(mark) - head
    return text[:head] + mark + text[-tail:]


Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class StepStatus(StrEnum):
    RUNNING = "running"
    """The status in the row that starts a step."""
    DONE = "DONE"
    NEEDS_REVISION = "NEEDS_REVISION"
    ERROR = "ERROR"


class TelemetryRow(FrozenModel):
    """A step of the pipeline: one row for its start, and a second one, with `completed_at`, for its end."""

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


class MessageRow(FrozenModel):
    """An envelope of the message bus."""

    message_id: str
    run_id: str
    sender: str
    recipient: str
    type: str
    payload: Mapping[str, JsonValue] = {}


class ApprovalRow(FrozenModel):
    """A person, or a rule in place of a person, chose an option at a gate."""

    run_id: str
    task_id: str | None = None
    gate: str
    option: str
    decided_by: str
    reason: str = ""
    payload: Mapping[str, JsonValue] = {}


class OverrideRow(FrozenModel):
    """A person overrode a gate. This is never a pass; it records who did it and why."""

    run_id: str
    task_id: str
    action: str
    """`skip`, `force`, `done`, `amend`."""
    category: str | None = None
    reason: str
    decided_by: str
    payload: Mapping[str, JsonValue] = {}


class EventRow(FrozenModel):
    """An event in a run."""

    run_id: str
    task_id: str | None = None
    type: str
    payload: Mapping[str, JsonValue] = {}


class ArtifactRow(FrozenModel):
    """Bytes in the artifact store. `artifact` is their SHA-256, as in `checks.artifact`."""

    artifact: Sha256
    size: int = Field(ge=0)
    media_type: str = "application/octet-stream"
    truncated: bool = False


class RunConfig(FrozenModel):
    command: str
    version: str
    """The version of the engine. Another version may decide differently, so it cannot resume this run."""
    repository: str
    base_commit: str
    settings_commit: str = ""
    """The commit whose settings apply, if it is not the base: commits of earlier parts of a run cannot loosen them."""
    parent: str = ""
    """The parent run, if there is one."""

    @property
    def subject(self) -> str:
        """The subject of the run, as a user would name it on the command line."""
        raise NotImplementedError
