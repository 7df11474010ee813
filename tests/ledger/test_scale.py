"""Everyday questions are answered from indexes, however many rows there are: their plans show no walk over a table."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from proofstone.check import recording as evidence_for
from proofstone.cli import ledger as ledger_command
from proofstone.ledger import query as ledger_runs
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.testing.ledger_conformance import SAMPLE_ROWS
from tests.ledger.tampering import raw

QUESTIONS = {
    "recent runs": (ledger_command._RUNS, (51,)),
    "checks of a run": (ledger_command._CHECKS, ("r",)),
    "events of a run": (ledger_command._EVENTS, ("r",)),
    "runs that were started": (ledger_runs._STARTED_QUERY, (",check,", 1, None, "", 51)),
    "a run by a part of its id": (ledger_runs._STARTED_QUERY, (",check,", 0, None, "abc", 51)),
    "the last run": (ledger_runs._LAST_QUERY, ()),
    "the last run here": (ledger_runs._LAST_HERE_QUERY, ("/repo",)),
    "evidence of a tree": (
        evidence_for._CHECKS_SQL.format(roots="?", tree=evidence_for._TREE_CONDITIONS[evidence_for._CHECKS_SQL]),
        ("t", "/repo"),
    ),
    "committed tasks of a tree": (
        evidence_for._TASKS_SQL.format(roots="?", tree=evidence_for._TREE_CONDITIONS[evidence_for._TASKS_SQL]),
        ("t", "/repo"),
    ),
    "events of a type": ("SELECT * FROM events WHERE seq > ? AND type IS ? ORDER BY seq LIMIT 9", (0, "t")),
    "events of a run and type": (
        "SELECT * FROM events WHERE seq > ? AND run_id IS ? AND type IS ? ORDER BY seq LIMIT 9",
        (0, "r", "t"),
    ),
}


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_no_question_walks_over_a_table(ledger: SqliteLedger, path: Path, question: str) -> None:
    ledger.append(*SAMPLE_ROWS)
    sql, arguments = QUESTIONS[question]
    with closing(raw(path)) as connection:
        plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", arguments)]
    walks = [step for step in plan if step.startswith("SCAN") and " USING " not in step]
    assert [step for step in walks if step.split()[1] not in ("recent", "began", "(subquery-2)", "(subquery-3)")] == []


def test_an_incremental_verification_reads_the_new_rows_only(ledger: SqliteLedger) -> None:
    """Counted by SQLite: every row that the walk reads is a step of its virtual machine, or more."""

    def steps(count: int) -> int:
        since = ledger.head()
        ledger.append(*SAMPLE_ROWS[:3])
        done = 0

        def step() -> int:
            nonlocal done
            done += 1
            return 0

        ledger._connection.set_progress_handler(step, 1)
        try:
            found = ledger.verify(since=since)
        finally:
            ledger._connection.set_progress_handler(None, 0)
        assert found.ok
        assert (found.start, found.head.seq) == (since.seq, since.seq + 3)
        return done

    few = steps(0)
    ledger.append(*SAMPLE_ROWS[:3] * 700)
    assert steps(0) < 2 * few


def test_the_newest_runs_are_found_without_reading_the_older_ones(ledger: SqliteLedger, path: Path) -> None:
    """Counted by SQLite: with twice as many runs, its virtual machine takes no more steps."""
    started = [
        EventRow(
            run_id=f"run-{number}", type="run.started", payload={"command": "check", "repository": f"/{number % 2}"}
        )
        for number in range(6)
    ]
    part = {"command": "gate", "repository": "/1", "parent": "run-5"}
    ledger.append(*started, EventRow(run_id="part-1", type="run.started", payload=part))
    both = ("check", "gate")

    def found(**filters: object) -> list[str]:
        return [run.run_id for run in ledger_runs.list_started_runs(path, both, **filters)]  # type: ignore[arg-type]

    assert found(limit=2) == ["part-1", "run-5"]
    assert found(limit=2, whole=True) == ["run-5", "run-4"]
    assert found(limit=2, whole=True, repository="/0") == ["run-4", "run-2"]
    assert found(matching="-1") == ["part-1", "run-1"]
    assert [run.run_id for run in ledger_runs.list_started_runs(path, ("gate",))] == ["part-1"]
    with closing(raw(path)) as connection:
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        connection.set_progress_handler(count, 1)
        used = []
        for _ in range(2):
            steps = 0
            connection.execute(ledger_runs._STARTED_QUERY, (",check,gate,", 1, None, "", 2)).fetchall()
            used.append(steps)
            ledger.append(*(row.model_copy(update={"run_id": f"more-{row.run_id}"}) for row in started))
    assert used[0] >= used[1]
