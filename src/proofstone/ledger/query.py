"""Read-only SQL queries over a ledger, and the runs that a ledger contains.

The file is opened read-only, `query_only` is on, and an authorizer allows nothing but reading: no ATTACH, no PRAGMA, no
extension. The number of rows, the size and the time of a query are limited. Runs are found by their events, their
checks or their messages, whatever started them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.errors import InputError
from proofstone.ledger.connection import open_for_reading, translate_sqlite_errors
from proofstone.ledger.schema import json_field

DEFAULT_LIMIT: Final = 1000
DEFAULT_SECONDS: Final = 30.0
_MAX_VALUE_BYTES: Final = 16 * 1024 * 1024
_STEPS_BETWEEN_CHECKS: Final = 10_000

_READ_ACTIONS: Final = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE))
_FORBIDDEN_FUNCTIONS: Final = frozenset(("load_extension", "fts3_tokenizer", "writefile", "readfile", "edit"))

SqlValue = str | int | float | bytes | None


@dataclass(frozen=True)
class QueryResult:
    columns: tuple[str, ...]
    rows: tuple[tuple[SqlValue, ...], ...]
    has_more: bool
    """Whether there were more rows than the limit."""


def run_query(
    path: Path,
    sql: str,
    parameters: Sequence[SqlValue] = (),
    *,
    limit: int = DEFAULT_LIMIT,
    seconds: float = DEFAULT_SECONDS,
) -> QueryResult:
    connection = open_for_reading(path)
    try:
        with translate_sqlite_errors(path):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            connection.text_factory = _decode_text
            deadline = time.monotonic() + seconds
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
            connection.set_authorizer(_authorize)
        return _run_query(connection, sql, parameters, limit, seconds)
    finally:
        connection.close()


def _run_query(
    connection: sqlite3.Connection, sql: str, parameters: Sequence[SqlValue], limit: int, seconds: float
) -> QueryResult:
    try:
        cursor = connection.execute(sql, parameters)
        if cursor.description is None:
            raise InputError("the query is empty", hint="for example: SELECT * FROM checks")
        rows = cursor.fetchmany(limit + 1)
    # ValueError: text that SQLite does not accept (NUL, lone surrogates). Warning: two statements, in Python 3.11.
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise InputError(f"the query took longer than {seconds:g} s", hint="narrow it with WHERE") from error
        raise InputError(f"the query was refused: {error}", hint="use a single SELECT that writes nothing") from error
    columns = tuple(str(column[0]) for column in cursor.description)
    return QueryResult(columns, tuple(tuple(row) for row in rows[:limit]), len(rows) > limit)


def _authorize(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second in _FORBIDDEN_FUNCTIONS else sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in _READ_ACTIONS else sqlite3.SQLITE_DENY


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


MAX_RUNS: Final = 1_000_000
_MAX_SUGGESTIONS: Final = 5

_STARTED_QUERY: Final = f"""
SELECT run_id, {json_field("payload", "$.command")}, {json_field("payload", "$.repository")},
       {json_field("payload", "$.parent")}
FROM events
WHERE type = 'run.started' AND INSTR(?1, ',' || {json_field("payload", "$.command")} || ',') > 0
  AND (?2 = 0 OR COALESCE({json_field("payload", "$.parent")}, '') = '')
  AND (?3 IS NULL OR {json_field("payload", "$.repository")} = ?3)
  AND (?4 = '' OR SUBSTR(run_id, 1, LENGTH(?4)) = ?4 OR SUBSTR(run_id, -LENGTH(?4)) = ?4)
