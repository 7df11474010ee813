"""Locate the ledger of a state directory and open its SQLite file.

SQLite's errors are translated into Proofstone's, with the path and a hint.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pydantic import Field, ValidationError

from proofstone.common.models import FrozenModel
from proofstone.errors import LedgerBusyError, LedgerCorruptError, LedgerError
from proofstone.ledger.migrations import read_schema_version
from proofstone.sandbox.mounts import parse_mounts, read_mount_table

NETWORK_FILE_SYSTEMS: Final = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "orangefs",
        "beegfs",
        "davfs",
    )
) | {f"fuse.{name}" for name in ("sshfs", "glusterfs", "ceph", "s3fs", "rclone", "davfs2")}
"""A write-ahead log shares memory between its readers and writers, which does not work across machines."""


_SQLITE_PATH_BYTES: Final = 504
"""The longest path that SQLite opens, with links resolved: 512 minus the suffixes of the files beside the database."""


class DaemonLocation(FrozenModel):
    """The location of a ledger that a daemon of another account keeps."""

    database: str
    socket: str
    account_uid: int = Field(ge=0)
    """The user id of the account that must be serving the socket."""


def ledger_path(home: Path) -> Path:
    """Return the path of the database, in the state directory or where the daemon keeps it."""
    location = read_daemon_location(home)
    return local_ledger_path(home) if location is None else Path(location.database)


def external_folders(home: Path) -> tuple[Path, ...]:
    """Return the folders of the ledger outside of the state directory. No sandbox may see them either."""
    location = read_daemon_location(home)
    return () if location is None else (Path(location.database).parent, Path(location.socket).parent)


def local_ledger_path(home: Path) -> Path:
    """Return the path of the database in the state directory. For a path that is too long, SQLite would only report
    that the file cannot be opened.
    """
    path = home / "ledger" / "ledger.db"
    size = len(os.fsencode(os.path.realpath(path)))
    if size > _SQLITE_PATH_BYTES:
        raise LedgerError(
            f"{os.fspath(home)[:60]}…: the path is too long for a state directory: the path of its ledger would have "
            f"{size} bytes, but SQLite opens at most {_SQLITE_PATH_BYTES}",
            hint="set PROOFSTONE_HOME to a directory with a shorter path",
        )
    return path


def location_path(home: Path) -> Path:
    return home / "ledger" / "location.json"


def read_daemon_location(home: Path) -> DaemonLocation | None:
    """Return the location of the daemon's ledger; None if the ledger is in the state directory."""
    path = location_path(home)
    try:
        return DaemonLocation.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}", hint="make it readable for you") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise LedgerError(
            f"{path}: does not say where the ledger is ({where}: {first['msg']})",
            hint="restore it from a backup, or run `proofstone ledger init --daemon` again",
        ) from error


def artifacts_path(home: Path) -> Path:
    return home / "artifacts"


def prepare_directory(directory: Path) -> None:
    """Create the ledger's directory for its owner only; refuse one that others may write to."""
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        mode = directory.stat().st_mode
    except OSError as error:
        raise LedgerError(f"{directory}: cannot be created ({error.strerror})", hint="set PROOFSTONE_HOME") from error
    if mode & 0o022:
        raise LedgerError(
            f"{directory}: others may write to it (mode {mode & 0o777:04o})", hint=f"chmod 700 {directory}"
        )


def refuse_network_file_system(directory: Path) -> None:
    table = read_mount_table()
    if table is None:
        return  # the mounts are unknown; SQLite's own locking errors remain
    kind = find_file_system(table, directory.resolve())
    if kind in NETWORK_FILE_SYSTEMS:
        raise LedgerError(
            f"{directory}: is on a network file system ({kind}), where a ledger can be damaged",
            hint="set PROOFSTONE_HOME to a directory on a local disk",
        )


def find_file_system(mountinfo: str, path: Path) -> str | None:
    """Return the type of the file system that holds `path`."""
    best, kind = -1, None
    for mount, type in parse_mounts(mountinfo):
        if path.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), type
    return kind


BUSY_MS: Final = 5000
"""How long a writer waits for another one, in milliseconds."""

_BUSY_CODES: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_CANNOT_OPEN_CODES: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_RETRY_SECONDS: Final = 0.01
_creation_lock: Final = threading.Lock()
"""Held while the file is created: it must be closed before another thread of this process lets SQLite open it."""


def open_for_writing(path: Path, *, create: bool, busy_ms: int, file_mode: int = 0o600) -> sqlite3.Connection:
    if create:
        prepare_directory(path.parent)
    require_directory(path)
    refuse_network_file_system(path.parent)
    _create_private(path, create=create, file_mode=file_mode)
    with translate_sqlite_errors(path):
        connection = _connect(path, "mode=rw", busy_ms)
        try:
            if _may_be_foreign(connection, path):
                read_schema_version(connection, path)  # before writing: the file may not be a ledger
            execute_with_retry(connection, "PRAGMA journal_mode = WAL", busy_ms)
            connection.execute("PRAGMA synchronous = FULL")
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        except BaseException:
            connection.close()
            raise
    if mode != "wal":
        connection.close()
        raise LedgerError(f"{path}: SQLite cannot keep a write-ahead log here (journal mode is {mode})")
    return connection


