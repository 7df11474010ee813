"""What every stage has: a small project with a plan, agents who say what is written for them, what is on record."""

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
from tests.terminal import run_in_terminal
from tests.workshop import Workshop

Entry = dict[str, Any]
"""Of a script: what one agent says and does on one occasion."""

# A small project, and a plan for it.

FILES: Mapping[str, str | bytes] = {
    "shop/__init__.py": "",
    "shop/cart.py": "def total(prices):\n    return sum(prices)\n",
    "tests/__init__.py": "",
    "tests/test_cart.py": (
        "import unittest\n\nfrom shop.cart import total\n\n\nclass Cart(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    ),
}


def task(
    name: str,
    *,
    files: str = "",
    verify: str = "",
    done: str = "All tests pass",
    attributes: str = "",
    action: str = "Do it.",
    further: str = "",
) -> str:
    """One task in the form of a plan; by default one that `work` can do."""
    stem = name.lower().replace(" ", "_")
    files = files or f"shop/{stem}.py, tests/test_{stem}.py"
    verify = verify or f"python3 -m unittest tests.test_{stem}"
    return (
        f'<task type="auto" {attributes}>\n<name>{name}</name>\n<files>{files}</files>\n<action>{action}</action>\n'
        f"<verify>{verify}</verify>\n<done>{done}</done>\n{further}</task>\n"
    )


def plan(*tasks: str, head: str = "phase: shop\nplan: 01\n") -> str:
    return f"---\n{head}---\n# More of a shop\n\n<tasks>\n{''.join(tasks)}</tasks>\n"


# What agents say.

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

    def document(self, *args: str) -> dict[str, Any]:
        """What a command prints with `--json`, and its exit code as `exit`."""
        done = self.proofstone(*args, "--json")
        found: dict[str, Any] = json.loads(done.stdout)
        return {"exit": done.returncode, **found}

    def at_a_terminal(self, *args: str, typed: Mapping[str, str]) -> tuple[int, str]:
        """Exit code and everything shown; each text is typed when what it answers has been shown."""
        session = run_in_terminal(self.workshop, self.root, *args, typed=typed)
        return session.exit, session.screen

    def git(self, *args: str) -> str:
        return self.workshop.git(self.root, *args)

    # What is on record.

    @property
    def runs(self) -> list[str]:
        """All that were begun, the newest last."""
        return self.workshop.runs

    def dispatches(self, run_id: str) -> dict[str, DispatchRecord]:
        with closing(self.ledger()) as ledger:
            return read_dispatch_records(ledger, run_id)

    @property
    def row_count(self) -> int:
        """How many rows the ledger has."""
        with closing(self.ledger()) as ledger:
            return ledger.head().seq

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
