"""Verification of a SQLite ledger: every entry and every row once, in order, and the schema that protects them.

The chain and the data tables are read side by side, each by its own cursor in order of `seq`, so that a row
without an entry is seen as well as an entry without a row. What is wrong is decided in `assay.core.chain`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from assay.adapters.ledger.anchors import Anchor, check_anchors
from assay.adapters.ledger.migrations import expected_schema, schema_of
from assay.adapters.ledger.tables import TABLES, Table
from assay.core.chain import Break, Entry, Link, Payload, earliest, first_break, genesis


def verify(connection: sqlite3.Connection, version: int, head: Anchor, anchors: Sequence[Anchor]) -> Break | None:
    """Run inside one read transaction. `version` is that of the file: a reader does not migrate."""
    tables = [table for table in TABLES.values() if table.since <= version]

    def hash_at(seq: int) -> str | None:
        if seq == 0:
            return genesis(head.ledger_id)
        row = connection.execute("SELECT hash FROM chain WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else str(row[0])

    connection.text_factory = _text
    try:
        rows = first_break(head.ledger_id, _entries(connection, tables))
        anchored = check_anchors(anchors, head, hash_at)
        return earliest(rows, anchored, _ids(connection, tables), _structure(connection, version))
    except sqlite3.DatabaseError as error:
        return Break(None, f"the file is damaged: {error}")
    finally:
        connection.text_factory = str


class _Rows:
    """The rows of one data table in order, with one row of look-ahead."""

    def __init__(self, connection: sqlite3.Connection, table: Table) -> None:
        columns = ", ".join(table.columns)
        query = f"SELECT seq, payload_hash, prev_hash, hash, {columns} FROM {table.name} ORDER BY seq"  # noqa: S608
        self._table = table
        self._cursor = connection.execute(query)
        self.link: Link | None = None
        self.payload: Payload | None = None
        self.advance()

    def advance(self) -> None:
        values = self._cursor.fetchone()
        if values is None:
            self.link = self.payload = None
            return
        seq, payload_hash, prev_hash, digest = values[:4]
        self.link = Link(seq, self._table.name, payload_hash, prev_hash, digest)
        self.payload = {name: _hashable(value) for name, value in zip(self._table.columns, values[4:], strict=True)}


def _entries(connection: sqlite3.Connection, known: Sequence[Table]) -> Iterator[Entry]:
    tables = {table.name: _Rows(connection, table) for table in known}
    for values in connection.execute("SELECT seq, tbl, payload_hash, prev_hash, hash FROM chain ORDER BY seq"):
        link = Link(*values)
        yield from _orphans(tables, before=link.seq)
        rows = tables.get(link.table)
        if rows is None or rows.link is None or rows.link.seq != link.seq:
            yield Entry(link, None, None)
            continue
        yield Entry(link, rows.link, rows.payload)
        rows.advance()
    yield from _orphans(tables, before=None)


def _orphans(tables: dict[str, _Rows], before: int | None) -> Iterator[Entry]:
    """Rows whose place in the chain has been passed, or never comes."""
    waiting = [rows for rows in tables.values() if rows.link and (before is None or rows.link.seq < before)]
    for rows in sorted(waiting, key=lambda rows: rows.link.seq if rows.link else 0):
        yield Entry(None, rows.link, rows.payload)


def _ids(connection: sqlite3.Connection, tables: Sequence[Table]) -> Break | None:
    """`id` counts the rows of a table; it is not hashed, so it must follow from the order."""
    found = []
    for table in tables:
        query = (
            f"SELECT seq, id, place FROM (SELECT seq, id, ROW_NUMBER() OVER (ORDER BY seq) AS place "  # noqa: S608
            f"FROM {table.name}) WHERE id <> place ORDER BY seq LIMIT 1"
        )
        row = connection.execute(query).fetchone()
        if row is not None:
            found.append(Break(row[0], f"the row in {table.name} has id {row[1]}, it was written as {row[2]}"))
    return earliest(*found)


def _structure(connection: sqlite3.Connection, version: int) -> Break | None:
    """Indexes that agree with their tables, and the very triggers and constraints that we created."""
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        return Break(None, f"the file is damaged: {verdict}")
    different = sorted(f"{kind} {name}" for kind, name, _ in expected_schema(version) ^ schema_of(connection))
    if different:
        return Break(None, f"the schema was changed: {different[0]} is missing, added or different")
    return None


def _text(data: bytes) -> str:
    """Text that is not UTF-8 was not written by us: it must fail its hash, not the walk."""
    return data.decode("utf-8", "surrogateescape")


def _hashable(value: object) -> str | int | None:
    """Blobs and floats never come from us; as text of another kind they cannot hash to what was written."""
    return value if value is None or isinstance(value, str | int) else f"{type(value).__name__}:{value!r}"
