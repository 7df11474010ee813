"""The whole proof of a ledger: its chain, its anchors, and that every artifact it names is there and unchanged.

Verification of a SQLite ledger: every entry and every row once, in order, and the schema that protects them.

The chain and the data tables are read side by side, each by its own cursor in order of `seq`, so that a row
without an entry is seen as well as an entry without a row. What is wrong is decided in
`proofstone.ledger.rules.chain`. A part
of
the file that cannot be read is a finding with its place, and what comes after it is still verified.

A verified checkpoint: up to which row a ledger was verified, kept outside of the database.

It carries a code of the ledger's key, so that nobody without the key can spare a ledger its verification. One that is
damaged, of another ledger or of another key counts as none: everything is verified then.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proofstone.common.models import Contract
from proofstone.errors import LedgerError
from proofstone.faults import fault_point
from proofstone.ledger import Ledger, Verification, in_order
from proofstone.ledger.anchors import check_anchors
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.migrations import RUN_TABLES, expected_schema, schema_of
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import (
    Break,
    Entry,
    Link,
    Payload,
    Position,
    checkpoint_code,
    find_breaks,
    genesis,
    is_code,
    row_code,
)
from proofstone.ledger.schema import TABLES, Table


def audit(
    ledger: Ledger, store: ArtifactStore, anchors: Sequence[Anchor] = (), *, since: Anchor | None = None
) -> Verification:
    """Everything, or everything that came after a checkpoint. `since` is a place up to which this was done before."""
    verification = ledger.verify(anchors, since=since)
    try:
        return verification.with_problems(list(_artifacts(ledger, store, verification.start)))
    except LedgerError as error:
        if verification.ok:
            raise
        reason = f"the artifacts could not all be looked for: {error.message}"  # what is damaged is named above
        return verification.with_problems([Break(None, reason)])


def _artifacts(ledger: Ledger, store: ArtifactStore, after: int) -> Iterator[Break]:
    """Each artifact is hashed once, however many rows name it."""
    seen: set[str] = set()
    for stored in in_order(ledger, after=after):
        digest = stored.values.get("artifact")
        if not isinstance(digest, str) or digest in seen:
            continue
        seen.add(digest)
        try:
            problem = store.problem(digest)
        except LedgerError as error:
            problem = error.message
        if problem is not None:
            yield Break(stored.seq, problem)


_FARTHEST: Final = 2**40
"""No ledger has so many rows: where its end cannot be read, rows are looked for up to here."""


def verify(
    connection: sqlite3.Connection, version: int, head: Anchor, start: Position, anchors: Sequence[Anchor], key: bytes
) -> Iterator[Break]:
    """Run inside one read transaction. `version` is that of the file: a reader does not migrate. Rows up to `start`
    were verified before; the file's own structure is examined only from the beginning."""
    tables = [table for table in TABLES.values() if table.since <= version]

    def is_authentic(entry: Entry) -> bool:
        return entry.link is not None and is_code(row_code(key, entry.link.hash), entry.code or "")

    connection.text_factory = _text
    try:
        walk = find_breaks(start, _entries(connection, tables, start.seq), is_authentic=is_authentic if key else None)
        sound = True
        for found in walk:
            sound = False
            yield found
        yield from check_anchors(anchors, head, lambda seq: hash_at(connection, head.ledger_id, seq))
        if sound:
            yield from _reported(lambda: _ids(connection, tables, start.seq))
            yield from _reported(lambda: _run_index(connection, start.seq))
        yield from _reported(lambda: _structure(connection, version, whole=start.seq == 0))
    finally:
        connection.text_factory = str


