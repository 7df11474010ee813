"""The ledger in one SQLite file: write-ahead log, `synchronous=FULL`, one writer at a time.

Reading the head, hashing and inserting happen inside `BEGIN IMMEDIATE`, so that two processes can never build on the
same head. Several threads may use a connection; a lock makes them take turns.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, Self

from proofstone.errors import LedgerCorruptError, LedgerError
from proofstone.faults import fault_point
from proofstone.ledger import LastRowCondition, Verification
from proofstone.ledger.connection import (
    BUSY_MS,
    execute_with_retry,
    open_for_reading,
    open_for_writing,
    translate_sqlite_errors,
)
from proofstone.ledger.keys import LedgerKey, create_key, key_path, read_key
from proofstone.ledger.migrations import migrate, read_schema_version
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import (
    AuthenticationLevel,
    ChainBreak,
    ChainLink,
    ChainPosition,
    Scalar,
    codes_match,
    genesis_hash,
    link_hash,
    next_link,
    payload_hash,
    row_code,
    sort_breaks,
)
from proofstone.ledger.schema import TABLES, LedgerRow, RowT, StoredRow, TableSpec, make_storable, table_of
from proofstone.ledger.verification import checkpoint_path, find_problems, read_checkpoint, read_hash, write_checkpoint

OpenMode = Literal["create", "write", "read"]
"""`create` creates what is missing; `write` and `read` need an existing ledger."""

_CHAIN_INSERT: Final = "INSERT INTO chain (seq, tbl, payload_hash, prev_hash, hash, mac) VALUES (?, ?, ?, ?, ?, ?)"
_LINK_COLUMNS: Final = ("seq", "payload_hash", "prev_hash", "hash")
_MAX_PROBLEMS: Final = 100
"""The number of problems that are listed; the others are only counted."""


def _insert(table: TableSpec) -> str:
    columns = (*table.columns, *_LINK_COLUMNS)
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608  our own names


_INSERTS: Final[Mapping[str, str]] = {table.name: _insert(table) for table in TABLES.values()}


def utc_now() -> datetime:
    return datetime.now(UTC)


class SqliteLedger:
    """Implements `proofstone.ledger.Ledger`."""

    def __init__(
        self,
        path: Path,
        mode: OpenMode = "create",
        *,
        busy_ms: int = BUSY_MS,
        clock: Callable[[], datetime] = utc_now,
        file_mode: int = 0o600,
    ) -> None:
        self.path = path
        self._writable = mode != "read"
        self._busy_ms = busy_ms
        self._clock = clock
        self._lock = threading.Lock()
        self._connection = (
            open_for_writing(path, create=mode == "create", busy_ms=busy_ms, file_mode=file_mode)
            if self._writable
            else open_for_reading(path, busy_ms=busy_ms)
        )
        try:
            self.ledger_id = self._prepare(mode)
            self.key = self._find_key(mode)
        except BaseException:
            self._connection.close()
            raise

    def append(
        self, *rows: LedgerRow, provided: Sequence[LastRowCondition] = (), durable: bool = True
    ) -> tuple[int, ...]:
        encoded = [(table_of(type(row)), table_of(type(row)).encode(row)) for row in rows]
        if not encoded:
            return ()
        with self._lock, translate_sqlite_errors(self.path), self._durability(durable), self._write_transaction():
            fault_point("ledger.before-insert")
            if not all(self._condition_holds(condition) for condition in provided):
                return ()
            seqs = tuple(self._insert(encoded))
            fault_point("ledger.before-commit")
        fault_point("ledger.after-commit")
        return seqs

    def read(
        self, kind: type[RowT], /, *, after: int = 0, limit: int | None = None, newest: bool = False, **where: Scalar
    ) -> list[StoredRow[RowT]]:
        table = table_of(kind)
        condition, arguments = _where_clause(table, where)
        query = (
            f"SELECT {', '.join((*_LINK_COLUMNS, *table.columns))} FROM {table.name} "  # noqa: S608  our own names
            f"WHERE seq > ?{condition} ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT ?"
        )
        with self._lock, translate_sqlite_errors(self.path):
            if not self._has_table(table):
                return []
            rows = self._connection.execute(query, (after, *arguments, -1 if limit is None else limit)).fetchall()
        return [_to_stored(kind, table, values) for values in rows]

    def head(self) -> Anchor:
        with self._lock, translate_sqlite_errors(self.path):
            seq, digest, _ = self._head()
        return Anchor(ledger_id=self.ledger_id, seq=seq, hash=digest)

    def hash_at(self, seq: int) -> str | None:
        with self._lock, translate_sqlite_errors(self.path):
            return read_hash(self._connection, self.ledger_id, seq)

    def is_authentic(self, stored: StoredRow[Any]) -> bool:
        link = stored.link
        with self._lock, translate_sqlite_errors(self.path):
            row = self._connection.execute("SELECT hash, mac FROM chain WHERE seq = ?", (link.seq,)).fetchone()
        if row is None or self.key is None or row[0] != link.hash:
            return False
        follows = link_hash(link.prev_hash, link.seq, link.table, payload_hash(stored.values)) == link.hash
        return follows and codes_match(row_code(self.key.value, link.hash), str(row[1]))

    def verify(self, anchors: Sequence[Anchor] = (), *, since: Anchor | None = None) -> Verification:
        level = AuthenticationLevel.NONE if self.key is None else self.key.level
        with self._lock, translate_sqlite_errors(self.path), self._read_transaction():
            begin = Anchor(ledger_id=self.ledger_id, seq=0, hash=genesis_hash(self.ledger_id))
            try:
                schema_version = read_schema_version(self._connection, self.path)
                seq, digest, _ = self._head()
            except sqlite3.DatabaseError as error:
                return Verification(begin, (ChainBreak(None, f"the file is damaged: {error}"),), level=level)
            head = begin.model_copy(update={"seq": seq, "hash": digest})
            start = begin
            if since is not None and read_hash(self._connection, self.ledger_id, since.seq) == since.hash:
                start = since
            problems = (
                []
                if self.key
                else [
                    ChainBreak(None, f"{key_path(self.path)}: there is no key, so nothing shows who wrote the ledger")
                ]
            )
            unlisted = 0
            walk = find_problems(
                self._connection,
                schema_version,
                head,
                ChainPosition(start.seq, start.hash),
                anchors,
                self.key.value if self.key else b"",
            )
            for problem in walk:
                if len(problems) < _MAX_PROBLEMS:
                    problems.append(problem)
                else:
                    unlisted += 1
            return Verification(head, sort_breaks(problems), start.seq, unlisted, level)

    def checkpoint(self) -> Anchor | None:
        if self.key is None:
            return None
        anchor = read_checkpoint(checkpoint_path(self.path), self.ledger_id, self.key.value)
        return anchor if anchor is not None and self.hash_at(anchor.seq) == anchor.hash else None

    def record_checkpoint(self, anchor: Anchor) -> str:
        if self.key is None:
            return "there is no key to authenticate the checkpoint with"
        return write_checkpoint(checkpoint_path(self.path), anchor, self.key.value)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self, mode: OpenMode) -> str:
        with translate_sqlite_errors(self.path):
            self._version = read_schema_version(self._connection, self.path)
            if self._version == 0 and mode != "create":
                raise LedgerError(f"{self.path}: is empty and contains no ledger")
            if self._writable:
                self._version = migrate(self._connection, self.path)
            row = self._connection.execute("SELECT value FROM meta WHERE key = 'ledger_id'").fetchone()
        if row is None:
            raise LedgerError(f"{self.path}: has no ledger_id", hint="restore it from a backup")
        return str(row[0])

    def _find_key(self, mode: OpenMode) -> LedgerKey | None:
        """Return the key that authenticates rows. A new ledger gets a key; no row is appended without it."""
        key = read_key(key_path(self.path))
        if key is None and mode == "create" and self._head()[0] == 0:
            key = create_key(key_path(self.path))
        if key is None and self._writable:
            raise LedgerError(
                f"{key_path(self.path)}: the key that authenticates the ledger's rows is missing or not readable",
                hint="restore it from a backup; or move the ledger away and run `proofstone ledger reanchor`",
            )
        return key

    def _has_table(self, table: TableSpec) -> bool:
        """Return whether the file is new enough for the table: a reader does not migrate, but another process
        may have.
        """
        if table.since > self._version:
            self._version = read_schema_version(self._connection, self.path)
        return table.since <= self._version

    def _condition_holds(self, condition: LastRowCondition) -> bool:
        table = table_of(condition.kind)
        clause, arguments = _where_clause(table, condition.where)
        query = f"SELECT MAX(seq) FROM {table.name} WHERE TRUE{clause}"  # noqa: S608  our own names
        (last,) = self._connection.execute(query, arguments).fetchone()
        return (last or 0) == condition.seq

    def _head(self) -> tuple[int, str, str]:
        """Return the number, the hash and the authentication code of the last entry."""
        row = self._connection.execute("SELECT seq, hash, mac FROM chain ORDER BY seq DESC LIMIT 1").fetchone()
        return (0, genesis_hash(self.ledger_id), "") if row is None else (int(row[0]), str(row[1]), str(row[2]))

    def _insert(self, encoded: Sequence[tuple[TableSpec, dict[str, Scalar]]]) -> Iterator[int]:
        if self.key is None:
            raise LedgerError(f"{self.path}: was opened without its key")
        ts = self._clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        seq, digest, code = self._head()
        if seq and not codes_match(row_code(self.key.value, digest), code):
            raise LedgerCorruptError(
                f"{self.path}: row {seq}, the last one, was not written with the ledger's key; nothing is appended",
                seq=seq,
                hint="see all problems with `proofstone ledger verify`; restore the ledger or its key from a backup",
            )
        for table, values in encoded:
            values["ts"] = ts
            link = next_link(digest, seq + 1, table.name, values)
            seq, digest = link.seq, link.hash
            hashes = (link.payload_hash, link.prev_hash, link.hash)
            self._connection.execute(_CHAIN_INSERT, (seq, table.name, *hashes, row_code(self.key.value, digest)))
            columns = (values[name] for name in table.columns)
            self._connection.execute(_INSERTS[table.name], (*columns, seq, *hashes))
            yield seq

    @contextmanager
    def _durability(self, durable: bool) -> Iterator[None]:
        """Wait for the disk only if `durable`. The log is one file that is written in order, so waiting for its end
        means waiting for everything before.
        """
        if durable:
            yield
            return
        self._connection.execute("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            self._connection.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _write_transaction(self) -> Iterator[None]:
        if not self._writable:
            raise LedgerError(f"{self.path}: is open for reading only")
        execute_with_retry(self._connection, "BEGIN IMMEDIATE", self._busy_ms)
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            self._roll_back()

    @contextmanager
    def _read_transaction(self) -> Iterator[None]:
        """Read one state of the file in several queries, whatever others write meanwhile."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        """Roll back, unless SQLite has already rolled back after an error."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _where_clause(table: TableSpec, where: Mapping[str, Scalar]) -> tuple[str, list[Scalar]]:
    unknown = sorted(set(where) - set(table.columns))
    if unknown:
        raise LedgerError(f"{table.name} has no column {unknown[0]}; it has: {', '.join(table.columns)}")
    clause = "".join(f" AND {column} IS ?" for column in where)
    return clause, [make_storable(str(value)) if isinstance(value, str) else value for value in where.values()]


def _to_stored(kind: type[RowT], table: TableSpec, values: Sequence[Scalar]) -> StoredRow[RowT]:
    seq, payload, prev, digest = values[: len(_LINK_COLUMNS)]
    link = ChainLink(int(str(seq)), table.name, str(payload), str(prev), str(digest))
    return StoredRow(kind, link, dict(zip(table.columns, values[len(_LINK_COLUMNS) :], strict=True)))
