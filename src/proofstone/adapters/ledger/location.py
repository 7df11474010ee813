"""Where the ledger lives, and whether that place can hold one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from proofstone.adapters.mounts import mount_table, mounts
from proofstone.contracts.base import Contract
from proofstone.errors import LedgerError

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
