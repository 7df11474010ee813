"""Verify a ledger: its chain, its anchors, its schema, and the artifacts that it names.

The chain and the data tables are read in parallel, each by its own cursor in order of `seq`, so that a row without an
entry is found as well as an entry without a row. `proofstone.ledger.rules.chain` decides what is wrong. A part of the
file that cannot be read is a finding with its position, and the parts after it are still verified.

A checkpoint records up to which row a ledger was verified. It is stored outside of the database and carries a code of
the ledger's key, so that nobody without the key can make a verification skip rows. A checkpoint that is damaged, or
that belongs to another ledger or key, is ignored, and then everything is verified.
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

from proofstone.common.models import FrozenModel
from proofstone.errors import LedgerError
from proofstone.faults import fault_point
from proofstone.ledger import Ledger, Verification, read_all_rows
from proofstone.ledger.anchors import check_anchors
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.migrations import build_expected_schema, read_schema
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import (
    ChainBreak,
    ChainEntry,
    ChainLink,
    ChainPosition,
    RowPayload,
    checkpoint_code,
    codes_match,
    find_breaks,
    genesis_hash,
    row_code,
)
from proofstone.ledger.schema import RUN_TABLES, TABLES, TableSpec


def verify_with_artifacts(
    ledger: Ledger, store: ArtifactStore, anchors: Sequence[Anchor] = (), *, since: Anchor | None = None
) -> Verification:
    """Verify everything, or everything after `since`, a position up to which the ledger was verified before."""
    verification = ledger.verify(anchors, since=since)
    try:
        return verification.with_problems(list(_verify_artifacts(ledger, store, verification.start)))
    except LedgerError as error:
        if verification.ok:
            raise
        reason = f"not all artifacts could be checked: {error.message}"  # the damage itself is listed above
        return verification.with_problems([ChainBreak(None, reason)])


def _verify_artifacts(ledger: Ledger, store: ArtifactStore, after: int) -> Iterator[ChainBreak]:
    """Yield the problems of artifacts. Each artifact is hashed once, however many rows name it."""
    checked: set[str] = set()
    for stored in read_all_rows(ledger, after=after):
        digest = stored.values.get("artifact")
        if not isinstance(digest, str) or digest in checked:
            continue
        checked.add(digest)
        try:
            problem = store.find_problem(digest)
        except LedgerError as error:
            problem = error.message
        if problem is not None:
            yield ChainBreak(stored.seq, problem)


_MAX_SEQ: Final = 2**40
"""More rows than any ledger has: if its end cannot be read, rows are searched up to here."""


def find_problems(
    connection: sqlite3.Connection,
    version: int,
    head: Anchor,
    start: ChainPosition,
    anchors: Sequence[Anchor],
    key: bytes,
) -> Iterator[ChainBreak]:
    """Yield the problems. Run this inside one read transaction. `version` is the version of the file, because a reader
    does not migrate. Rows up to `start` were verified before; the structure of the file is checked only with `start` 0.
    """
    tables = [table for table in TABLES.values() if table.since <= version]

    def is_authentic(entry: ChainEntry) -> bool:
        return entry.link is not None and codes_match(row_code(key, entry.link.hash), entry.code or "")

    connection.text_factory = _decode_text
    try:
        walk = find_breaks(
            start, _read_entries(connection, tables, start.seq), is_authentic=is_authentic if key else None
        )
        is_sound = True
        for problem in walk:
            is_sound = False
            yield problem
        yield from check_anchors(anchors, head, lambda seq: read_hash(connection, head.ledger_id, seq))
        if is_sound:
            yield from _report_damage(lambda: _verify_ids(connection, tables, start.seq))
            yield from _report_damage(lambda: _verify_run_index(connection, start.seq))
        yield from _report_damage(lambda: _verify_structure(connection, version, whole=start.seq == 0))
    finally:
        connection.text_factory = str


def read_hash(connection: sqlite3.Connection, ledger_id: str, seq: int) -> str | None:
    if seq == 0:
        return genesis_hash(ledger_id)
    row = connection.execute("SELECT hash FROM chain WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else str(row[0])


def _report_damage(examine: Callable[[], Iterator[ChainBreak]]) -> Iterator[ChainBreak]:
    try:
        yield from examine()
    except sqlite3.DatabaseError as error:
        yield ChainBreak(None, f"the file is damaged: {error}")


@dataclass(frozen=True)
class _DamagedRange:
    """Rows of a table that cannot be read: from `first` on, up to `last` or to the end."""

    table: str
    first: int
    last: int | None
    why: str

    def to_break(self) -> ChainBreak:
        end = "on" if self.last is None else f"to {self.last}"
        rows = f"row {self.first}" if self.last == self.first else f"rows {self.first} {end}"
        return ChainBreak(self.first, f"the file is damaged: {rows} of {self.table} cannot be read ({self.why})")


def _scan_rows(
    connection: sqlite3.Connection, table: str, columns: str, after: int
) -> Iterator[tuple[object, ...] | _DamagedRange]:
    """Yield the rows of a table in order of `seq`, and the parts of it that cannot be read."""
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
                resume = None  # a damaged file can return the same rows forever
            yield _DamagedRange(table, position + 1, None if resume is None else resume - 1, str(error))
            position = None if resume is None else resume - 1
        else:
            return


def _next_readable(connection: sqlite3.Connection, query: str, position: int) -> int | None:
    """Return the first row after a damaged part; None if there is none, or if the damage has no end."""

    def first_row_after(after: int) -> int | None:
        try:
            row = connection.execute(f"{query} LIMIT 1", (after,)).fetchone()
        except sqlite3.DatabaseError:
            return None
        return int(row[0]) if row is not None else _MAX_SEQ

    bad, step = position, 1
    while (row_seq := first_row_after(position + step)) is None:
        bad, step = position + step, step * 2
        if step > _MAX_SEQ:
            return None
    good = position + step
    while good - bad > 1:
        middle = (good + bad) // 2
        earlier = first_row_after(middle)
        if earlier is None:
            bad = middle
        else:
            good, row_seq = middle, earlier
    return None if row_seq == _MAX_SEQ else row_seq


class _TableReader:
    """The rows of one data table in order, with one row of look-ahead."""

    def __init__(
        self, connection: sqlite3.Connection, table: TableSpec, after: int, problems: list[ChainBreak]
    ) -> None:
        columns = ", ".join(("seq", "payload_hash", "prev_hash", "hash", *table.columns))
        self._table = table
        self._scan_rows = _scan_rows(connection, table.name, columns, after)
        self.link: ChainLink | None = None
        self.payload: RowPayload | None = None
        self.damaged: list[_DamagedRange] = []
        """The parts that could not be read so far."""
        self._problems = problems
        self.advance()

    def advance(self) -> None:
        for values in self._scan_rows:
            if isinstance(values, _DamagedRange):
                self.damaged.append(values)
                self._problems.append(values.to_break())
                continue
            seq, payload_hash, prev_hash, digest = values[:4]
            if not isinstance(seq, int):
                self._problems.append(
                    ChainBreak(None, f"a row of {self._table.name} has {seq!r} as its sequence number")
                )
                continue
            self.link = ChainLink(seq, self._table.name, str(payload_hash), str(prev_hash), str(digest))
            columns = zip(self._table.columns, values[4:], strict=True)
            self.payload = {name: _hashable(value) for name, value in columns}
            return
        self.link = self.payload = None

    def is_unreadable(self, seq: int) -> bool:
        return any(part.first <= seq and (part.last is None or seq <= part.last) for part in self.damaged)


def _read_entries(
    connection: sqlite3.Connection, table_specs: Sequence[TableSpec], after: int
) -> Iterator[ChainEntry | ChainBreak]:
    problems: list[ChainBreak] = []
    tables = {table.name: _TableReader(connection, table, after, problems) for table in table_specs}
    damaged_parts: list[_DamagedRange] = []
    for values in _scan_rows(connection, "chain", "seq, tbl, payload_hash, prev_hash, hash, mac", after):
        if isinstance(values, _DamagedRange):
            damaged_parts.append(values)
            yield values.to_break()
            continue
        seq, table, payload_hash, prev_hash, digest, code = values
        link = ChainLink(int(str(seq)), str(table), str(payload_hash), str(prev_hash), str(digest))
        yield from _take_orphans(tables, damaged_parts, before=link.seq)
        if problems:
            yield from problems
            problems.clear()
        reader = tables.get(link.table)
        if reader is None or reader.link is None or reader.link.seq != link.seq:
            is_unreadable = reader is not None and reader.is_unreadable(link.seq)
            yield ChainEntry(link, None, None, str(code), is_unreadable)
            continue
        yield ChainEntry(link, reader.link, reader.payload, str(code))
        reader.advance()
    yield from _take_orphans(tables, damaged_parts, before=None)
    yield from problems


def _take_orphans(
    tables: dict[str, _TableReader], damaged_parts: Sequence[_DamagedRange], before: int | None
) -> Iterator[ChainEntry]:
    """Yield rows whose position in the chain has been passed or never comes, except those whose position cannot be
    read.
    """
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
        if not any(part.first <= seq and (part.last is None or seq <= part.last) for part in damaged_parts):
            yield ChainEntry(None, rows.link, rows.payload)
        rows.advance()


def _verify_ids(connection: sqlite3.Connection, tables: Sequence[TableSpec], after: int) -> Iterator[ChainBreak]:
    """Verify `id`, which counts the rows of a table. It is not hashed, so it must follow from the order."""
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
            yield ChainBreak(row[0], f"the row in {table.name} has id {row[1]}; its original id was {row[2]}")


def _verify_run_index(connection: sqlite3.Connection, after: int) -> Iterator[ChainBreak]:
    """Verify the index of runs. Triggers maintain it and it is not hashed, so it must follow from the rows."""
    for table in RUN_TABLES:
        query = (
            f"SELECT data.seq, data.run_id FROM {table} AS data LEFT JOIN run_index AS known "  # noqa: S608
            "ON known.run_id = data.run_id WHERE data.seq > ? AND COALESCE(known.first_seq > data.seq, TRUE) "
            "ORDER BY data.seq LIMIT 1"
        )
        row = connection.execute(query, (after,)).fetchone()
        if row is not None:
            yield ChainBreak(row[0], f"the index of runs lacks {row[1]}, the run of the row in {table}")
    exists = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} AS data WHERE data.seq = known.first_seq AND data.run_id = known.run_id)"  # noqa: S608
        for table in RUN_TABLES
    )
    query = f"SELECT run_id, first_seq FROM run_index AS known WHERE first_seq > ? AND NOT ({exists}) LIMIT 1"  # noqa: S608
    row = connection.execute(query, (after,)).fetchone()
    if row is not None:
        yield ChainBreak(
            row[1], f"the index of runs says that {row[0]} begins with this row, which belongs to another run"
        )


def _verify_structure(connection: sqlite3.Connection, version: int, *, whole: bool) -> Iterator[ChainBreak]:
    """Verify that indexes agree with their tables, and that the triggers and constraints are the original ones."""
    if whole:
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            yield ChainBreak(None, f"the file is damaged: {verdict}")
    different = sorted(f"{kind} {name}" for kind, name, _ in build_expected_schema(version) ^ read_schema(connection))
    if different:
        yield ChainBreak(None, f"the schema was changed: {different[0]} is missing, added or different")


def _decode_text(data: bytes) -> str:
    """Decode text. Proofstone writes only UTF-8: other bytes must fail their hash and not the verification."""
    return data.decode("utf-8", "surrogateescape")


def _hashable(value: object) -> str | int | None:
    """Return a value that can be hashed. Proofstone never writes blobs and floats; as text they cannot match
    the hash.
    """
    return value if value is None or isinstance(value, str | int) else f"{type(value).__name__}:{value!r}"


class Checkpoint(FrozenModel):
    anchor: Anchor
    mac: str


def checkpoint_path(ledger: Path) -> Path:
    return ledger.parent / "checkpoint.json"


def read_checkpoint(path: Path, ledger_id: str, key: bytes) -> Anchor | None:
    try:
        checkpoint = Checkpoint.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    anchor = checkpoint.anchor
    is_valid = anchor.ledger_id == ledger_id and codes_match(_checkpoint_code(key, anchor), checkpoint.mac)
    return anchor if is_valid else None


def write_checkpoint(path: Path, anchor: Anchor, key: bytes) -> str:
    """Write the checkpoint. Return the reason if that fails, otherwise an empty string."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    text = Checkpoint(anchor=anchor, mac=_checkpoint_code(key, anchor)).model_dump_json()
    try:
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            fault_point("checkpoint.before-publish")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def _checkpoint_code(key: bytes, anchor: Anchor) -> str:
    return checkpoint_code(key, anchor.ledger_id, anchor.seq, anchor.hash)