def hash_at(connection: sqlite3.Connection, ledger_id: str, seq: int) -> str | None:
    if seq == 0:
        return genesis(ledger_id)
    row = connection.execute("SELECT hash FROM chain WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else str(row[0])


def _reported(examine: Callable[[], Iterator[Break]]) -> Iterator[Break]:
    try:
        yield from examine()
    except sqlite3.DatabaseError as error:
        yield Break(None, f"the file is damaged: {error}")


@dataclass(frozen=True)
class _Damage:
    """Rows of a table that cannot be read: from `first` on, up to `last` or to the end."""

    table: str
    first: int
    last: int | None
    why: str

    def to_break(self) -> Break:
        upto = "on" if self.last is None else f"to {self.last}"
        which = f"row {self.first}" if self.last == self.first else f"rows {self.first} {upto}"
        return Break(self.first, f"the file is damaged: {which} of {self.table} cannot be read ({self.why})")


def _scan(
    connection: sqlite3.Connection, table: str, columns: str, after: int
) -> Iterator[tuple[object, ...] | _Damage]:
    """The rows of a table in order of `seq`, and what cannot be read of it."""
    query = f"SELECT {columns} FROM {table} WHERE seq > ? ORDER BY seq"  # noqa: S608  our own names
    position: int | None = after
    while position is not None:
        try:
            for values in connection.execute(query, (position,)):
                if isinstance(values[0], int):
                    position = max(position, values[0])
                yield values
        except sqlite3.DatabaseError as error:
            resume = _next_readable(connection, query, position)
            if resume is not None and resume <= position + 1:
                resume = None  # a damaged file can give the same rows again and again: then there is no end to find
            yield _Damage(table, position + 1, None if resume is None else resume - 1, str(error))
            position = None if resume is None else resume - 1
        else:
            return


def _next_readable(connection: sqlite3.Connection, query: str, position: int) -> int | None:
    """The first row after a damaged part. None: there is none, or the damage has no end."""

    def is_readable(after: int) -> int | None:
        try:
            row = connection.execute(f"{query} LIMIT 1", (after,)).fetchone()
        except sqlite3.DatabaseError:
            return None
        return int(row[0]) if row is not None else _FARTHEST

    bad, step = position, 1
    while (found := is_readable(position + step)) is None:
        bad, step = position + step, step * 2
        if step > _FARTHEST:
            return None
    good = position + step
    while good - bad > 1:
        middle = (good + bad) // 2
        earlier = is_readable(middle)
        if earlier is None:
            bad = middle
        else:
            good, found = middle, earlier
    return None if found == _FARTHEST else found


class _Rows:
    """The rows of one data table in order, with one row of look-ahead."""

    def __init__(self, connection: sqlite3.Connection, table: Table, after: int, problems: list[Break]) -> None:
        columns = ", ".join(("seq", "payload_hash", "prev_hash", "hash", *table.columns))
        self._table = table
        self._scan = _scan(connection, table.name, columns, after)
        self.link: Link | None = None
        self.payload: Payload | None = None
        self.damaged: list[_Damage] = []
        """What could not be read so far."""
        self._problems = problems
        self.advance()

    def advance(self) -> None:
        for values in self._scan:
            if isinstance(values, _Damage):
                self.damaged.append(values)
                self._problems.append(values.to_break())
                continue
            seq, payload_hash, prev_hash, digest = values[:4]
            if not isinstance(seq, int):
                self._problems.append(Break(None, f"a row of {self._table.name} has {seq!r} as its sequence number"))
                continue
            self.link = Link(seq, self._table.name, str(payload_hash), str(prev_hash), str(digest))
            columns = zip(self._table.columns, values[4:], strict=True)
            self.payload = {name: _hashable(value) for name, value in columns}
            return
        self.link = self.payload = None

    def is_unreadable(self, seq: int) -> bool:
        return any(item.first <= seq and (item.last is None or seq <= item.last) for item in self.damaged)


def _entries(connection: sqlite3.Connection, known: Sequence[Table], after: int) -> Iterator[Entry | Break]:
    problems: list[Break] = []
    tables = {table.name: _Rows(connection, table, after, problems) for table in known}
    unread: list[_Damage] = []
    for values in _scan(connection, "chain", "seq, tbl, payload_hash, prev_hash, hash, mac", after):
        if isinstance(values, _Damage):
            unread.append(values)
            yield values.to_break()
            continue
        seq, table, payload_hash, prev_hash, digest, code = values
        link = Link(int(str(seq)), str(table), str(payload_hash), str(prev_hash), str(digest))
        yield from _orphans(tables, unread, before=link.seq)
        if problems:
            yield from problems
            problems.clear()
        found = tables.get(link.table)
        if found is None or found.link is None or found.link.seq != link.seq:
            is_unreadable = found is not None and found.is_unreadable(link.seq)
            yield Entry(link, None, None, str(code), is_unreadable)
            continue
        yield Entry(link, found.link, found.payload, str(code))
        found.advance()
    yield from _orphans(tables, unread, before=None)
    yield from problems


def _orphans(tables: dict[str, _Rows], unread: Sequence[_Damage], before: int | None) -> Iterator[Entry]:
    """Rows whose place in the chain has been passed, or never comes; not those whose place cannot be read."""
    while True:
        waiting = [
            (rows.link.seq, name)
            for name, rows in tables.items()
            if rows.link is not None and (before is None or rows.link.seq < before)
        ]
        if not waiting:
            return
        seq, name = min(waiting)
        rows = tables[name]
        if not any(item.first <= seq and (item.last is None or seq <= item.last) for item in unread):
            yield Entry(None, rows.link, rows.payload)
        rows.advance()


def _ids(connection: sqlite3.Connection, tables: Sequence[Table], after: int) -> Iterator[Break]:
    """`id` counts the rows of a table; it is not hashed, so it must follow from the order."""
    for table in tables:
        before = connection.execute(
            f"SELECT id FROM {table.name} WHERE seq <= ? ORDER BY seq DESC LIMIT 1",  # noqa: S608  our own names
            (after,),
        ).fetchone()
        query = (
            f"SELECT seq, id, place FROM (SELECT seq, id, ? + ROW_NUMBER() OVER (ORDER BY seq) AS place "  # noqa: S608
            f"FROM {table.name} WHERE seq > ?) WHERE id <> place ORDER BY seq LIMIT 1"
        )
        row = connection.execute(query, (0 if before is None else before[0], after)).fetchone()
        if row is not None:
            yield Break(row[0], f"the row in {table.name} has id {row[1]}, it was written as {row[2]}")


def _run_index(connection: sqlite3.Connection, after: int) -> Iterator[Break]:
    """The index of runs is made by triggers and not hashed: it must follow from the rows."""
    for table in RUN_TABLES:
        query = (
            f"SELECT data.seq, data.run_id FROM {table} AS data LEFT JOIN run_index AS known "  # noqa: S608
            "ON known.run_id = data.run_id WHERE data.seq > ? AND COALESCE(known.first_seq > data.seq, TRUE) "
            "ORDER BY data.seq LIMIT 1"
        )
        row = connection.execute(query, (after,)).fetchone()
        if row is not None:
            yield Break(row[0], f"the index of runs does not have {row[1]}, to which the row in {table} belongs")
    exists = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} AS data WHERE data.seq = known.first_seq AND data.run_id = known.run_id)"  # noqa: S608
        for table in RUN_TABLES
    )
    query = f"SELECT run_id, first_seq FROM run_index AS known WHERE first_seq > ? AND NOT ({exists}) LIMIT 1"  # noqa: S608
    row = connection.execute(query, (after,)).fetchone()
    if row is not None:
        yield Break(row[1], f"the index of runs has {row[0]} begin with this row, which is not of that run")


