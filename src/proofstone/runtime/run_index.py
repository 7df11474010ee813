"""The runs in the ledger, readable at any time and from any process, for every command that starts runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Final, Generic, TypeVar

from proofstone.errors import ProofstoneError
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow, RunConfig
from proofstone.runtime.context import OutOfBudgetError

CHILD_RUN_EVENT: Final = "run.child"
"""The type of the event that names a child run."""
_LIFE_CYCLE: Final = ("run.started", "run.resumed", "run.interrupted", "run.finished")
_OUTCOMES_WITH_REPORT: Final = ("passed", "failed", "needs_human", "halted")
"""The outcomes of runs that may have a report."""
CANCELLED_OUTCOME: Final = "cancelled"
"""The outcome of a run that a person has cancelled. It cannot be resumed."""

RunConfigT = TypeVar("RunConfigT", bound=RunConfig)
Report = TypeVar("Report")


@dataclass(frozen=True)
class RunSummary(Generic[RunConfigT]):
    """A run, summarised in one line."""

    run_id: str
    setup: RunConfigT
    state: str
    """The outcome of the run, or why it has none: `waiting`, `running`, `interrupted`, `budget_exhausted`,
    `cancelled`."""
    reason: str
    started_at: str
    updated_at: str
    details: Mapping[str, object] = field(default_factory=dict)
    """What only runs of this command have, such as the number of tasks."""


def read_run_configs(ledger: Ledger, contract: type[RunConfigT]) -> dict[str, RunConfigT]:
    """Return the configuration of every run of a command, newest first."""
    command = contract.model_fields["command"].default
    started = [stored.row for stored in ledger.read(EventRow, type="run.started")]
    rows = [row for row in started if row.payload.get("command") == command]
    return {row.run_id: contract.model_validate(row.payload) for row in reversed(rows)}


def read_run_config(ledger: Ledger, contract: type[RunConfigT], run_id: str) -> RunConfigT | None:
    """Return the configuration of a run; None if another command started the run."""
    command = contract.model_fields["command"].default
    for stored in ledger.read(EventRow, run_id=run_id, type="run.started", limit=1):
        if stored.row.payload.get("command") == command:
            return contract.model_validate(stored.row.payload)
    return None


def read_run_end(ledger: Ledger, run_id: str) -> tuple[str, str]:
    """Return the outcome of a run and its reason. Both are empty while it is under way or was interrupted."""
    events = [stored.row for stored in ledger.read(EventRow, run_id=run_id) if stored.row.type in _LIFE_CYCLE]
    payload = events[-1].payload if events and events[-1].type == "run.finished" else {}
    return str(payload.get("outcome", "")), str(payload.get("reason", ""))


def summarize_run(
    ledger: Ledger, run_id: str, setup: RunConfigT, *, running: bool, read_outcome: Callable[[Ledger, str], str]
) -> RunSummary[RunConfigT]:
    """Summarise a run. `read_outcome` returns the outcome in the report of the run; empty if there is no report."""
    events = [row for row in ledger.read(EventRow, run_id=run_id) if row.row.type.startswith("run.")]
    last = [event for event in events if event.row.type != CHILD_RUN_EVENT][-1]
    outcome, reason = (str(last.row.payload.get(key, "")) for key in ("outcome", "reason"))
    state = "running" if running else outcome or "interrupted"
    if not running and outcome in _OUTCOMES_WITH_REPORT:
        state = read_outcome(ledger, run_id) or state
    return RunSummary(run_id, setup, state, reason, events[0].ts, last.ts)


@contextmanager
def record_early_end(ledger: Ledger, run_id: str, cancel: Event) -> Iterator[None]:
    """Record the end of a run however it ends early, and cancel everything that it has started."""

    def record_event(type: str, **payload: str) -> None:
        ledger.append(EventRow(run_id=run_id, type=type, payload={**payload}))

    try:
        yield
    except OutOfBudgetError as error:
        record_event("run.finished", outcome="budget_exhausted", reason=str(error))
        raise
    except ProofstoneError as error:
        record_event("run.finished", outcome="halted", reason=error.message)
        raise
    except BaseException:
        cancel.set()
        record_event("run.interrupted", reason="interrupted")
        raise
