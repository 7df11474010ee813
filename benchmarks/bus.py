"""What the bus costs on top of plain SQLite.

`python -m benchmarks.bus [--quick]`

Plain is a table without chain, ids or routes, written with the same durability; both take turns in one run.
Of a message alone the disk takes most of the time; of a hundred at once it is hashing and looking for ids.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks import Measurement, show, timed
from proofstone.agents.bus import MessageBus, OutgoingMessage
from proofstone.ledger.sqlite import SqliteLedger

PLAIN_TABLES = (
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, run_id TEXT, sender TEXT, recipient TEXT, "
    "type TEXT, payload TEXT)",
    "CREATE INDEX idx_messages_run ON messages(run_id)",
)
PLAIN_MESSAGE = (
    "INSERT INTO messages (message_id, run_id, sender, recipient, type, payload) VALUES (?, 'bench', ?, ?, ?, ?)"
)
TEXT = "x" * 500


def letters(start: int, count: int) -> list[OutgoingMessage]:
    return [
        OutgoingMessage("engine", "executor", "Repair", {"text": TEXT}, f"m{n}") for n in range(start, start + count)
    ]


def publishing(directory: Path, batches: int, size: int) -> Measurement:
    with (
        SqliteLedger(directory / f"said-{size}.db") as ledger,
        closing(_plain(directory / f"plain-said-{size}.db")) as db,
    ):
        bus = MessageBus(ledger, "bench")
        work = [letters(number * size, size) for number in range(batches)]
        times = [(timed(lambda w=w: bus.write(w)), timed(lambda w=w: _say(db, w))) for w in work]  # type: ignore[misc]
    what = "one message" if size == 1 else f"{size} messages at once"
    return _measured(f"saying {what}, against plain inserts", times, aim=3.0 if size == 1 else 12.0)


def run(quick: bool = False) -> list[Measurement]:
    with tempfile.TemporaryDirectory(prefix="proofstone-bench-") as place:
        directory = Path(place)
        return [
            publishing(directory, batches=200 if quick else 1000, size=1),
            publishing(directory, batches=30 if quick else 100, size=100),
        ]


def _measured(name: str, times: list[tuple[float, float]], aim: float) -> Measurement:
    ratio = statistics.median(mine for mine, _ in times) / statistics.median(other for _, other in times)
    return Measurement(name, ratio, "×", f"≤ {aim:g}", ratio <= aim)


def _plain(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *PLAIN_TABLES):
        connection.execute(statement)
    return connection


def _say(db: sqlite3.Connection, said: list[OutgoingMessage]) -> None:
    def insert() -> None:
        for one in said:
            row = (one.message_id, one.sender, one.recipient, one.type, json.dumps(dict(one.payload)))
            db.execute(PLAIN_MESSAGE, row)

    _transaction(db, insert)


def _transaction(db: sqlite3.Connection, insert: Callable[[], None]) -> None:
    db.execute("BEGIN IMMEDIATE")
    insert()
    db.execute("COMMIT")


if __name__ == "__main__":
    show(run)