def _structure(connection: sqlite3.Connection, version: int, *, whole: bool) -> Iterator[Break]:
    """Indexes that agree with their tables, and the very triggers and constraints that we created."""
    if whole:
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            yield Break(None, f"the file is damaged: {verdict}")
    different = sorted(f"{kind} {name}" for kind, name, _ in expected_schema(version) ^ schema_of(connection))
    if different:
        yield Break(None, f"the schema was changed: {different[0]} is missing, added or different")


def _text(data: bytes) -> str:
    """Text that is not UTF-8 was not written by us: it must fail its hash, not the walk."""
    return data.decode("utf-8", "surrogateescape")


def _hashable(value: object) -> str | int | None:
    """Blobs and floats never come from us; as text of another kind they cannot hash to what was written."""
    return value if value is None or isinstance(value, str | int) else f"{type(value).__name__}:{value!r}"


class Checkpoint(Contract):
    anchor: Anchor
    mac: str


def checkpoint_path(ledger: Path) -> Path:
    return ledger.parent / "checkpoint.json"


def read_checkpoint(path: Path, ledger_id: str, key: bytes) -> Anchor | None:
    try:
        found = Checkpoint.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    anchor = found.anchor
    good = anchor.ledger_id == ledger_id and is_code(_code(key, anchor), found.mac)
    return anchor if good else None


def write_checkpoint(path: Path, anchor: Anchor, key: bytes) -> str:
    """Why it could not be kept; empty: it was."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    text = Checkpoint(anchor=anchor, mac=_code(key, anchor)).model_dump_json()
    try:
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            fault_point("checkpoint.before-publish")
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def _code(key: bytes, anchor: Anchor) -> str:
    return checkpoint_code(key, anchor.ledger_id, anchor.seq, anchor.hash)
