"""Write a recorded run as a script (`proofstone record`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.script_file import ScriptEntry
from proofstone.agents.script_recorder import build_script_entries
from proofstone.agents.script_writer import format_script
from proofstone.agents.spending import read_dispatch_records
from proofstone.app.context import ensure_private_home
from proofstone.errors import InputError
from proofstone.gate.context import GateJournal
from proofstone.gate.models import GateSetup
from proofstone.gate.script_export import export_gate_script
from proofstone.gate.view import load_gate_plan
from proofstone.git.repository import find_repository_root, open_repository
from proofstone.git.store import open_store
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.query import find_any_run
from proofstone.ledger.sqlite import SqliteLedger


@dataclass(frozen=True)
class RecordedScript:
    """A script that repeats a run."""

    run_id: str
    text: str
    entry_count: int
    setup: GateSetup | None
    """The setup, if it was a run of the gate."""


def record_script(run: str, home: Path | None = None) -> RecordedScript:
    """Write what the agents said and did in a run as a script. Raise an InputError if there is nothing to repeat."""
    home = ensure_private_home(home)
    path = ledger_path(home)
    run_id = find_any_run(path, run, find_repository_root(Path.cwd()))
    with closing(SqliteLedger(path, "read")) as ledger:
        setup = _read_gate_setup(ledger, run_id)
        entries = (
            _gate_entries(ledger, run_id, setup, home)
            if setup
            else build_script_entries(read_dispatch_records(ledger, run_id).values())
        )
    if not entries:
        raise InputError(
            f"{run_id}: no agent did or said anything that a script could repeat",
            hint="record a run in which agents work, for instance of `proofstone gate` or `proofstone ask`",
        )
    return RecordedScript(run_id, format_script(entries, _comment(run_id, setup)), len(entries), setup)


def _read_gate_setup(ledger: SqliteLedger, run_id: str) -> GateSetup | None:
    for stored in ledger.read(EventRow, run_id=run_id, type="run.started"):
        if stored.row.payload.get("command") == "gate":
            return GateSetup.model_validate(stored.row.payload)
    return None


def _gate_entries(ledger: SqliteLedger, run_id: str, setup: GateSetup, home: Path) -> Sequence[ScriptEntry]:
    plan = load_gate_plan(setup, ArtifactStore(artifacts_path(home)))
    store = open_store(open_repository(Path(setup.repository)), home)
    return export_gate_script(setup, GateJournal.open(ledger, run_id, plan), store.git())


def _comment(run_id: str, setup: GateSetup | None) -> str:
    lines = [f"Recorded from run {run_id}."]
    if setup is not None:
        lines += [
            f"Executor: {setup.executor}; architect: {setup.architect}; begun at commit {setup.base_commit}.",
            "To have it again, from that commit: proofstone gate PLAN.md --executor script:THIS-FILE"
            + (" --architect script:THIS-FILE" if setup.architect != "rules" else ""),
        ]
    return "\n".join(lines)
