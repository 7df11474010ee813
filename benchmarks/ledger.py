"""What the chain costs on top of plain SQLite, and how long a gate waits for its answer.

`python -m benchmarks.ledger [--quick]`
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks import Measurement, show, timed
from benchmarks.large_ledger import generate
from proofstone.common.models import Assurance, Phase, Verdict
from proofstone.ledger.models import CheckRow
from proofstone.ledger.sqlite import SqliteLedger

_PROOFSTONE = "import sys; from proofstone.cli.main import main; sys.exit(main())"
_WHO = ("-c", "user.name=n", "-c", "user.email=n@example.org")
GATE = "SELECT COUNT(*) FROM checks WHERE run_id = ? AND task_id = ? AND phase = 'after' AND passed = 1"

PLAIN_TABLE = """
CREATE TABLE checks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, task_id TEXT NOT NULL,
    phase TEXT NOT NULL CHECK(phase IN ('baseline', 'after', 'review')), check_name TEXT NOT NULL,
    tool TEXT NOT NULL, command TEXT, exit_code INTEGER, output_snippet TEXT CHECK(LENGTH(output_snippet) <= 500),
    passed INTEGER NOT NULL CHECK(passed IN (0, 1)), verdict TEXT, severity TEXT, round INTEGER NOT NULL,
    attempt INTEGER, tree TEXT, tier INTEGER, state TEXT, assurance TEXT, duration_ms INTEGER, artifact TEXT,
    reused_from INTEGER, ts DATETIME DEFAULT CURRENT_TIMESTAMP)
"""
PLAIN_INDEXES = (
    "CREATE INDEX idx_checks_task_phase ON checks(task_id, phase)",
    "CREATE INDEX idx_checks_run_round ON checks(run_id, round)",
)
COLUMNS = (*CheckRow.model_fields, "passed")
PLAIN_INSERT = f"INSERT INTO checks ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


def row(number: int) -> CheckRow:
    """1,000 rows a run, 50 a task: a large run of the pipeline."""
    return CheckRow(
        run_id=f"run-{number // 1000:05}",
        task_id=f"task-{number // 50 % 20:02}",
        phase=Phase.AFTER if number % 2 else Phase.BASELINE,
        check_name=f"tests:pytest-{number % 25}",
        tool="pytest",
        command="python -m pytest -q",
        exit_code=0,
        output_snippet="." * 200,
        state=Verdict.PASS if number % 10 else Verdict.FAIL,
        tree="0123456789abcdef0123456789abcdef01234567",
        tier=2,
        assurance=Assurance.BUBBLEWRAP,
        duration_ms=1234,
        artifact="0123456789abcdef" * 4,
    )


def appends(directory: Path, batches: int, size: int) -> Measurement:
    """One append of `size` rows against one transaction of as many plain inserts, taking turns."""
    rows = [row(number) for number in range(size)]
    with (
        SqliteLedger(directory / f"chained-{size}.db") as ledger,
        closing(_plain(directory / f"plain-{size}.db")) as db,
    ):

        def chained() -> None:
            ledger.append(*rows)

        def plain() -> None:
            db.execute("BEGIN IMMEDIATE")
            for item in rows:
                db.execute(PLAIN_INSERT, tuple(getattr(item, name) for name in COLUMNS))
            db.execute("COMMIT")

        times = [(timed(chained), timed(plain)) for _ in range(batches)]
    ratio = statistics.median(mine for mine, _ in times) / statistics.median(other for _, other in times)
    what = "one row" if size == 1 else f"{size} rows at once"
    return Measurement(f"append of {what}, against plain inserts", ratio, "×", "≤ 2", ratio <= 2)


def gate(directory: Path, rows: int) -> Measurement:
    path = directory / "gate.db"
    with SqliteLedger(path) as ledger:
        for batch in _batches(rows, 10_000):
            ledger.append(*batch)
        assert ledger.head().seq == rows
    with closing(sqlite3.connect(path)) as connection:
        times = []
        for number in range(0, rows, max(rows // 200, 1)):
            wanted = row(number)
            times.append(timed(lambda wanted=wanted: _count(connection, wanted)))  # type: ignore[misc]
    slow = statistics.quantiles(times, n=20)[-1] * 1000
    return Measurement(f"gate query at {rows:,} rows, 95th percentile", slow, "ms", "< 5", slow < 5)


def everyday(directory: Path, rows: int) -> Iterator[Measurement]:
    """Whole commands, as a person waits for them, with a ledger of so many rows; the second time of each."""
    repository, home = directory / "repository", directory / "home"
    repository.mkdir()
    (repository / "notes.md").write_text("# Notes\n")
    for arguments in (("init", "-q"), ("add", "."), (*_WHO, "commit", "-q", "-m", "First")):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    (repository / "notes.md").write_text("# Notes\n\nMore.\n")
    generate(home, repository, rows)

    def command(*words: str) -> None:
        environment = {**os.environ, "PROOFSTONE_HOME": str(home)}
        program = [sys.executable, "-c", _PROOFSTONE, *words]
        done = subprocess.run(program, cwd=repository, env=environment, check=False, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"proofstone {' '.join(words)} ended with {done.returncode}: {done.stderr}")

    for words in (("check",), ("runs",), ("status",), ("ledger", "show"), ("ledger", "verify")):
        command(*words)
        seconds = timed(lambda words=words: command(*words))  # type: ignore[misc]
        yield Measurement(f"proofstone {' '.join(words)} at {rows:,} rows", seconds, "s", "< 1", seconds < 1)


def run(quick: bool = False) -> list[Measurement]:
    with tempfile.TemporaryDirectory(prefix="proofstone-bench-") as place:
        directory = Path(place)
        return [
            appends(directory, batches=200 if quick else 1000, size=1),
            appends(directory, batches=100 if quick else 300, size=10),
            gate(directory, rows=20_000 if quick else 1_000_000),
            *everyday(directory, rows=20_000 if quick else 1_000_000),
        ]


def _plain(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", PLAIN_TABLE, *PLAIN_INDEXES):
        connection.execute(statement)
    return connection


def _batches(total: int, size: int) -> Iterator[list[CheckRow]]:
    for start in range(0, total, size):
        yield [row(number) for number in range(start, min(start + size, total))]


def _count(connection: sqlite3.Connection, wanted: CheckRow) -> None:
    (found,) = connection.execute(GATE, (wanted.run_id, wanted.task_id)).fetchone()
    assert found > 0


if __name__ == "__main__":
    show(run)
