"""`proofstone record`: a run of the ledger's, written as a script."""

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
    run_id: str
    text: str
    entries: int
    setup: GateSetup | None
    """Of a run of the gate."""


def script_of_run(run: str, home: Path | None = None) -> Script:
    """What everybody said and did in the run. InputError, if there is nothing that could be had again."""
    home = private_home(home)
    path = ledger_path(home)
    run_id = find_any_run(path, run, repository_around(Path.cwd()))
    with closing(SqliteLedger(path, "read")) as ledger:
        setup = _gate_setup(ledger, run_id)
        entries = _of_gate(ledger, run_id, setup, home) if setup else conversations(on_record(ledger, run_id).values())
    if not entries:
        raise InputError(
            f"{run_id}: nobody has done or said anything in it that a script could say again",
            hint="`proofstone gate` and `proofstone ask` have agents at work",
        )
    return Script(run_id, script_text(entries, _comment(run_id, setup)), len(entries), setup)


def _gate_setup(ledger: SqliteLedger, run_id: str) -> GateSetup | None:
    for stored in ledger.read(EventRow, run_id=run_id, type="run.started"):
        if stored.row.payload.get("command") == "gate":
            return GateSetup.model_validate(stored.row.payload)
    return None


def _of_gate(ledger: SqliteLedger, run_id: str, setup: GateSetup, home: Path) -> Sequence[Entry]:
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
