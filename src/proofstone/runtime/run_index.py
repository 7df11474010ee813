"""Runs as the ledger tells them, at any time and from any process: whichever command has begun them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Final, Generic, TypeVar

from proofstone.errors import ProofstoneError
from proofstone.ledger import Ledger
from proofstone.ledger.models import BegunSetup, EventRow
from proofstone.runtime.context import OutOfBudgetError

CHILD: Final = "run.child"
"""Type of the event that names a run which is a part of this one."""
_JUDGED: Final = ("passed", "failed", "needs_human", "halted")
"""Outcomes of runs that may have a report."""

Setup = TypeVar("Setup", bound=BegunSetup)
Report = TypeVar("Report")


@dataclass(frozen=True)
class BegunRun(Generic[Setup]):
    """A run in one line."""

    run_id: str
    setup: Setup
    state: str
    """What came of it, or why nothing has: `waiting`, `running`, `interrupted`, `budget_exhausted`."""
    reason: str
    started_at: str
    updated_at: str


def setups_of(ledger: Ledger, contract: type[Setup]) -> dict[str, Setup]:
    """What every run of a command was started with, newest first."""
    command = contract.model_fields["command"].default
    started = [item.row for item in ledger.read(EventRow, type="run.started")]
    ours = [row for row in started if row.payload.get("command") == command]
    return {row.run_id: contract.model_validate(row.payload) for row in reversed(ours)}


def setup_of_run(ledger: Ledger, contract: type[Setup], run_id: str) -> Setup | None:
    """What one run of a command was started with; None if it is not of that command."""
    command = contract.model_fields["command"].default
    for stored in ledger.read(EventRow, run_id=run_id, type="run.started", limit=1):
        if stored.row.payload.get("command") == command:
            return contract.model_validate(stored.row.payload)
    return None


def in_brief(
    ledger: Ledger, run_id: str, setup: Setup, *, running: bool, came: Callable[[Ledger, str], str]
) -> BegunRun[Setup]:
    """`came`: what came of it in a word, as far as it came to that; else nothing."""
    events = [row for row in ledger.read(EventRow, run_id=run_id) if row.row.type.startswith("run.")]
    last = [event for event in events if event.row.type != CHILD][-1]
    outcome, reason = (str(last.row.payload.get(key, "")) for key in ("outcome", "reason"))
    state = "running" if running else outcome or "interrupted"
    if not running and outcome in _JUDGED:
        state = came(ledger, run_id) or state
    return BegunRun(run_id, setup, state, reason, events[0].ts, last.ts)


@contextmanager
def end_on_record(ledger: Ledger, run_id: str, cancel: Event) -> Iterator[None]:
    """However a run ends early, its record says so; and nothing that it has begun goes on by itself."""

    def note(type: str, **payload: str) -> None:
        ledger.append(EventRow(run_id=run_id, type=type, payload={**payload}))

    try:
        yield
    except OutOfBudgetError as error:
        note("run.finished", outcome="budget_exhausted", reason=str(error))
        raise
    except ProofstoneError as error:
        note("run.finished", outcome="halted", reason=error.message)
        raise
    except BaseException:
        cancel.set()
        note("run.interrupted", reason="interrupted")
        raise
