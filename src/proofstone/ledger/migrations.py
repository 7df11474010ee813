"""How a ledger file comes to be, and how it gets from one version of its schema to the next.

Each migration is a small function; it and its row in `migrations` are one transaction, so that a crash leaves the
version before or the version after. A file of a newer version is refused: we could not keep its rules.
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

_RECORD: Final = "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"


def first_schema(connection: sqlite3.Connection) -> None:
    connection.execute(_RECORD)
    for statement in schema.append_only("migrations", "version = NEW.version"):
        connection.execute(statement)
    for statement in schema.statements():
        connection.execute(statement)
    connection.execute("INSERT INTO meta (key, value) VALUES ('ledger_id', ?)", (secrets.token_hex(16),))


def bus(connection: sqlite3.Connection) -> None:
    """Cursors of subscribers, and messages that are found by run and recipient and are there once by their id."""
    for statement in (*schema.data_table("deliveries", _DELIVERIES), *_MESSAGES_BY_ID, *_BUS_INDEXES):
        connection.execute(statement)


_DELIVERIES: Final = """
    subscriber TEXT NOT NULL,
    run_id TEXT,
    upto INTEGER NOT NULL CHECK(upto >= 0),"""

# A unique index alone would let `INSERT OR REPLACE` take the first message away.
_MESSAGES_BY_ID: Final = (
    "CREATE UNIQUE INDEX idx_messages_id ON messages(run_id, message_id)",
    """CREATE TRIGGER messages_once BEFORE INSERT ON messages
WHEN EXISTS (SELECT 1 FROM messages WHERE run_id = NEW.run_id AND message_id = NEW.message_id) BEGIN
    SELECT RAISE(ABORT, 'messages: the run has a message of this id already');
END""",
)

# With `seq` at its end an index gives a subscriber its next messages without sorting those that it has had.
_BUS_INDEXES: Final = (
    "DROP INDEX idx_messages_run",
    "CREATE INDEX idx_messages_order ON messages(run_id, seq)",
    "CREATE INDEX idx_messages_recipient ON messages(run_id, recipient, seq)",
    "CREATE INDEX idx_deliveries_cursor ON deliveries(subscriber, run_id, seq)",
)


def authenticated(connection: sqlite3.Connection) -> None:
    """Rows carry authentication codes, results of checks their digest, and runs are found without reading all rows."""
    if connection.execute("SELECT 1 FROM chain LIMIT 1").fetchone() is not None:
        raise LedgerError(
            "the ledger holds rows from before the first release, which carry no authentication code",
            hint="move it away, and `proofstone ledger reanchor --reason …` begins a new one",
        )
    for statement in (*_CODES, *_RUN_INDEX, *(_begins_run(table) for table in RUN_TABLES), *_ORDER_INDEXES):
        connection.execute(statement)


# The table is empty, so the default, which no row may have, is never used.
_CODES: Final = (
    "ALTER TABLE chain ADD COLUMN mac TEXT NOT NULL DEFAULT '' CHECK(LENGTH(mac) = 64)",
    "ALTER TABLE checks ADD COLUMN result_digest TEXT CHECK(LENGTH(result_digest) = 64)",
)

RUN_TABLES: Final = ("checks", "messages", "events")
"""The tables whose rows make a run known."""
_RUN_INDEX: Final = (
    """CREATE TABLE run_index (
    run_id TEXT PRIMARY KEY,
    first_seq INTEGER NOT NULL UNIQUE
) WITHOUT ROWID""",
    *schema.append_only("run_index", "run_id = NEW.run_id OR first_seq = NEW.first_seq"),
)


def _begins_run(table: str) -> str:
    """The first row of a run enters it into the index."""
    return f"""CREATE TRIGGER {table}_begins_run AFTER INSERT ON {table}
WHEN NOT EXISTS (SELECT 1 FROM run_index WHERE run_id = NEW.run_id) BEGIN
    INSERT INTO run_index (run_id, first_seq) VALUES (NEW.run_id, NEW.seq);
END"""  # noqa: S608  our own names


# With `seq` at its end an index gives the rows of a run, or of a type, in order without sorting them.
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
"""Version n is what the n-th function makes of version n-1."""

CURRENT: Final = len(MIGRATIONS)
OLDEST: Final = 3
"""The oldest version that is read: the first that was released."""


def migrate(connection: sqlite3.Connection, path: Path, upto: int = CURRENT) -> None:
    """Bring the file to a version. Of several processes one does it, the others see it done."""
    while version(connection, path) < upto:
        with _immediate(connection):
            done = version(connection, path)  # again, now that nobody else can write
            if done < upto:
                step = MIGRATIONS[done]
                step(connection)
                now = datetime.now(UTC).isoformat(timespec="seconds")
                row = (done + 1, step.__name__, now)
                connection.execute("INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)", row)


def version(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version, 0 when it is empty; an error when it is not a ledger or is from a newer Proofstone."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names:
        return 0
    if not {"migrations", "chain", "meta"} <= names:
        raise LedgerError(
            f"{path}: is a database, but not a ledger", hint="name another file or another PROOFSTONE_HOME"
        )
    (found,) = connection.execute("SELECT MAX(version) FROM migrations").fetchone()
    if not isinstance(found, int):
        raise LedgerError(f"{path}: its migrations table has no version", hint="restore it from a copy")
    if found > CURRENT:
        raise LedgerError(
            f"{path}: is of schema version {found}, this Proofstone knows up to {CURRENT}",
            hint="use a newer Proofstone",
        )
    return found


def expected_schema(upto: int = CURRENT) -> set[tuple[str, str, str]]:
    """Type, name and text of everything that a version defines."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(connection, Path(":memory:"), upto)
        return schema_of(connection)
    finally:
        connection.close()


def schema_of(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    return set(connection.execute(query))


@contextmanager
def _immediate(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
