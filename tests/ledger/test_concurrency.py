"""Several processes write one ledger: nothing is lost, and there is one chain."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import CheckRow, EventRow
from proofstone.ledger.sqlite import SqliteLedger

ROOT = Path(__file__).parents[2]
WRITERS, APPENDS, ROWS = 8, 20, 25


def test_eight_processes_with_500_rows_each_lose_nothing_and_keep_one_chain(tmp_path: Path) -> None:
    """They also race to create it: none of them finds a ledger."""
    command = [sys.executable, "-m", "tests.ledger.writer", str(tmp_path), str(APPENDS), str(ROWS)]
    writers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(WRITERS)]
    outputs = [writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * WRITERS

    acknowledged = [int(seq) for output in outputs for line in output.splitlines() for seq in line.split()[1:]]
    assert sorted(acknowledged) == list(range(1, WRITERS * APPENDS * ROWS + 1))
    with SqliteLedger(ledger_path(tmp_path)) as ledger:
        assert ledger.verify().ok
        rows = ledger.read(CheckRow)
    assert Counter(stored.row.run_id for stored in rows) == {str(writer.pid): APPENDS * ROWS for writer in writers}


def test_the_rows_of_an_append_are_never_mixed_with_anothers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.ledger.writer", str(tmp_path), "30", "3"]
    writers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for writer in writers:
        for line in writer.communicate()[0].splitlines()[1:]:
            first, *rest = map(int, line.split()[1:])
            assert rest == [first + 1, first + 2]
        assert writer.returncode == 0


def test_a_ledger_that_was_opened_twice_keeps_its_log_when_another_process_leaves(tmp_path: Path) -> None:
    """To open and close the file itself would let go of the locks of every connection of this process."""
    path = tmp_path / "ledger.db"
    with SqliteLedger(path) as ours:
        ours.append(EventRow(run_id="r", type="run.started", payload={}))
        with SqliteLedger(path):
            leaving = "import sys; from pathlib import Path; from proofstone.ledger.sqlite import SqliteLedger; "
            leaving += "SqliteLedger(Path(sys.argv[1])).close()"
            subprocess.run([sys.executable, "-c", leaving, str(path)], check=True)
            assert path.with_name("ledger.db-wal").exists()
            ours.append(EventRow(run_id="r", type="run.finished", payload={}))
    with SqliteLedger(path, "read") as read:
        assert [one.row.type for one in read.read(EventRow, run_id="r")] == ["run.started", "run.finished"]
