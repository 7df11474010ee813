"""The SQLite schema of version 1, and the mapping between contracts and tables.

From the first release on, the text of version 1 does not change, and later versions are migrations. Triggers keep the
tables append-only. `INSERT OR REPLACE` deletes without firing delete triggers, so the insert triggers refuse every key
that already exists. A data row must agree with the chain entry that was written just before it.

Text is stored as UTF-8 without NUL, which not every database can hold: each lone surrogate and each NUL becomes U+FFFD.
Inside JSON columns they stay exact, as escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, TypeVar

from proofstone.common.models import FrozenModel
from proofstone.errors import InternalError, LedgerCorruptError, LedgerError
from proofstone.ledger.models import (
    ApprovalRow,
    ArtifactRow,
    CheckRow,
    EventRow,
    MessageRow,
    OverrideRow,
    TelemetryRow,
)
from proofstone.ledger.rules.chain import ChainLink, RowPayload, Scalar, canonical_json

_ID_COLUMN: Final = "id INTEGER PRIMARY KEY AUTOINCREMENT CHECK(id > 0),"

_CHAIN_COLUMNS: Final = """
    ts TEXT NOT NULL,
    seq INTEGER NOT NULL UNIQUE,
    prev_hash TEXT NOT NULL,
    payload_hash TEXT NOT NULL,
    hash TEXT NOT NULL"""

CHAIN_TABLE: Final = """CREATE TABLE chain (
    seq INTEGER PRIMARY KEY,
    tbl TEXT NOT NULL,
    payload_hash TEXT NOT NULL CHECK(LENGTH(payload_hash) = 64),
    prev_hash TEXT NOT NULL CHECK(LENGTH(prev_hash) = 64),
    hash TEXT NOT NULL UNIQUE CHECK(LENGTH(hash) = 64),
    mac TEXT NOT NULL CHECK(LENGTH(mac) = 64)
)"""

META_TABLE: Final = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"

DATA_TABLES: Final = {
    "checks": """
    run_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    phase TEXT NOT NULL CHECK(phase IN ('baseline', 'after', 'review')),
    check_name TEXT NOT NULL,
    tool TEXT NOT NULL,
    command TEXT,
    exit_code INTEGER,
    output_snippet TEXT CHECK(LENGTH(output_snippet) <= 500),
    passed INTEGER NOT NULL CHECK(passed IN (0, 1)),
    verdict TEXT CHECK(verdict IN ('approve', 'needs_revision', 'blocker')),
    severity TEXT CHECK(severity IN ('blocker', 'critical', 'major', 'minor')),
    round INTEGER NOT NULL DEFAULT 1,
    attempt INTEGER NOT NULL DEFAULT 1,
    tree TEXT,
    tier INTEGER,
    state TEXT NOT NULL CHECK(state IN ('pass', 'fail', 'unverifiable') AND passed = (state = 'pass')),
    assurance TEXT,
    duration_ms INTEGER,
    artifact TEXT,
    reused_from INTEGER,
    result_digest TEXT CHECK(LENGTH(result_digest) = 64),""",
    "pipeline_telemetry": """
    run_id TEXT NOT NULL,
    step TEXT NOT NULL,
    agent TEXT NOT NULL,
    instance TEXT,
    started_at TEXT NOT NULL,
    completed_at TEXT,
    status TEXT CHECK(status IN ('DONE', 'NEEDS_REVISION', 'ERROR', 'running')),
    dispatch_count INTEGER DEFAULT 1,
    retry_count INTEGER DEFAULT 0,
    notes TEXT,""",
    "messages": """
    message_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,""",
    "approvals": """
    run_id TEXT NOT NULL,
    task_id TEXT,
    gate TEXT NOT NULL,
    option TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    payload TEXT NOT NULL,""",
    "overrides": """
    run_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    action TEXT NOT NULL,
    category TEXT,
    reason TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    payload TEXT NOT NULL,""",
    "events": """
    run_id TEXT NOT NULL,
    task_id TEXT,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,""",
    "artifacts": """
    artifact TEXT NOT NULL CHECK(LENGTH(artifact) = 64),
    size INTEGER NOT NULL CHECK(size >= 0),
    media_type TEXT NOT NULL,
    truncated INTEGER NOT NULL CHECK(truncated IN (0, 1)),""",
}

RUN_TABLES: Final = ("checks", "messages", "events")
"""The tables whose rows enter a run into the index of runs."""
RUN_INDEX_TABLE: Final = """CREATE TABLE run_index (
    run_id TEXT PRIMARY KEY,
    first_seq INTEGER NOT NULL UNIQUE
) WITHOUT ROWID"""


def json_field(column: str, path: str) -> str:
    """Return SQL for a value of a JSON column, NULL where the text is not valid JSON. Indexes and queries must use the
    same expression.
    """
    return f"CASE WHEN json_valid({column}) THEN json_extract({column}, '{path}') END"


# With `seq` as its last column, an index gives the rows of a run or a type in order, without sorting them.
INDEXES: Final = (
    "CREATE INDEX idx_checks_task_phase ON checks(task_id, phase)",
    "CREATE INDEX idx_checks_run_round ON checks(run_id, round)",
    "CREATE INDEX idx_checks_gate ON checks(run_id, task_id, phase, passed)",
    "CREATE INDEX idx_checks_order ON checks(run_id, seq)",
    "CREATE INDEX idx_telemetry_step ON pipeline_telemetry(step)",
    "CREATE INDEX idx_telemetry_order ON pipeline_telemetry(run_id, seq)",
    "CREATE UNIQUE INDEX idx_messages_id ON messages(run_id, message_id)",
    "CREATE INDEX idx_messages_order ON messages(run_id, seq)",
    "CREATE INDEX idx_approvals_order ON approvals(run_id, seq)",
    "CREATE INDEX idx_overrides_order ON overrides(run_id, seq)",
    "CREATE INDEX idx_events_order ON events(run_id, seq)",
    "CREATE INDEX idx_events_run_type ON events(run_id, type, seq)",
    "CREATE INDEX idx_events_type ON events(type, seq)",
    f"CREATE INDEX idx_events_started ON events({json_field('payload', '$.command')}, seq) WHERE type = 'run.started'",
    f"CREATE INDEX idx_events_started_tree ON events({json_field('payload', '$.tree')}, seq) "
    "WHERE type = 'run.started'",
    f"CREATE INDEX idx_events_committed_tree ON events({json_field('payload', '$.event.tree')}, seq) "
    "WHERE type = 'task.committed'",
)

_CHECK_COLUMNS: Final = (
    "task_id, phase, check_name, tool, command, exit_code, output_snippet, passed, verdict, severity, round, attempt, "
    "tree, tier, state, assurance, duration_ms, artifact, reused_from, result_digest, ts, seq"
)

VIEWS: Final = (
    f"CREATE VIEW run_parts AS SELECT DISTINCT run_id, {json_field('payload', '$.run_id')} AS part "  # noqa: S608
    "FROM events WHERE type = 'run.child'",
    # The name of this table in the evidence protocol, for queries that were written against it: they name one run, and
    # expect the checks of its tasks. So the rows of its parts also stand under its id, with the part in `part`.
    f"CREATE VIEW anvil_checks AS SELECT id, run_id, {_CHECK_COLUMNS}, run_id AS part FROM checks "  # noqa: S608
    f"UNION ALL SELECT id, run_parts.run_id, {_CHECK_COLUMNS}, part FROM checks "
    "JOIN run_parts ON run_parts.part = checks.run_id",
    """CREATE VIEW runs AS
