"""A ledger as it is after years: by default a million rows, nine in ten of them of `proofstone check`, the rest of the
gate.

`python -m benchmarks.large_ledger HOME REPOSITORY [ROWS]` makes one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from proofstone import __version__
from proofstone.check.models import CheckRunConfig
from proofstone.common.models import Assurance, Phase, Verdict
from proofstone.gate.models import GateSetup
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.models import CheckRow, EventRow, MessageRow
from proofstone.ledger.schema import LedgerRow
from proofstone.ledger.sqlite import SqliteLedger

MILLION = 1_000_000
_BATCH = 20_000
_OF_CHECK, _OF_GATE = 10, 100
"""Rows of a run."""
_BEGAN = datetime(2020, 1, 1, tzinfo=UTC)
_PLAN = b"""---
phase: 1
plan: 1
---

# A plan

<task type="auto">
  <name>Greet politely</name>
  <files>hello.py</files>
  <action>Say please.</action>
  <verify>python3 -m unittest</verify>
  <done>The greeting says please</done>
</task>
"""


def generate(home: Path, repository: Path, rows: int = MILLION) -> None:
    plan = ArtifactStore(artifacts_path(home)).put(_PLAN)
    with closing(SqliteLedger(ledger_path(home))) as ledger:
        ledger.append(plan.to_row("text/markdown"))
        batch: list[LedgerRow] = []
        written = 1
        for run in _runs(repository, plan.hash):
            batch += run
            if len(batch) >= min(_BATCH, rows - written):
                ledger.append(*batch[: rows - written], durable=False)
                written += len(batch)
                batch = []
            if written >= rows:
                return


def _runs(repository: Path, plan: str) -> Iterator[list[LedgerRow]]:
    number = 0
    while True:
        number += 1
        run_id = f"{_BEGAN + timedelta(minutes=number):%Y%m%dT%H%M%SZ}-{number % 0xFFFFFF:06x}"
        yield _gate(run_id, repository, plan) if number % 91 == 0 else _check(run_id, repository, number)


def _check(run_id: str, repository: Path, number: int) -> list[LedgerRow]:
    tree = f"{number:040x}"
    started = {
        "command": "check",
        "version": __version__,
        "repository": str(repository),
        "tree": tree,
        "frozen": tree,
        "base": "0" * 40,
        "base_commit": "1" * 40,
        "sandbox": "bubblewrap",
    }
    checks = [_result(run_id, "check", tree, one) for one in range(_OF_CHECK - 2)]
    return [
        EventRow(
            run_id=run_id, type="run.started", payload=CheckRunConfig.model_validate(started).model_dump(mode="json")
        ),
        *checks,
        EventRow(run_id=run_id, type="run.finished", payload={"outcome": "passed", "reason": ""}),
    ]


def _gate(run_id: str, repository: Path, plan: str) -> list[LedgerRow]:
    setup = GateSetup.model_validate(
        {
            "version": __version__,
            "repository": str(repository),
            "plan_path": str(repository / "PLAN.md"),
            "plan_artifact": plan,
            "base_commit": "1" * 40,
            "branch": "proofstone/polite",
            "executor": "cmd:true",
            "architect": "rules",
            "slots": 1,
            "minutes": 60,
            "hooks": "skip",
            "sign": False,
            "author_name": "n",
            "author_email": "a@b",
            "sandbox": "bubblewrap",
        }
    )
    said: list[LedgerRow] = [
        MessageRow(message_id=f"m-{one}", run_id=run_id, sender="engine", recipient="executor", type="Dispatch")
        if one % 2
        else _result(run_id, "task-01", "2" * 40, one)
        for one in range(_OF_GATE - 2)
    ]
    return [
        EventRow(run_id=run_id, type="run.started", payload=setup.model_dump(mode="json")),
        *said,
        EventRow(run_id=run_id, type="run.finished", payload={"outcome": "halted", "reason": "made up"}),
    ]


def _result(run_id: str, task: str, tree: str, number: int) -> CheckRow:
    return CheckRow(
        run_id=run_id,
        task_id=task,
        phase=Phase.AFTER,
        check_name=f"tests:pytest-{number}",
        tool="pytest",
        command="python -m pytest -q",
        exit_code=0,
        output_snippet="." * 100,
        state=Verdict.PASS,
        tree=tree,
        tier=2,
        assurance=Assurance.BUBBLEWRAP,
        duration_ms=1234,
    )


if __name__ == "__main__":
    generate(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else MILLION)
