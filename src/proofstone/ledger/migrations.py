"""Create a ledger file, and bring it from one schema version to the next.

Each migration is a small function. The migration and its row in `migrations` are one transaction, so that a crash
leaves either the version before or the version after. A file of a newer version is refused, because its rules are
unknown.

The names of the migrations are stored in the ledger: do not rename these functions.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from proofstone.errors import LedgerError
from proofstone.ledger import schema

_MIGRATIONS_TABLE: Final = (
    "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
)


def first_schema(connection: sqlite3.Connection) -> None:
    connection.execute(_MIGRATIONS_TABLE)
    for statement in schema.append_only_triggers("migrations", "version = NEW.version"):
        connection.execute(statement)
    for statement in schema.schema_statements():
        connection.execute(statement)
    connection.execute("INSERT INTO meta (key, value) VALUES ('ledger_id', ?)", (secrets.token_hex(16),))


MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (first_schema,)
"""The n-th function makes version n out of version n-1. The number of functions is the current version."""


def migrate(connection: sqlite3.Connection, path: Path, upto: int | None = None) -> int:
    """Bring the file to a version, or to the current one, and return the version that it has. One of several
    concurrent processes does it; the others find it done."""
    upto = len(MIGRATIONS) if upto is None else upto
    while (version := read_schema_version(connection, path)) < upto:
        with _immediate_transaction(connection):
            current = read_schema_version(connection, path)  # again, now that no other process can write
            if current < upto:
                step = MIGRATIONS[current]
                step(connection)
                now = datetime.now(UTC).isoformat(timespec="seconds")
                row = (current + 1, step.__name__, now)
                connection.execute("INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)", row)
    return version


def read_schema_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the file, 0 if it is empty; raise if it is not a ledger or is from a newer Proofstone."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names:
        return 0
    if not {"migrations", "chain", "meta"} <= names:
        raise LedgerError(
            f"{path}: is a database, but not a ledger", hint="name another file or another PROOFSTONE_HOME"
        )
    (number,) = connection.execute("SELECT MAX(version) FROM migrations").fetchone()
    if not isinstance(number, int):
        raise LedgerError(f"{path}: its migrations table has no version", hint="restore it from a backup")
    if number > len(MIGRATIONS):
        raise LedgerError(
            f"{path}: has schema version {number}; this Proofstone supports versions up to {len(MIGRATIONS)}",
            hint="use a newer Proofstone",
        )
    return number


def build_expected_schema(upto: int) -> set[tuple[str, str, str]]:
    """Return the type, name and SQL text of everything that a version defines."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(connection, Path(":memory:"), upto)
        return read_schema(connection)
    finally:
        connection.close()


def read_schema(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    return set(connection.execute(query))


@contextmanager
def _immediate_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
