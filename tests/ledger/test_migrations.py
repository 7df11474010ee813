"""A ledger is brought from version to version. There is only one so far, so these tests add the next one."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from proofstone.agents.bus import MessageBus
from proofstone.cli.main import main
from proofstone.common.models import FrozenModel
from proofstone.errors import LedgerError
from proofstone.ledger import migrations
from proofstone.ledger.migrations import MIGRATIONS, build_expected_schema
from proofstone.ledger.models import EventRow
from proofstone.ledger.schema import TABLES, TableSpec, data_table_statements
from proofstone.ledger.sqlite import OpenMode, SqliteLedger
from proofstone.testing.ledger_conformance import SAMPLE_ROWS
from tests.ledger.tampering import raw

VERSION_1 = "cbb0926a9ff6adea7f036eda3dae026f5a0ddeaca036b6fd59d3cb192098f084"
"""Digest of its schema, by name. From the first release on, a file that was written then must still be what is expected
of it."""


class NoteRow(FrozenModel):
    """A row of the table that the next version adds."""

    note: str


def add_notes(connection: sqlite3.Connection) -> None:
    for statement in data_table_statements("notes", "\n    note TEXT NOT NULL,"):
        connection.execute(statement)


def fail_halfway(connection: sqlite3.Connection) -> None:
    add_notes(connection)
    raise LedgerError("the migration failed")


@pytest.fixture
def old(path: Path) -> Path:
    """A ledger of version 1 with rows."""
    with SqliteLedger(path) as ledger:
        ledger.append(*SAMPLE_ROWS)
    return path


@pytest.fixture
def update(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofstone has a version 2 from now on."""
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, add_notes))
    monkeypatch.setitem(TABLES, NoteRow, TableSpec("notes", NoteRow, since=2))  # type: ignore[misc]


def applied(path: Path) -> list[tuple[int, str]]:
    with closing(raw(path)) as connection:
        return connection.execute("SELECT version, name FROM migrations ORDER BY version").fetchall()


def test_the_text_of_version_1_has_not_changed() -> None:
    assert hashlib.sha256(repr(sorted(build_expected_schema(1))).encode()).hexdigest() == VERSION_1


@pytest.mark.usefixtures("update")
@pytest.mark.parametrize("mode", ["write", "create"])
def test_a_writer_brings_an_old_file_to_the_current_version(old: Path, mode: OpenMode) -> None:
    with SqliteLedger(old, mode) as ledger:
        ledger.append(EventRow(run_id="r", type="t"))
        assert ledger.read(NoteRow) == []
        assert ledger.verify().ok
        assert ledger.head().seq == len(SAMPLE_ROWS) + 1
    assert applied(old) == [(1, "first_schema"), (2, "add_notes")]


@pytest.mark.usefixtures("update")
def test_a_reader_leaves_an_old_file_as_it_is_and_finds_the_new_table_once_it_is_there(old: Path) -> None:
    with SqliteLedger(old, "read") as reader:
        assert reader.read(NoteRow) == []
        assert reader.verify().ok
        assert applied(old) == [(1, "first_schema")]
        SqliteLedger(old, "write").close()
        assert reader.read(NoteRow) == []
        assert reader.verify().ok
    assert applied(old) == [(1, "first_schema"), (2, "add_notes")]


def test_a_new_file_takes_all_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, add_notes))
    SqliteLedger(path).close()
    assert applied(path) == [(1, "first_schema"), (2, "add_notes")]


def test_a_migration_that_fails_leaves_the_version_before(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, fail_halfway))
    with pytest.raises(LedgerError, match="the migration failed"):
        SqliteLedger(old)
    monkeypatch.undo()
    assert applied(old) == [(1, "first_schema")]
    with SqliteLedger(old) as ledger:
        assert ledger.verify().ok


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


def test_the_messages_of_a_run_are_read_from_an_index_without_sorting(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.append(*SAMPLE_ROWS)
    with closing(raw(path)) as connection:
        query = "EXPLAIN QUERY PLAN SELECT * FROM messages WHERE seq > 5 AND run_id IS 'r' ORDER BY seq ASC LIMIT 9"
        plan = " ".join(str(row[3]) for row in connection.execute(query))
    assert "idx_messages_order" in plan
    assert "TEMP B-TREE" not in plan
