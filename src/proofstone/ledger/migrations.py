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
from proofstone.ledger.schema import json_field

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


def bus(connection: sqlite3.Connection) -> None:
    """Add cursors of subscribers, and indexes that find messages by run and recipient; a message id is unique
    in a run.
    """
    for statement in (*schema.data_table_statements("deliveries", _DELIVERIES), *_UNIQUE_MESSAGES, *_BUS_INDEXES):
        connection.execute(statement)


_DELIVERIES: Final = """
    subscriber TEXT NOT NULL,
    run_id TEXT,
    upto INTEGER NOT NULL CHECK(upto >= 0),"""

# A unique index alone would let `INSERT OR REPLACE` remove the first message.
_UNIQUE_MESSAGES: Final = (
    "CREATE UNIQUE INDEX idx_messages_id ON messages(run_id, message_id)",
    """CREATE TRIGGER messages_once BEFORE INSERT ON messages
WHEN EXISTS (SELECT 1 FROM messages WHERE run_id = NEW.run_id AND message_id = NEW.message_id) BEGIN
    SELECT RAISE(ABORT, 'messages: the run has a message of this id already');
END""",
)

# With `seq` as its last column, an index gives a subscriber its next messages without sorting earlier ones.
_BUS_INDEXES: Final = (
    "DROP INDEX idx_messages_run",
    "CREATE INDEX idx_messages_order ON messages(run_id, seq)",
    "CREATE INDEX idx_messages_recipient ON messages(run_id, recipient, seq)",
    "CREATE INDEX idx_deliveries_cursor ON deliveries(subscriber, run_id, seq)",
)


def authenticated(connection: sqlite3.Connection) -> None:
    """Add authentication codes to rows, digests to results of checks, and an index of runs."""
    if connection.execute("SELECT 1 FROM chain LIMIT 1").fetchone() is not None:
        raise LedgerError(
            "the ledger contains rows from before the first release, which have no authentication code",
            hint="move it away, and start a new ledger with `proofstone ledger reanchor --reason …`",
        )
    for statement in (
        *_CODE_COLUMNS,
        *_RUN_INDEX,
        *(_run_index_trigger(table) for table in RUN_TABLES),
        *_ORDER_INDEXES,
    ):
        connection.execute(statement)


# The table is empty, so the default, which no row may have, is never used.
_CODE_COLUMNS: Final = (
    "ALTER TABLE chain ADD COLUMN mac TEXT NOT NULL DEFAULT '' CHECK(LENGTH(mac) = 64)",
    "ALTER TABLE checks ADD COLUMN result_digest TEXT CHECK(LENGTH(result_digest) = 64)",
)

RUN_TABLES: Final = ("checks", "messages", "events")
"""The tables whose rows enter a run into the index."""
_RUN_INDEX: Final = (
    """CREATE TABLE run_index (
    run_id TEXT PRIMARY KEY,
    first_seq INTEGER NOT NULL UNIQUE
) WITHOUT ROWID""",
    *schema.append_only_triggers("run_index", "run_id = NEW.run_id OR first_seq = NEW.first_seq"),
)


def _run_index_trigger(table: str) -> str:
    """Return a trigger that enters a run into the index with its first row."""
    return f"""CREATE TRIGGER {table}_begins_run AFTER INSERT ON {table}
WHEN NOT EXISTS (SELECT 1 FROM run_index WHERE run_id = NEW.run_id) BEGIN
    INSERT INTO run_index (run_id, first_seq) VALUES (NEW.run_id, NEW.seq);
END"""  # noqa: S608  our own names


# With `seq` as its last column, an index gives the rows of a run or a type in order, without sorting them.
_ORDER_INDEXES: Final = (
    "DROP INDEX idx_events_run",
    "CREATE INDEX idx_events_order ON events(run_id, seq)",
    "CREATE INDEX idx_events_run_type ON events(run_id, type, seq)",
    "CREATE INDEX idx_events_type ON events(type, seq)",
    "CREATE INDEX idx_checks_order ON checks(run_id, seq)",
    "CREATE INDEX idx_telemetry_order ON pipeline_telemetry(run_id, seq)",
    "CREATE INDEX idx_approvals_order ON approvals(run_id, seq)",
    "CREATE INDEX idx_overrides_order ON overrides(run_id, seq)",
    f"CREATE INDEX idx_events_started ON events({json_field('payload', '$.command')}, seq) WHERE type = 'run.started'",
    f"CREATE INDEX idx_events_started_tree ON events({json_field('payload', '$.tree')}, seq) "
    "WHERE type = 'run.started'",
    f"CREATE INDEX idx_events_committed_tree ON events({json_field('payload', '$.event.tree')}, seq) "
    "WHERE type = 'task.committed'",
)


MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (first_schema, bus, authenticated)
"""The n-th function makes version n out of version n-1."""

CURRENT_VERSION: Final = len(MIGRATIONS)
OLDEST_VERSION: Final = 3
"""The oldest version that can be read: the first one that was released."""


def migrate(connection: sqlite3.Connection, path: Path, upto: int = CURRENT_VERSION) -> None:
    """Bring the file to a version. One of several concurrent processes does it; the others find it done."""
    while read_schema_version(connection, path) < upto:
        with _immediate_transaction(connection):
            current = read_schema_version(connection, path)  # again, now that no other process can write
            if current < upto:
                step = MIGRATIONS[current]
                step(connection)
                now = datetime.now(UTC).isoformat(timespec="seconds")
                row = (current + 1, step.__name__, now)
                connection.execute("INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)", row)


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
    if number > CURRENT_VERSION:
        raise LedgerError(
            f"{path}: has schema version {number}; this Proofstone supports versions up to {CURRENT_VERSION}",
            hint="use a newer Proofstone",
        )
    return number


def build_expected_schema(upto: int = CURRENT_VERSION) -> set[tuple[str, str, str]]:
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
