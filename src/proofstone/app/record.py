"""Write a recorded run as a script (`proofstone record`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.agents.script_file import ScriptEntry
from proofstone.agents.script_recorder import build_script_entries
from proofstone.agents.script_writer import format_script
from proofstone.agents.spending import read_dispatch_records
from proofstone.app.context import ensure_private_home
from proofstone.auditor.tap import list_parts
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
        if run == "last":
            run_id = _find_whole_run(ledger, run_id)
        setup = _read_gate_setup(ledger, run_id)
        entries = [entry for part in list_parts(ledger, run_id) for entry in _part_entries(ledger, run_id, part, home)]
    if not entries:
        raise InputError(
            f"{run_id}: no agent did or said anything that a script could repeat",
            hint="record a run in which agents work, for instance of `proofstone gate` or `proofstone ask`",
        )
    return RecordedScript(run_id, format_script(entries, _comment(run_id, setup)), len(entries), setup)


def _find_whole_run(ledger: SqliteLedger, run_id: str) -> str:
    """Return the run that this one is a part of, or the run itself."""
    for started in ledger.read(EventRow, run_id=run_id, type="run.started", limit=1):
        return str(started.row.payload.get("parent") or run_id)
    return run_id


def _part_entries(ledger: SqliteLedger, run_id: str, part: str, home: Path) -> Sequence[ScriptEntry]:
    """Return the entries of a run or one of its parts. The plans of several parts have tasks of the same ids, so the
    entries of a part match that part only: its id is that of the run with an ending.
    """
    setup = _read_gate_setup(ledger, part)
    if setup is not None:
        entries = _gate_entries(ledger, part, setup, home)
    else:
        entries = build_script_entries(read_dispatch_records(ledger, part).values())
    if part == run_id:
        return entries
    ending = f"*{part.removeprefix(run_id)}"
    return [replace(entry, match={**entry.match, "run": (ending,)}) for entry in entries]


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
