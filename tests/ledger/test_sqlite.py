"""The SQLite ledger: conformance, durability settings, append-only by trigger, files, what is no ledger."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proofstone.errors import LedgerBusyError, LedgerError
from proofstone.ledger.connection import find_file_system, refuse_network_file_system
from proofstone.ledger.migrations import MIGRATIONS
from proofstone.ledger.models import CheckRow, EventRow
from proofstone.ledger.schema import TABLES
from proofstone.ledger.sqlite import OpenMode, SqliteLedger
from proofstone.testing.ledger_conformance import SAMPLE_ROWS, LedgerConformance, build_check_row
from tests.ledger.tampering import raw


class TestSqlite(LedgerConformance):
    """`open_ledger` comes from conftest.py."""


DATA = [table.name for table in TABLES.values()]
REFUSED = "cannot be replaced|must follow the last one|must have its place"
"""Several triggers refuse it; which one comes first is SQLite's choice."""
EVERY_TABLE = [*DATA, "chain", "meta", "migrations"]


@pytest.fixture
def filled(ledger: SqliteLedger, path: Path) -> Iterator[sqlite3.Connection]:
    """A raw connection to a ledger with one row of each kind."""
    ledger.append(*SAMPLE_ROWS)
    with closing(raw(path)) as connection:
        yield connection


def column(connection: sqlite3.Connection, table: str) -> str:
    return str(connection.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchone()[0])


@pytest.mark.parametrize("table", EVERY_TABLE)
@pytest.mark.seed("pipeline", "ledger-schema")
def test_no_table_lets_a_row_be_changed_or_removed(filled: sqlite3.Connection, table: str) -> None:
    name = column(filled, table)
    for statement in (f"UPDATE {table} SET {name} = {name}", f"UPDATE OR REPLACE {table} SET {name} = {name}"):
        with pytest.raises(sqlite3.IntegrityError, match="cannot be changed"):
            filled.execute(statement)
    with pytest.raises(sqlite3.IntegrityError, match="cannot be removed"):
        filled.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize("recursive", ["OFF", "ON"])
@pytest.mark.parametrize("table", EVERY_TABLE)
def test_no_table_lets_a_row_be_replaced(filled: sqlite3.Connection, table: str, recursive: str) -> None:
    filled.execute(f"PRAGMA recursive_triggers = {recursive}")
    before = filled.execute(f"SELECT * FROM {table}").fetchall()
    for verb in ("INSERT", "INSERT OR REPLACE", "REPLACE"):
        with pytest.raises(sqlite3.IntegrityError):
            filled.execute(f"{verb} INTO {table} SELECT * FROM {table}")
    assert filled.execute(f"SELECT * FROM {table}").fetchall() == before


@pytest.mark.parametrize("key", ["seq", "hash"])
def test_the_chain_refuses_an_existing_seq_and_an_existing_hash(filled: sqlite3.Connection, key: str) -> None:
    (head,) = filled.execute("SELECT hash FROM chain ORDER BY seq DESC LIMIT 1").fetchone()
    new = {"seq": len(SAMPLE_ROWS) + 1, "hash": "f" * 64}
    (new[key],) = filled.execute(f"SELECT {key} FROM chain WHERE seq = 2").fetchone()
    with pytest.raises(sqlite3.IntegrityError, match=REFUSED):
        filled.execute(
            "INSERT OR REPLACE INTO chain VALUES (?, 'events', ?, ?, ?, ?)",
            (new["seq"], "0" * 64, head, new["hash"], "0" * 64),
        )


@pytest.mark.parametrize("conflict", ["id", "seq"])
def test_a_data_row_cannot_be_replaced_by_either_of_its_keys(filled: sqlite3.Connection, conflict: str) -> None:
    """A chain entry for it exists, so that only the keys of the data table stand in the way."""
    (head,) = filled.execute("SELECT hash FROM chain ORDER BY seq DESC LIMIT 1").fetchone()
    seq, hashes = len(SAMPLE_ROWS) + 1, ("0" * 64, head, "f" * 64)
    filled.execute("INSERT INTO chain VALUES (?, 'events', ?, ?, ?, ?)", (seq, *hashes, "0" * 64))
    (taken,) = filled.execute(f"SELECT {conflict} FROM events").fetchone()
    keys = {"id": 99, "seq": seq} | {conflict: taken}
    with pytest.raises(sqlite3.IntegrityError, match=REFUSED):
        filled.execute(
            "INSERT OR REPLACE INTO events (id, run_id, type, payload, ts, seq, payload_hash, prev_hash, hash) "
            "VALUES (?, 'r', 't', '{}', '', ?, ?, ?, ?)",
            (keys["id"], keys["seq"], *hashes),
        )


def test_the_chain_refuses_a_gap_and_a_fork(filled: sqlite3.Connection) -> None:
    (head,) = filled.execute("SELECT hash FROM chain ORDER BY seq DESC LIMIT 1").fetchone()
    after = len(SAMPLE_ROWS) + 1
    for seq, prev in ((after + 1, head), (after, "0" * 64)):
        with pytest.raises(sqlite3.IntegrityError, match="must follow the last one"):
            filled.execute(
                "INSERT INTO chain VALUES (?, 'events', ?, ?, ?, ?)", (seq, "0" * 64, prev, "f" * 64, "0" * 64)
            )


def test_a_row_without_a_chain_entry_is_refused(filled: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="must have its place in the chain"):
        filled.execute(
            "INSERT INTO events (run_id, type, payload, ts, seq, payload_hash, prev_hash, hash) "
            "VALUES ('r', 't', '{}', '', 99, '0', '0', '0')"
        )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("phase", "before"),
        ("severity", "Blocker"),
        ("verdict", "fine"),
        ("state", "passed"),
        ("output_snippet", "x" * 501),
        ("run_id", None),
    ],
)
@pytest.mark.seed("pipeline", "ledger-schema")
def test_the_seeds_constraints_hold(ledger: SqliteLedger, field: str, value: str | None) -> None:
    with pytest.raises(LedgerError, match="constraint failed"):
        ledger.append(build_check_row().model_copy(update={field: value}))


