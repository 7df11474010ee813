"""Questions in SQL, by people and programs that must not be able to change the answer.

The file is opened read-only, `query_only` is on, and an authorizer lets nothing through but reading: no ATTACH, no
PRAGMA, no extension. An answer has a bounded number of rows, size and time.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.adapters.ledger.connection import explained, open_for_reading
from proofstone.errors import InputError

DEFAULT_LIMIT: Final = 1000
DEFAULT_SECONDS: Final = 30.0
_MAX_VALUE_BYTES: Final = 16 * 1024 * 1024
_STEPS_BETWEEN_LOOKS: Final = 10_000

_READING: Final = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE))
_FORBIDDEN_FUNCTIONS: Final = frozenset(("load_extension", "fts3_tokenizer", "writefile", "readfile", "edit"))

Value = str | int | float | bytes | None


@dataclass(frozen=True)
class Answer:
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    more: bool
    """There were more rows than the limit."""


def query(
    path: Path,
    sql: str,
    parameters: Sequence[Value] = (),
    *,
    limit: int = DEFAULT_LIMIT,
    seconds: float = DEFAULT_SECONDS,
) -> Answer:
    connection = open_for_reading(path)
    try:
        with explained(path):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            connection.text_factory = _text
            deadline = time.monotonic() + seconds
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
            connection.set_authorizer(_authorize)
        return _answer(connection, sql, parameters, limit, seconds)
    finally:
        connection.close()


def _answer(
    connection: sqlite3.Connection, sql: str, parameters: Sequence[Value], limit: int, seconds: float
) -> Answer:
    try:
        cursor = connection.execute(sql, parameters)
        if cursor.description is None:
            raise InputError("the query is empty", hint="for example: SELECT * FROM checks")
        rows = cursor.fetchmany(limit + 1)
    # ValueError: text that SQLite cannot take (NUL, lone surrogates). Warning: two statements, in Python 3.11.
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise InputError(f"the query took longer than {seconds:g} s", hint="narrow it with WHERE") from error
        raise InputError(f"the query was refused: {error}", hint="one SELECT, nothing that writes") from error
    columns = tuple(str(column[0]) for column in cursor.description)
    return Answer(columns, tuple(tuple(row) for row in rows[:limit]), len(rows) > limit)


def _authorize(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second in _FORBIDDEN_FUNCTIONS else sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
