"""What somebody with the file and a SQLite shell can do to a ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from proofstone.ledger.rules.chain import RowPayload, genesis_hash, link_hash, payload_hash, row_code
from proofstone.ledger.schema import TABLES


def raw(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@contextmanager
def unprotected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for which the triggers are gone. They are put back, so that only the rows give it away."""
    with closing(raw(path)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        connection.execute("BEGIN")
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in triggers:
            connection.execute(sql)
        connection.execute("COMMIT")


def rehash_from(connection: sqlite3.Connection, ledger_id: str, first: int, key: bytes | None = None) -> None:
    """Compute payload hashes and links anew, from an entry to the end, in the chain and in the tables; with a
    key the authentication codes as well."""
    row = connection.execute("SELECT hash FROM chain WHERE seq = ?", (first - 1,)).fetchone()
    prev = genesis_hash(ledger_id) if row is None else row[0]
    entries = connection.execute("SELECT seq, tbl FROM chain WHERE seq >= ? ORDER BY seq", (first,)).fetchall()
    for seq, table in entries:
        digest = payload_hash(payload_of(connection, table, seq))
        new = link_hash(prev, seq, table, digest)
        for name in ("chain", table):
            connection.execute(
                f"UPDATE {name} SET payload_hash = ?, prev_hash = ?, hash = ? WHERE seq = ?",
                (digest, prev, new, seq),
            )
        if key is not None:
            connection.execute("UPDATE chain SET mac = ? WHERE seq = ?", (row_code(key, new), seq))
        prev = new


def payload_of(connection: sqlite3.Connection, table: str, seq: int) -> RowPayload:
    columns = next(item.columns for item in TABLES.values() if item.name == table)
    values = connection.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE seq = ?", (seq,)).fetchone()
    return dict(zip(columns, values, strict=True))
