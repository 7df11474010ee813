"""Where the ledger lives, and whether that place can hold one.

Opening the ledger's SQLite file, and saying in our words what SQLite says in its own.
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

from proofstone.common.models import Contract
from proofstone.errors import LedgerBusyError, LedgerCorruptError, LedgerError
from proofstone.ledger.migrations import version
from proofstone.sandbox.mounts import mount_table, mounts

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
"""A write-ahead log shares memory between its readers and writers, which two machines cannot."""


_SQLITE_PATH_BYTES: Final = 504
"""What SQLite takes, links resolved: 512 with the names of the files that it keeps beside the database."""


class DaemonLocation(Contract):
    """Where a ledger is that a daemon of another account keeps."""

    database: str
    socket: str
    account_uid: int = Field(ge=0)
    """The user id of the account that must be serving the socket."""


def ledger_path(home: Path) -> Path:
    """The database: in the state directory, or where the daemon keeps it."""
    location = daemon_location(home)
    return own_ledger_path(home) if location is None else Path(location.database)


def folders_elsewhere(home: Path) -> tuple[Path, ...]:
    """Where parts of the ledger lie outside of the state directory: no sandbox may see them either."""
    location = daemon_location(home)
    return () if location is None else (Path(location.database).parent, Path(location.socket).parent)


def own_ledger_path(home: Path) -> Path:
    """The database in the state directory. SQLite says of a path that is too long for it only that the file cannot be
    opened."""
    path = home / "ledger" / "ledger.db"
    size = len(os.fsencode(os.path.realpath(path)))
    if size > _SQLITE_PATH_BYTES:
        raise LedgerError(
            f"{os.fspath(home)[:60]}…: too long for a state directory: the path of its ledger would have {size} "
            f"bytes, and SQLite opens at most {_SQLITE_PATH_BYTES}",
            hint="set PROOFSTONE_HOME to a directory with a shorter path",
        )
    return path


def location_path(home: Path) -> Path:
    return home / "ledger" / "location.json"


def daemon_location(home: Path) -> DaemonLocation | None:
    """None: the ledger is in the state directory itself."""
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
            hint="restore it from a copy, or run `proofstone ledger init --daemon` again",
        ) from error


def artifacts_path(home: Path) -> Path:
    return home / "artifacts"


def prepare_directory(directory: Path) -> None:
    """Make the ledger's directory, for its owner only; refuse one that others may write to."""
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        mode = directory.stat().st_mode
    except OSError as error:
        raise LedgerError(f"{directory}: cannot be made ({error.strerror})", hint="set PROOFSTONE_HOME") from error
    if mode & 0o022:
        raise LedgerError(
            f"{directory}: others may write to it (mode {mode & 0o777:04o})", hint=f"chmod 700 {directory}"
        )


def refuse_network_file_system(directory: Path) -> None:
    table = mount_table()
    if table is None:
        return  # the system does not say what is mounted; SQLite's own locking errors remain
    kind = file_system(table, directory.resolve())
    if kind in NETWORK_FILE_SYSTEMS:
        raise LedgerError(
            f"{directory}: is on a network file system ({kind}), where a ledger can be damaged",
            hint="set PROOFSTONE_HOME to a directory on a local disk",
        )


def file_system(mountinfo: str, path: Path) -> str | None:
    """The type of the file system that `path` is on."""
    best, kind = -1, None
    for mount, type in mounts(mountinfo):
        if path.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), type
    return kind


BUSY_MS: Final = 5000
"""How long a writer waits for another one."""

_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNOPENED: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_PAUSE_S: Final = 0.01
_making: Final = threading.Lock()
"""Whoever makes the file closes it before another thread of this process has SQLite open it."""


def open_for_writing(path: Path, *, create: bool, busy_ms: int, file_mode: int = 0o600) -> sqlite3.Connection:
    if create:
        prepare_directory(path.parent)
    demand_directory(path)
    refuse_network_file_system(path.parent)
    _make_private(path, create=create, file_mode=file_mode)
    with explained(path):
        connection = _connect(path, "mode=rw", busy_ms)
        try:
            if _is_not_ours_yet(connection, path):
                version(connection, path)  # before anything is written: it may be somebody else's
            eventually(connection, "PRAGMA journal_mode = WAL", busy_ms)
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
    demand_directory(path)
    if not path.exists():
        raise LedgerError(f"{path}: no ledger there", hint="name another directory with --home or PROOFSTONE_HOME")
    with explained(path):
        try:
            return _reader(path, "mode=ro", busy_ms)
        except sqlite3.OperationalError as error:
            if _code(error) not in _UNOPENED or os.access(path.parent, os.W_OK, effective_ids=True):
                raise
        return _read_only_reader(path, busy_ms)


