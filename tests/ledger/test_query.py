"""A query reads. Whatever else it tries is refused, and the ledger stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofstone.errors import InputError, LedgerError
from proofstone.ledger.query import run_query
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.testing.ledger_conformance import SAMPLE_ROWS


@pytest.fixture
def filled(ledger: SqliteLedger, path: Path) -> Iterator[Path]:
    ledger.append(*SAMPLE_ROWS)
    before = ledger.head()
    yield path
    assert ledger.head() == before
    assert ledger.verify([before]).ok


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO events (run_id) VALUES ('x')",
        "INSERT OR REPLACE INTO meta VALUES ('ledger_id', 'x')",
        "UPDATE checks SET passed = 1",
        "DELETE FROM checks",
        "DROP TABLE checks",
        "DROP TRIGGER events_no_delete",
        "CREATE TABLE x (a)",
        "CREATE TEMP TABLE x (a)",
        "CREATE TEMP VIEW checks AS SELECT 1",
        "ALTER TABLE events RENAME TO e",
        "ATTACH '{directory}/other.db' AS other",
        "VACUUM INTO '{directory}/other.db'",
        "VACUUM",
        "REINDEX",
        "ANALYZE",
        "DETACH main",
        "PRAGMA writable_schema = ON",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version = 7",
        "BEGIN IMMEDIATE",
        "SAVEPOINT x",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "EXPLAIN DELETE FROM events",
        "WITH x AS (SELECT 1) DELETE FROM events",
        "SELECT 1; DELETE FROM events",
        "SELECT * FROM nowhere",
        "SELEKT",
        "",
        "-- nothing",
        "SELECT '\x00'",
        "SELECT '\ud800'",
        "SELECT ?",
        "SELECT zeroblob(1000000000)",
    ],
)
def test_what_is_not_a_plain_question_is_refused(filled: Path, sql: str) -> None:
    with pytest.raises(InputError):
        run_query(filled, sql.format(directory=filled.parent))
    assert not (filled.parent / "other.db").exists()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT COUNT(*) FROM chain", [(len(SAMPLE_ROWS),)]),
        ("SELECT COUNT(*) = (SELECT COUNT(*) FROM checks) FROM anvil_checks", [(1,)]),
        ("SELECT tbl FROM chain WHERE seq = 1", [("checks",)]),
        ("SELECT json_extract(payload, '$.n[0]') FROM messages", [(1,)]),
        ("SELECT state FROM runs", [("started",)]),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT MAX(x) FROM c",
            [(3,)],
        ),
        ("SELECT CAST(x'ff' AS TEXT), x'00', 1.5, NULL", [("\ufffd", b"\x00", 1.5, None)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
    ],
)
def test_questions_are_answered(filled: Path, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert list(run_query(filled, sql).rows) == rows


def test_an_answer_has_at_most_so_many_rows_and_says_that_there_are_more(filled: Path) -> None:
    answer = run_query(filled, "SELECT seq FROM chain ORDER BY seq", limit=2)
    assert (answer.columns, answer.rows, answer.has_more) == (("seq",), ((1,), (2,)), True)
    assert not run_query(filled, "SELECT seq FROM chain", limit=len(SAMPLE_ROWS)).has_more


def test_a_query_without_end_is_stopped(filled: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c"
    with pytest.raises(InputError, match=r"longer than 0\.2 s"):
        run_query(filled, endless, seconds=0.2)


def test_a_path_with_odd_characters_can_be_asked(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=rwc&c#d%20e" / "ledger.db"
    SqliteLedger(path).close()
    assert run_query(path, "SELECT COUNT(*) FROM chain").rows == ((0,),)


def test_asking_where_no_ledger_is_creates_none(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        run_query(tmp_path / "ledger.db", "SELECT 1")
    assert list(tmp_path.iterdir()) == []