ORDER BY seq DESC LIMIT ?5
"""  # noqa: S608  our own names
_LAST_QUERY: Final = "SELECT run_id FROM run_index ORDER BY first_seq DESC LIMIT 1"
_LAST_HERE_QUERY: Final = f"""
SELECT run_id FROM events WHERE type = 'run.started' AND {json_field("payload", "$.repository")} = ?
ORDER BY seq DESC LIMIT 1
"""  # noqa: S608  our own names
_EXACT_QUERY: Final = "SELECT run_id FROM run_index WHERE run_id = ?"
_PARTIAL_QUERY: Final = """
SELECT run_id FROM run_index
WHERE SUBSTR(run_id, 1, LENGTH(?1)) = ?1 OR SUBSTR(run_id, -LENGTH(?1)) = ?1 ORDER BY first_seq DESC LIMIT ?2
"""


@dataclass(frozen=True)
class RunReference:
    run_id: str
    command: str
    """The command that started the run."""
    repository: str | None
    """None if the run does not record its repository."""
    parent: str = ""
    """The id of the parent run."""


def list_run_ids(path: Path) -> tuple[str, ...]:
    """Return the ids of all runs, newest first."""
    rows = run_query(path, "SELECT run_id FROM run_index ORDER BY first_seq DESC", limit=MAX_RUNS).rows
    return tuple(str(run_id) for (run_id,) in rows)


def list_started_runs(
    path: Path,
    commands: Collection[str],
    *,
    whole: bool = False,
    repository: str | None = None,
    matching: str = "",
    limit: int = MAX_RUNS,
) -> tuple[RunReference, ...]:
    """Return the runs of these commands, newest first, at most `limit`. `whole` leaves out parts of other runs,
    `repository` the runs elsewhere, and `matching` those whose id neither begins nor ends with this text.
    """
    values = (f",{','.join(sorted(commands))},", int(whole), repository, matching, min(limit, MAX_RUNS))
    return tuple(
        RunReference(str(run_id), str(command), None if repository is None else str(repository), str(parent or ""))
        for run_id, command, repository, parent in run_query(path, _STARTED_QUERY, values, limit=MAX_RUNS).rows
    )


def find_any_run(path: Path, text: str, here: Path | None) -> str:
    """Return the id of the run that `text` names: the whole id, its beginning or end if that is unique, or `last`.
    `last` is the last run of the repository `here`, or of all repositories if `here` is None.
    """
    last = run_query(path, _LAST_QUERY).rows
    if not last:
        raise InputError(
            f"{path}: there is no run yet",
            hint="every command that checks or changes something starts one, for instance `proofstone check`",
        )
    if text == "last":
        own = last if here is None else run_query(path, _LAST_HERE_QUERY, (str(here),)).rows
        if not own:
            raise InputError(f"{here}: there is no run here", hint=f"the last one elsewhere is {last[0][0]!s}")
        return str(own[0][0])
    rows = (
        run_query(path, _EXACT_QUERY, (text,)).rows
        or run_query(path, _PARTIAL_QUERY, (text, _MAX_SUGGESTIONS + 1)).rows
    )
    return _demand_single(text, [str(run_id) for (run_id,) in rows], "list the runs with `proofstone ledger show`")


def resolve_run(text: str, runs: Sequence[RunReference], here: Path | None, what: str, otherwise: str) -> str:
    """Return the run that `text` names. `runs` are newest first, `what` says what they are, and `otherwise` is the hint
    if none matches.
    """
    if text == "last":
        own = [run.run_id for run in runs if here is None or run.repository == str(here)]
        if not own:
            raise InputError(f"{here}: there is no {what} here", hint=f"the last one elsewhere is {runs[0].run_id}")
        return own[0]
    return _demand_single(text, match_ids(text, [run.run_id for run in runs]), otherwise)


def _demand_single(text: str, matches: Sequence[str], hint_if_none: str) -> str:
    if len(matches) == 1:
        return matches[0]
    hint = f"it could be: {', '.join(matches[:_MAX_SUGGESTIONS])}" if matches else hint_if_none
    raise InputError(f"{text}: names {'several runs' if matches else 'no run'}", hint=hint)


def match_ids(text: str, ids: Iterable[str]) -> list[str]:
    """Return the ids that equal the text, or else those that begin or end with it."""
    ids = list(ids)
    return [id for id in ids if id == text] or [id for id in ids if id.startswith(text) or id.endswith(text)]