def _reader(path: Path, options: str, busy_ms: int, *before: str) -> sqlite3.Connection:
    connection = _connect(path, options, busy_ms)
    try:
        for statement in (*before, "PRAGMA query_only = ON"):
            connection.execute(statement)
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # touches the file
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only_reader(path: Path, busy_ms: int) -> sqlite3.Connection:
    """A reader where nothing can be written: the write-ahead log's shared memory cannot be made there, and nobody else
    can be writing. If a log was left behind, its rows count: SQLite reads it with an index in its own memory."""
    log = path.with_name(f"{path.name}-wal")
    if not log.is_file() or log.stat().st_size == 0:
        return _reader(path, "mode=ro&immutable=1", busy_ms)
    return _reader(path, "mode=ro&vfs=unix-none", busy_ms, "PRAGMA locking_mode = EXCLUSIVE")


def demand_directory(path: Path) -> None:
    if not path.parent.is_dir():
        raise LedgerError(
            f"{path}: no ledger there, {path.parent} is not a directory",
            hint="name another directory with --home or PROOFSTONE_HOME",
        )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors become ours, with the path and what would be right."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(path, error) from error
    except UnicodeDecodeError as error:  # of a damaged file, whose bytes SQLite's own message quotes
        raise LedgerCorruptError(f"{path}: is damaged ({error})", hint="restore it from a copy") from error


def eventually(connection: sqlite3.Connection, statement: str, busy_ms: int) -> None:
    """Run a statement that may find the file locked.

    SQLite waits by itself, except where waiting could be a deadlock (a log being recovered or switched on): there
    it returns at once, and it is we who try again until the time is up.
    """
    deadline = time.monotonic() + busy_ms / 1000
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _connect(path: Path, options: str, busy_ms: int) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path))}?{options}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=busy_ms / 1000, check_same_thread=False)


def _make_private(path: Path, *, create: bool, file_mode: int) -> None:
    """The file exists with its mode before SQLite sees it; its log takes the mode over.

    A file that is there is not opened here: to close it again would let go of every lock that this process has on it,
    also those of SQLite, and the next process to leave the ledger would take our log away as nobody's.
    """
    with _making:
        if path.is_dir():
            raise LedgerError(f"{path}: is a directory, not a ledger", hint="name another PROOFSTONE_HOME")
        try:
            if create and not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode))
            owner = path.stat().st_uid
        except FileNotFoundError:
            hint = "name another directory with --home or PROOFSTONE_HOME"
            raise LedgerError(f"{path}: no ledger there", hint=hint) from None
        except OSError as error:
            raise _unwritable(path, error.strerror or "") from error
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
        raise _unwritable(path, os.strerror(errno.EACCES))
    if owner == os.geteuid():
        path.chmod(file_mode)


def _unwritable(path: Path, why: str) -> LedgerError:
    return LedgerError(f"{path}: cannot be opened for writing ({why})", hint="make it writable for you")


def _is_not_ours_yet(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has something in it and keeps no write-ahead log, as a ledger does from its first byte on.
    SQLite is asked: whoever opened the file here, and closed it, would let go of this process's locks on it."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    return mode != "wal" and path.stat().st_size > 0


def _translated(path: Path, error: sqlite3.Error) -> LedgerError:
    code = _code(error)
    if code in _BUSY:
        return LedgerBusyError(f"{path}: another process is writing and did not finish in time", hint="try again")
    if code == sqlite3.SQLITE_NOTADB:
        return LedgerError(f"{path}: is not a database", hint="name another file, or restore it from a copy")
    if code == sqlite3.SQLITE_CORRUPT:
        return LedgerCorruptError(f"{path}: is damaged ({error})", hint="restore it from a copy")
    if code == sqlite3.SQLITE_FULL:
        return LedgerError(f"{path}: the disk is full; nothing was recorded", hint="make room and run again")
    if code == sqlite3.SQLITE_IOERR:  # a failing disk, or a limit on files that has been reached
        hint = "see to the disk and its limits; a run that was stopped goes on with `proofstone resume`"
        return LedgerError(f"{path}: could not be read or written ({error})", hint=hint)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return LedgerError(f"{path}: cannot be opened or written ({error})", hint="make it writable for you")
    return LedgerError(f"{path}: {error}")


def _code(error: sqlite3.Error) -> int | None:
    """The primary result code; None for errors that Python's module raises on its own."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF
