"""Write a recorded run as a script (`proofstone record`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.recording import conversations
from proofstone.agents.script_file import Entry
from proofstone.agents.script_writing import script_text
from proofstone.agents.spending import on_record
from proofstone.app.context import private_home
from proofstone.errors import InputError
from proofstone.gate.context import Journal
from proofstone.gate.models import GateSetup
from proofstone.gate.recording import script_of
from proofstone.gate.view import plan_of
from proofstone.git.repository import open_repository, repository_around
from proofstone.git.store import open_store
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.query import find_any_run
from proofstone.ledger.sqlite import SqliteLedger


@dataclass(frozen=True)
class Script:
    """A script that repeats a run."""

    run_id: str
    text: str
    entries: int
    setup: GateSetup | None
    """The setup, if it was a run of the gate."""


def script_of_run(run: str, home: Path | None = None) -> Script:
    """Write what the agents said and did in a run as a script. Raise an InputError if there is nothing to repeat."""
    home = private_home(home)
    path = ledger_path(home)
    run_id = find_any_run(path, run, repository_around(Path.cwd()))
    with closing(SqliteLedger(path, "read")) as ledger:
        setup = _read_gate_setup(ledger, run_id)
        entries = (
            _gate_entries(ledger, run_id, setup, home) if setup else conversations(on_record(ledger, run_id).values())
        )
    if not entries:
        raise InputError(
            f"{run_id}: no agent did or said anything that a script could repeat",
            hint="record a run in which agents work, for instance of `proofstone gate` or `proofstone ask`",
        )
    return Script(run_id, script_text(entries, _comment(run_id, setup)), len(entries), setup)


def _read_gate_setup(ledger: SqliteLedger, run_id: str) -> GateSetup | None:
    for stored in ledger.read(EventRow, run_id=run_id, type="run.started"):
        if stored.row.payload.get("command") == "gate":
            return GateSetup.model_validate(stored.row.payload)
    return None


def _gate_entries(ledger: SqliteLedger, run_id: str, setup: GateSetup, home: Path) -> Sequence[Entry]:
    plan = plan_of(setup, ArtifactStore(artifacts_path(home)))
    store = open_store(open_repository(Path(setup.repository)), home)
    return script_of(setup, Journal.opened(ledger, run_id, plan), store.git())


def _comment(run_id: str, setup: GateSetup | None) -> str:
    lines = [f"Recorded from run {run_id}."]
    if setup is not None:
        lines += [
            f"Executor: {setup.executor}; architect: {setup.architect}; begun at commit {setup.base_commit}.",
            "To have it again, from that commit: proofstone gate PLAN.md --executor script:THIS-FILE"
            + (" --architect script:THIS-FILE" if setup.architect != "rules" else ""),
        ]
    return "\n".join(lines)