SELECT span.run_id, first.ts AS started_at, last.ts AS updated_at, SUBSTR(state.type, 5) AS state,
       json_extract(state.payload, '$.outcome') AS outcome, span.first AS first_seq, span.last AS last_seq
FROM (SELECT run_id, MIN(seq) AS first, MAX(seq) AS last, MAX(CASE WHEN type LIKE 'run.%' THEN seq END) AS state
      FROM events GROUP BY run_id) AS span
JOIN events AS first ON first.seq = span.first
JOIN events AS last ON last.seq = span.last
LEFT JOIN events AS state ON state.seq = span.state""",
    """CREATE VIEW tasks AS
SELECT span.run_id, span.task_id, first.ts AS started_at, last.ts AS updated_at, SUBSTR(state.type, 6) AS state,
       json_extract(state.payload, '$.outcome') AS outcome, span.first AS first_seq, span.last AS last_seq
FROM (SELECT run_id, task_id, MIN(seq) AS first, MAX(seq) AS last,
             MAX(CASE WHEN type LIKE 'task.%' THEN seq END) AS state
      FROM events WHERE task_id IS NOT NULL GROUP BY run_id, task_id) AS span
JOIN events AS first ON first.seq = span.first
JOIN events AS last ON last.seq = span.last
LEFT JOIN events AS state ON state.seq = span.state""",
)


def schema_statements() -> Iterator[str]:
    """Yield all statements of version 1 except the `migrations` table, in order."""
    yield META_TABLE
    yield from append_only_triggers("meta", "key = NEW.key")
    yield CHAIN_TABLE
    yield from append_only_triggers("chain", "seq = NEW.seq OR hash = NEW.hash")
    yield _CHAIN_ORDER_TRIGGER
    for table, columns in DATA_TABLES.items():
        yield from data_table_statements(table, columns)
    yield RUN_INDEX_TABLE
    yield from append_only_triggers("run_index", "run_id = NEW.run_id OR first_seq = NEW.first_seq")
    yield from map(_run_index_trigger, RUN_TABLES)
    yield _MESSAGE_ID_TRIGGER
    yield from INDEXES
    yield from VIEWS


def data_table_statements(table: str, columns: str) -> Iterator[str]:
    """Yield the statements of a table whose rows are chained."""
    yield f"CREATE TABLE {table} (\n    {_ID_COLUMN}{columns}{_CHAIN_COLUMNS}\n)"
    yield from append_only_triggers(table, "id = NEW.id OR seq = NEW.seq")
    yield _chain_trigger(table)


def append_only_triggers(table: str, same_key: str) -> Iterator[str]:
    """Yield triggers that refuse to change, remove or replace a row of `table`."""
    for verb, word in (("UPDATE", "changed"), ("DELETE", "removed")):
        yield (
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} BEGIN\n"
            f"    SELECT RAISE(ABORT, '{table} is append-only: a row cannot be {word}');\nEND"
        )
    yield f"""CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {same_key}) BEGIN
    SELECT RAISE(ABORT, '{table} is append-only: a row cannot be replaced');
END"""  # noqa: S608  our own names


_CHAIN_ORDER_TRIGGER: Final = """CREATE TRIGGER chain_follows BEFORE INSERT ON chain
WHEN NEW.seq <> COALESCE((SELECT MAX(seq) FROM chain), 0) + 1
  OR NEW.prev_hash <> COALESCE((SELECT hash FROM chain ORDER BY seq DESC LIMIT 1), NEW.prev_hash) BEGIN
    SELECT RAISE(ABORT, 'chain: an entry must follow the last one');
END"""


def _chain_trigger(table: str) -> str:
    return f"""CREATE TRIGGER {table}_chained BEFORE INSERT ON {table}
WHEN NOT EXISTS (SELECT 1 FROM chain WHERE seq = NEW.seq AND tbl = '{table}' AND hash = NEW.hash
                 AND prev_hash = NEW.prev_hash AND payload_hash = NEW.payload_hash) BEGIN
    SELECT RAISE(ABORT, '{table}: a row must have its place in the chain');
END"""  # noqa: S608  our own names


def _run_index_trigger(table: str) -> str:
    """Return a trigger that enters a run into the index with its first row."""
    return f"""CREATE TRIGGER {table}_begins_run AFTER INSERT ON {table}
WHEN NOT EXISTS (SELECT 1 FROM run_index WHERE run_id = NEW.run_id) BEGIN
    INSERT INTO run_index (run_id, first_seq) VALUES (NEW.run_id, NEW.seq);