def open_for_reading(path: Path, *, busy_ms: int = BUSY_MS) -> sqlite3.Connection:
    require_directory(path)
    if not path.exists():
        raise LedgerError(f"{path}: there is no ledger", hint="name another directory with --home or PROOFSTONE_HOME")
    with translate_sqlite_errors(path):
        try:
            return _open_reader(path, "mode=ro", busy_ms)
        except sqlite3.OperationalError as error:
            if _primary_code(error) not in _CANNOT_OPEN_CODES or os.access(path.parent, os.W_OK, effective_ids=True):
                raise
        return _open_read_only_reader(path, busy_ms)


def _open_reader(path: Path, options: str, busy_ms: int, *before: str) -> sqlite3.Connection:
    connection = _connect(path, options, busy_ms)
    try:
        for statement in (*before, "PRAGMA query_only = ON"):
            connection.execute(statement)
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # touches the file
    except BaseException:
        connection.close()
        raise
    return connection


def _open_read_only_reader(path: Path, busy_ms: int) -> sqlite3.Connection:
    """Open a reader in a directory that is not writable, where the shared memory of the write-ahead log cannot be
    created and nobody else can be writing. If a log was left behind, its rows count: SQLite reads it with an index in
    its own memory.
    """
    log = path.with_name(f"{path.name}-wal")
    if not log.is_file() or log.stat().st_size == 0:
        return _open_reader(path, "mode=ro&immutable=1", busy_ms)
    return _open_reader(path, "mode=ro&vfs=unix-none", busy_ms, "PRAGMA locking_mode = EXCLUSIVE")


def require_directory(path: Path) -> None:
    if not path.parent.is_dir():
        raise LedgerError(
            f"{path}: there is no ledger, {path.parent} is not a directory",
            hint="name another directory with --home or PROOFSTONE_HOME",
        )


@contextmanager
def translate_sqlite_errors(path: Path) -> Iterator[None]:
    """Translate SQLite's errors into Proofstone's, with the path and a hint."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate_error(path, error) from error
    except UnicodeDecodeError as error:  # SQLite's message quotes bytes of a damaged file
        raise LedgerCorruptError(f"{path}: is damaged ({error})", hint="restore it from a backup") from error


def execute_with_retry(connection: sqlite3.Connection, statement: str, busy_ms: int) -> None:
    """Run a statement that may find the file locked.

    SQLite waits by itself, except where waiting could be a deadlock (while a log is recovered or switched on): there it
    returns at once, and this function tries again until the time is up.
    """
    deadline = time.monotonic() + busy_ms / 1000
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if _primary_code(error) not in _BUSY_CODES or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def _connect(path: Path, options: str, busy_ms: int) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path))}?{options}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=busy_ms / 1000, check_same_thread=False)


def _create_private(path: Path, *, create: bool, file_mode: int) -> None:
    """Create the file with its mode before SQLite opens it; the log inherits the mode.

    An existing file is not opened here: closing it would release every lock that this process holds on it, including
    those of SQLite, and the next process to leave the ledger would remove our log as abandoned.
    """
    with _creation_lock:
        if path.is_dir():
            raise LedgerError(f"{path}: is a directory, not a ledger", hint="name another PROOFSTONE_HOME")
        try:
            if create and not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode))
            owner = path.stat().st_uid
        except FileNotFoundError:
            hint = "name another directory with --home or PROOFSTONE_HOME"
            raise LedgerError(f"{path}: there is no ledger", hint=hint) from None
        except OSError as error:
            raise _unwritable_error(path, error.strerror or "") from error
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
        raise _unwritable_error(path, os.strerror(errno.EACCES))
    if owner == os.geteuid():
        path.chmod(file_mode)


def _unwritable_error(path: Path, reason: str) -> LedgerError:
    return LedgerError(f"{path}: cannot be opened for writing ({reason})", hint="make it writable for you")


def _may_be_foreign(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the file has content but no write-ahead log, which a ledger has from its first byte on. SQLite is
    asked, because opening and closing the file here would release the locks of this process.
    """
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    return mode != "wal" and path.stat().st_size > 0


def _translate_error(path: Path, error: sqlite3.Error) -> LedgerError:
    code = _primary_code(error)
    if code in _BUSY_CODES:
        return LedgerBusyError(f"{path}: another process is writing and did not finish in time", hint="try again")
    if code == sqlite3.SQLITE_NOTADB:
        return LedgerError(f"{path}: is not a database", hint="name another file, or restore it from a backup")
    if code == sqlite3.SQLITE_CORRUPT:
        return LedgerCorruptError(f"{path}: is damaged ({error})", hint="restore it from a backup")
    if code == sqlite3.SQLITE_FULL:
        return LedgerError(f"{path}: the disk is full; nothing was recorded", hint="make room and run again")
    if code == sqlite3.SQLITE_IOERR:  # a failing disk, or a limit on files that has been reached
        hint = "check the disk and its limits; continue a stopped run with `proofstone resume`"
        return LedgerError(f"{path}: could not be read or written ({error})", hint=hint)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return LedgerError(f"{path}: cannot be opened or written ({error})", hint="make it writable for you")
    return LedgerError(f"{path}: {error}")


def _primary_code(error: sqlite3.Error) -> int | None:
    """Return the primary result code; None for errors that Python's module raises on its own."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF
