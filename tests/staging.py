"""What every stage with scripted agents has: a small project, agents who say what is written for them, the record."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from proofstone.agents.spending import DispatchRecord, read_dispatch_records
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import CheckRow, EventRow, MessageRow
from proofstone.ledger.sqlite import SqliteLedger
from tests.workshop import Workshop

Entry = dict[str, Any]
"""Of a script: what one agent says and does on one occasion."""

DONE = {"completion": {"status": "DONE", "summary": "said"}}


def failing(role: str, **match: object) -> Entry:
    """It breaks down, whenever it is asked."""
    return {"role": role, "match": match, "steps": [{"error": {"kind": "crashed", "why": "it fell over"}}]}


def babbling(role: str, **match: object) -> Entry:
    """What it says is not of the schema, however often it is asked."""
    return {"role": role, "match": match, "raw": "I would rather talk about something else."}


@dataclass(frozen=True)
class CommandResult:
    """What one command with `--json` gave."""

    exit: int
    stdout: str
    stderr: str

    @classmethod
    def of(cls, done: subprocess.CompletedProcess[str]) -> Self:
        return cls(done.returncode, done.stdout, done.stderr)

    @property
    def document(self) -> str:
        assert self.stdout, f"exit {self.exit}, no document:\n{self.stderr}"
        return self.stdout

    @cached_property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.document)
        return found


def set_up_repository(
    folder: Path, files: Mapping[str, str | bytes], settings: str = "", **more: str
) -> tuple[Workshop, Path]:
    """Make a workshop of its own in the folder, with a repository that holds these files."""
    folder.mkdir(exist_ok=True)
    workshop = Workshop.apart(folder)
    own = {"proofstone.toml": settings} if settings else {}
    return workshop, workshop.repo({**files, **own, **{f"{name}.md": text for name, text in more.items()}})


@dataclass(frozen=True)
class Staged:
    workshop: Workshop
    root: Path

    def cast(self, entries: Sequence[Entry], name: str = "script") -> str:
        """Agents who say this, as a backend."""
        path = self.workshop.folder / f"{name}.yaml"
        said = [{name: value for name, value in entry.items() if value} for entry in entries]
        path.write_text(json.dumps(said, ensure_ascii=False), encoding="utf-8")
        return f"script:{path}"

    def proofstone(self, *args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return self.workshop.proofstone(self.root, *args, env=env)

    # What is on record.

    @property
    def runs(self) -> list[str]:
        """All that were begun, the newest last."""
        return self.workshop.runs

    def dispatches(self, run_id: str) -> dict[str, DispatchRecord]:
        with closing(self.ledger()) as ledger:
            return read_dispatch_records(ledger, run_id)

    def events(self, run_id: str, type: str) -> list[Mapping[str, Any]]:
        with closing(self.ledger()) as ledger:
            return [one.row.payload for one in ledger.read(EventRow, run_id=run_id, type=type)]

    def messages(self, run_id: str, type: str) -> list[Mapping[str, Any]]:
        with closing(self.ledger()) as ledger:
            return [one.row.payload for one in ledger.read(MessageRow, run_id=run_id, type=type)]

    def checks(self, run_id: str, task_id: str) -> list[str]:
        """The names of those that are on record."""
        with closing(self.ledger()) as ledger:
            return [one.row.check_name for one in ledger.read(CheckRow, run_id=run_id, task_id=task_id)]

    def rows(self, run_id: str, task_id: str) -> list[Mapping[str, Any]]:
        """Of checks, whole."""
        with closing(self.ledger()) as ledger:
            return [one.row.model_dump() for one in ledger.read(CheckRow, run_id=run_id, task_id=task_id)]

    def ledger(self) -> SqliteLedger:
        return SqliteLedger(ledger_path(self.workshop.proofstone_home), "read")