END"""  # noqa: S608  our own names


# A unique index alone would let `INSERT OR REPLACE` remove the first message.
_MESSAGE_ID_TRIGGER: Final = """CREATE TRIGGER messages_once BEFORE INSERT ON messages
WHEN EXISTS (SELECT 1 FROM messages WHERE run_id = NEW.run_id AND message_id = NEW.message_id) BEGIN
    SELECT RAISE(ABORT, 'messages: the run has a message of this id already');
END"""


LedgerRow = CheckRow | TelemetryRow | MessageRow | ApprovalRow | OverrideRow | EventRow | ArtifactRow
RowT = TypeVar("RowT", bound=FrozenModel)

JSON_COLUMN: Final = "payload"
_UNSTORABLE_CHARS: Final = re.compile("[\x00\ud800-\udfff]")
_INTEGER_RANGE: Final = range(-(2**63), 2**63)


@dataclass(frozen=True)
class TableSpec:
    """A data table: the columns of its contract, `ts`, and for checks the derived column `passed`."""

    name: str
    model: type[FrozenModel]
    derived: tuple[str, ...] = ()
    since: int = 1
    """The schema version that introduced the table."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the payload hash covers, in the order of the contract."""
        return (*self.model.model_fields, *self.derived, "ts")

    def encode(self, row: FrozenModel) -> dict[str, Scalar]:
        """Return the row as columns, without `ts`."""
        return {name: _to_scalar(self.name, name, getattr(row, name)) for name in self.columns[:-1]}


@dataclass(frozen=True)
class StoredRow(Generic[RowT]):
    """A row that the ledger holds."""

    kind: type[RowT]
    link: ChainLink
    values: RowPayload

    @property
    def seq(self) -> int:
        return self.link.seq

    @property
    def ts(self) -> str:
        """The time at which the ledger wrote the row, for display; the order is given by `seq`."""
        return str(self.values["ts"])

    @property
    def row(self) -> RowT:
        """The row as its contract. Raises LedgerCorruptError if the row was damaged since."""
        fields = {name: self.values[name] for name in self.kind.model_fields if name != JSON_COLUMN}
        try:
            if JSON_COLUMN in self.kind.model_fields:
                return self.kind.model_validate({**fields, JSON_COLUMN: _parse_json(self.values[JSON_COLUMN])})
            return self.kind.model_validate(fields)
        except (ValueError, RecursionError) as error:  # not JSON, or not valid for the contract
            reason = str(error).partition("\n")[0]
            raise LedgerCorruptError(
                f"entry {self.seq} of the ledger is not a valid row of {table_of(self.kind).name}: {reason}",
                seq=self.seq,
                hint="find all damage with `proofstone ledger verify`",
            ) from error


TABLES: Final[Mapping[type[FrozenModel], TableSpec]] = {
    table.model: table
    for table in (
        TableSpec("checks", CheckRow, derived=("passed",)),
        TableSpec("pipeline_telemetry", TelemetryRow),
        TableSpec("messages", MessageRow),
        TableSpec("approvals", ApprovalRow),
        TableSpec("overrides", OverrideRow),
        TableSpec("events", EventRow),
        TableSpec("artifacts", ArtifactRow),
    )
}


def table_of(kind: type[FrozenModel]) -> TableSpec:
    try:
        return TABLES[kind]
    except KeyError:
        known = ", ".join(model.__name__ for model in TABLES)
        raise InternalError(f"the ledger has no table for {kind.__name__}; it has one for: {known}") from None


def make_storable(text: str) -> str:
    return text if text.isascii() and "\x00" not in text else _UNSTORABLE_CHARS.sub("\ufffd", text)


def _parse_json(text: Scalar) -> object:
    return json.loads(str(text))


def _to_scalar(table: str, column: str, value: object) -> Scalar:
    if value is None:
        return None
    if isinstance(value, str):
        return make_storable(str(value))
    if isinstance(value, int):
        if value not in _INTEGER_RANGE:
            raise LedgerError(f"{table}.{column}: {value} does not fit into 64 bits")
        return int(value)
    if isinstance(value, Mapping):
        return canonical_json(dict(value))
    raise InternalError(f"{table}.{column}: {type(value).__name__} is not something a column can hold")
