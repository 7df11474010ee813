"""A ledger is brought from version to version; what was written before the first release is refused and not harmed."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from proofstone.agents.bus import MessageBus
from proofstone.cli.main import main
from proofstone.errors import LedgerError
from proofstone.ledger.migrations import CURRENT_VERSION, build_expected_schema, migrate, read_schema
from proofstone.ledger.models import DeliveryRow
from proofstone.ledger.rules.chain import genesis_hash, next_link
from proofstone.ledger.schema import LedgerRow, table_of
from proofstone.ledger.sqlite import OpenMode, SqliteLedger
from proofstone.testing.ledger_conformance import SAMPLE_ROWS
from tests.ledger.tampering import raw

VERSION_1 = "5ad4443ddccc8a55f752baf7fc8d943b0209b5cd8744a3a667366504db361edb"
"""Digest of its schema, by name: a file that was written then must still be what is expected of it."""
OLD_ROWS = [row for row in SAMPLE_ROWS if not isinstance(row, DeliveryRow)]


@pytest.fixture
def old(path: Path) -> Path:
    """A file as Proofstone made it before version 2, with rows."""
    path.parent.mkdir(parents=True, mode=0o700)
    with closing(raw(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, path, upto=1)
        (ledger_id,) = connection.execute("SELECT value FROM meta WHERE key = 'ledger_id'").fetchone()
        digest = genesis_hash(ledger_id)
        for seq, row in enumerate(OLD_ROWS, start=1):
            digest = insert(connection, seq, digest, row)
        assert read_schema(connection) == build_expected_schema(1)
    return path


def insert(connection: sqlite3.Connection, seq: int, before: str, row: LedgerRow) -> str:
    """Write one row as version 1 has it; its hash."""
    table = table_of(type(row))
    values = {**table.encode(row), "ts": "2026-01-01T00:00:00.000Z"}
    link = next_link(before, seq, table.name, values)
    hashes = (link.payload_hash, link.prev_hash, link.hash)
    connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?, ?)", (seq, table.name, *hashes))
    known = [name for name in table.columns if name != "result_digest"]
    columns = ("seq", "payload_hash", "prev_hash", "hash", *known)
    marks = ", ".join("?" * len(columns))
    arguments = (seq, *hashes, *(values[name] for name in known))
    connection.execute(f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})", arguments)
    return link.hash


def version(path: Path) -> int:
    with closing(raw(path)) as connection:
        return int(connection.execute("SELECT MAX(version) FROM migrations").fetchone()[0])


def test_the_text_of_version_1_has_not_changed() -> None:
    assert hashlib.sha256(repr(sorted(build_expected_schema(1))).encode()).hexdigest() == VERSION_1


def test_an_empty_file_of_an_old_version_is_brought_to_the_newest(path: Path) -> None:
    """As a process leaves it that is killed between two migrations."""
    path.parent.mkdir(parents=True, mode=0o700)
    with closing(raw(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, path, upto=2)
    with pytest.raises(LedgerError, match="schema version 2; versions before 3 were never released"):
        SqliteLedger(path, "read")
    with SqliteLedger(path) as ledger:
        ledger.append(*SAMPLE_ROWS)
        assert ledger.verify().ok
    assert version(path) == CURRENT_VERSION


@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_rows_from_before_the_first_release_are_refused_and_left_as_they_are(old: Path, mode: OpenMode) -> None:
    with pytest.raises(LedgerError, match=r"versions before 3 were never released|before the first release"):
        SqliteLedger(old, mode)
    assert version(old) < CURRENT_VERSION
    with closing(raw(old)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM chain").fetchone() == (len(OLD_ROWS),)


def test_a_run_that_has_only_messages_is_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SqliteLedger(path) as ledger:
        MessageBus(ledger, "said-only").publish("engine", "planner", "Dispatch", {}, message_id="m/1")
    home = str(path.parent.parent)
    assert main(["ledger", "show", "--home", home]) == 0
    assert "said-only" in capsys.readouterr().out
    for name in ("said-only", "said", "only"):
        assert main(["ledger", "show", name, "--home", home]) == 0
        assert "m/1" in capsys.readouterr().out
    assert main(["ledger", "show", "unsaid", "--home", home]) == 2
    assert "unsaid: names no run" in capsys.readouterr().err


def test_the_last_run_of_the_place_where_one_stands_is_shown(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with SqliteLedger(path) as ledger:
        for run in ("one", "two"):
            MessageBus(ledger, run).publish("engine", "planner", "Dispatch", {}, message_id=f"of {run}")
    assert main(["ledger", "show", "last", "--home", str(path.parent.parent)]) == 0
    shown = capsys.readouterr().out
    assert ("of two" in shown, "of one" in shown) == (True, False)


def test_a_message_cannot_be_replaced_by_its_id(path: Path) -> None:
    """A chain entry for it exists, so that only the id stands in the way."""
    with SqliteLedger(path) as ledger:
        MessageBus(ledger, "r").publish("engine", "planner", "Dispatch", {}, message_id="m")
        head = ledger.head().hash
    with closing(raw(path)) as connection:
        hashes = ("0" * 64, head, "f" * 64)
        connection.execute("INSERT INTO chain VALUES (2, 'messages', ?, ?, ?, ?)", (*hashes, "0" * 64))
        with pytest.raises(sqlite3.IntegrityError, match="has a message of this id already"):
            connection.execute(
                "INSERT OR REPLACE INTO messages (message_id, run_id, sender, recipient, type, payload, ts, seq, "
                "payload_hash, prev_hash, hash) VALUES ('m', 'r', 's', 'r', 't', '{}', '', 2, ?, ?, ?)",
                hashes,
            )


def test_a_subscriber_is_answered_from_an_index_without_sorting(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.append(*SAMPLE_ROWS)
    with closing(raw(path)) as connection:
        for where, index in (
            ("run_id IS 'r'", "idx_messages_order"),
            ("run_id IS 'r' AND recipient IS 'p'", "idx_messages_recipient"),
        ):
            query = f"EXPLAIN QUERY PLAN SELECT * FROM messages WHERE seq > 5 AND {where} ORDER BY seq ASC LIMIT 9"
            plan = " ".join(str(row[3]) for row in connection.execute(query))
            assert index in plan
            assert "TEMP B-TREE" not in plan