@pytest.mark.seed("pipeline", "ledger-schema")
def test_the_seeds_columns_and_indexes_are_there(filled: sqlite3.Connection) -> None:
    columns = [row[0] for row in filled.execute("SELECT name FROM pragma_table_info('checks')")]
    assert " ".join(columns) == (
        "id run_id task_id phase check_name tool command exit_code output_snippet passed verdict severity round "
        "attempt tree tier state assurance duration_ms artifact reused_from result_digest ts seq prev_hash "
        "payload_hash hash"
    )
    indexes = {row[0] for row in filled.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert {"idx_checks_task_phase", "idx_checks_run_round", "idx_telemetry_step"} <= indexes


def test_the_gate_query_is_answered_from_an_index(filled: sqlite3.Connection) -> None:
    plan = filled.execute(
        "EXPLAIN QUERY PLAN SELECT COUNT(*) FROM checks "
        "WHERE run_id = 'r' AND task_id = 't' AND phase = 'after' AND passed = 1"
    ).fetchall()
    assert "USING COVERING INDEX idx_checks_gate" in plan[0][3]


def test_runs_and_tasks_are_views_over_events(ledger: SqliteLedger, path: Path) -> None:
    ledger.append(
        EventRow(run_id="r1", type="run.started"),
        EventRow(run_id="r1", task_id="t1", type="task.started"),
        EventRow(run_id="r1", task_id="t1", type="task.finished", payload={"outcome": "passed"}),
        EventRow(run_id="r1", task_id="t2", type="note"),
        EventRow(run_id="r1", type="run.finished", payload={"outcome": "failed"}),
        EventRow(run_id="r2", type="run.started"),
    )
    with closing(raw(path)) as connection:
        runs = connection.execute("SELECT run_id, state, outcome FROM runs ORDER BY run_id").fetchall()
        tasks = connection.execute("SELECT task_id, state, outcome FROM tasks ORDER BY task_id").fetchall()
    assert runs == [("r1", "finished", "failed"), ("r2", "started", None)]
    assert tasks == [("t1", "finished", "passed"), ("t2", None, None)]


def test_order_is_by_seq_when_the_clock_jumps_back(path: Path) -> None:
    times = iter([datetime(2026, 5, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)])
    with SqliteLedger(path, clock=lambda: next(times)) as ledger:
        ledger.append(build_check_row("first"))
        ledger.append(build_check_row("second"))
        stored = ledger.read(CheckRow)
        assert [item.row.run_id for item in stored] == ["first", "second"]
        assert [item.ts for item in stored] == ["2026-05-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"]
        assert ledger.verify().ok


def test_writes_are_durable_by_setting(ledger: SqliteLedger) -> None:
    pragmas = ("journal_mode", "synchronous", "busy_timeout")
    found = [ledger._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert found == ["wal", 2, 5000]


def test_files_are_for_their_owner_only_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        with SqliteLedger(path) as ledger:
            ledger.append(build_check_row())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("ledger.db", "ledger.db-wal", "ledger.db-shm", "key"), 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_directory_that_others_can_write_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o777)
    with pytest.raises(LedgerError, match="others may write to it"):
        SqliteLedger(path)


def test_a_ledger_id_is_random_and_stays(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "one.db") as one, SqliteLedger(tmp_path / "two.db") as two:
        assert one.ledger_id != two.ledger_id
        with SqliteLedger(tmp_path / "one.db", "read") as again:
            assert again.ledger_id == one.ledger_id


def test_a_writer_that_waits_too_long_says_so_and_can_go_on(ledger: SqliteLedger, path: Path) -> None:
    with SqliteLedger(path, busy_ms=50) as waiting, closing(raw(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerBusyError, match="another process is writing"):
            waiting.append(build_check_row())
        other.execute("ROLLBACK")
        assert waiting.append(build_check_row()) == (1,)


def test_a_ledger_opened_for_reading_refuses_to_write(ledger: SqliteLedger, path: Path) -> None:
    ledger.append(build_check_row())
    with SqliteLedger(path, "read") as reader:
        assert reader.verify().ok
        with pytest.raises(LedgerError, match="for reading only"):
            reader.append(build_check_row())


@pytest.mark.parametrize("mode", ["write", "read"])
def test_a_missing_ledger_is_named(path: Path, mode: OpenMode) -> None:
    with pytest.raises(LedgerError, match=r"ledger\.db: there is no ledger"):
        SqliteLedger(path, mode)
    path.parent.mkdir(parents=True)
    with pytest.raises(LedgerError, match=r"ledger\.db: there is no ledger"):
        SqliteLedger(path, mode)
    assert not path.exists()


@pytest.mark.parametrize("mode", ["create", "write", "read"])
def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path, mode: OpenMode) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("shopping list\n" * 100)
    with pytest.raises(LedgerError, match=r"notes\.txt: is not a database"):
        SqliteLedger(file, mode)
    assert file.read_text() == "shopping list\n" * 100


@pytest.mark.parametrize("mode", ["create", "write", "read"])
def test_a_database_of_somebody_else_is_named_and_left_alone(tmp_path: Path, mode: OpenMode) -> None:
    file = tmp_path / "photos.db"
    with closing(raw(file)) as connection:
        connection.execute("CREATE TABLE photos (id)")
    before = file.read_bytes()
    with pytest.raises(LedgerError, match=r"photos\.db: is a database, but not a ledger"):
        SqliteLedger(file, mode)
    assert file.read_bytes() == before


@pytest.mark.parametrize("mode", ["create", "write", "read"])
def test_a_ledger_of_a_newer_version_is_refused(path: Path, mode: OpenMode) -> None:
    SqliteLedger(path).close()
    with closing(raw(path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (?, 'future', '2030-01-01')", (len(MIGRATIONS) + 1,))
    with pytest.raises(LedgerError, match=f"schema version {len(MIGRATIONS) + 1}; this Proofstone supports"):
        SqliteLedger(path, mode)


def test_a_directory_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is a directory"):
        SqliteLedger(tmp_path)


def test_a_parent_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="cannot be created"):
        SqliteLedger(tmp_path / "file" / "ledger.db")


def test_a_file_that_may_not_be_written_is_named() -> None:
    """As another user, because root may write anything."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        file = directory / "ledger.db"
        SqliteLedger(file).close()
        file.chmod(0o444)
        directory.chmod(0o755)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            with pytest.raises(LedgerError, match=r"ledger\.db: cannot be opened for writing"):
                SqliteLedger(file)
        finally:
            if root:
                os.seteuid(0)


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home rw - nfs4 server:/home rw
31 30 0:31 / /home/me/my\\040disk rw shared:3 master:2 - ext4 /dev/sdb1 rw
32 22 0:32 / /homes rw - xfs /dev/sdc1 rw
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [("/var", "ext4"), ("/home/me", "nfs4"), ("/home/me/my disk/x", "ext4"), ("/homes/a", "xfs")],
)
def test_the_file_system_is_that_of_the_nearest_mount(place: str, kind: str) -> None:
    assert find_file_system(MOUNTS, Path(place)) == kind


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 8:1 / / rw - nfs4 server:/ rw\n")
    monkeypatch.setattr("proofstone.sandbox.mounts._MOUNT_TABLE", mounts)
    with pytest.raises(LedgerError, match=r"network file system \(nfs4\)"):
        refuse_network_file_system(tmp_path)
    with pytest.raises(LedgerError, match="network file system"):
        SqliteLedger(tmp_path / "ledger.db")
