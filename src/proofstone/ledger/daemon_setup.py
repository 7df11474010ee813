"""Move a ledger to an account of its own, and start the daemon as that account. Both need root.

The database and the key move into a folder that the account owns. The group of the user may read the database, and
nobody else may read the key. The configuration of the daemon is beside them, in a file that belongs to root. The state
directory of the user keeps a file that says where the ledger is: once that file exists, the ledger has moved.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proofstone.errors import InputError, LedgerError, MachineError
from proofstone.faults import fault_point
from proofstone.ledger.connection import (
    DaemonLocation,
    local_ledger_path,
    location_path,
    prepare_directory,
    read_daemon_location,
)
from proofstone.ledger.daemon import DATABASE_MODE, DaemonConfig, bind_socket
from proofstone.ledger.keys import key_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.ledger.verification import checkpoint_path
from proofstone.machine.locks import is_run_locked

DEFAULT_STATE_FOLDER: Final = Path("/var/lib/proofstone-ledger")
DEFAULT_SOCKET_FOLDER: Final = Path("/run/proofstone-ledger")
_CONFIG_NAME: Final = "daemon.json"
_DATABASE_NAME: Final = "ledger.db"


def move_to_account(home: Path, account: str, socket_path: Path, state: Path) -> DaemonConfig:
    """Move the ledger of a state directory to the account, and record the new location in the state directory."""
    client = _find_client(home)
    if read_daemon_location(home) is not None:
        raise InputError(f"{location_path(home)}: a daemon already keeps this ledger")
    for lock in (home / "runs").glob("*.lock"):
        if is_run_locked(home, lock.stem):
            raise InputError(f"run {lock.stem} is still running", hint="wait until it has ended, or stop it first")
    owner = _ensure_account(account)
    if owner.pw_uid == client.st_uid:
        raise InputError(f"--user {account}: this account owns the ledger", hint="name another account")
    config = DaemonConfig(
        database=str(state / _DATABASE_NAME),
        socket=str(socket_path),
        account=account,
        client_uid=client.st_uid,
        client_gid=client.st_gid,
    )
    try:
        _copy_ledger(home, state, config, owner)
        _publish_location(home, config, owner, client)
        _remove_old(home)
    except OSError as error:
        where = error.filename or state
        raise LedgerError(f"{where}: {error.strerror}", hint="the ledger was not moved") from error
    return config


def read_config(state: Path) -> DaemonConfig:
    """Read the configuration of the daemon of a folder. The file must belong to root or to the current user."""
    path = state / _CONFIG_NAME
    try:
        if path.stat().st_uid not in (0, os.geteuid()):
            raise InputError(
                f"{path}: belongs to neither root nor you", hint="run `proofstone ledger init --daemon` again"
            )
        return DaemonConfig.model_validate_json(path.read_bytes())
    except OSError as error:
        hint = "create it with `proofstone ledger init --daemon`, or name its folder with --state"
        raise InputError(f"{path}: {error.strerror}", hint=hint) from error
    except ValidationError as error:
        raise InputError(f"{path}: is not valid: {error.errors()[0]['msg']}") from error


def listen_as_account(config: DaemonConfig) -> socket.socket:
    """Bind the socket and become the account of the daemon."""
    path = Path(config.socket)
    owner = _find_account(config.account)
    if os.geteuid() == 0:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        os.chown(path.parent, owner.pw_uid, owner.pw_gid)
        os.setgroups([config.client_gid])
        os.setgid(owner.pw_gid)
        os.setuid(owner.pw_uid)
    if os.geteuid() != owner.pw_uid:
        raise InputError(f"this daemon must run as {config.account}", hint="start it as root; it drops its privileges")
    os.umask(0o027)
    return bind_socket(path)


def render_systemd_unit(config: DaemonConfig, program: str, state: Path) -> str:
    """Return a systemd unit that keeps the daemon running."""
    folder = Path(config.socket).parent
    return f"""[Unit]
Description=The ledger of user {config.client_uid}, kept by {config.account}

[Service]
ExecStart={program} ledger daemon --state {state}
Restart=on-failure
RuntimeDirectory={folder.name}
RuntimeDirectoryPreserve=yes
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths={Path(config.database).parent}
ProtectHome=read-only
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
"""


def _find_client(home: Path) -> os.stat_result:
    if os.geteuid() != 0:
        raise InputError(
            "--daemon: only root can give the ledger to another account",
            hint="sudo proofstone ledger init --daemon --home YOUR_PROOFSTONE_HOME",
        )
    try:
        client = home.stat()
    except OSError as error:
        raise InputError(f"{home}: {error.strerror}", hint="--home names the state directory of the user") from error
    if client.st_uid == 0:
        raise InputError(
            f"{home}: belongs to root, and root can read the key of any account",
            hint="work as an ordinary user, and name that user's state directory with --home",
        )
    return client


def _ensure_account(name: str) -> pwd.struct_passwd:
    """Return the account; create it if it is missing, as a system account without a home and without a shell."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pass
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise MachineError(
            f"there is no account {name}, and no useradd to create it", hint="create it, and name it with --user"
        )
    result = subprocess.run(
        [program, "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", name],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise MachineError(
            f"cannot create the account {name}: {result.stderr.strip()}", hint="create it, and name it with --user"
        )
    return _find_account(name)


def _find_account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise MachineError(
            f"there is no account {name}", hint="create it with `proofstone ledger init --daemon`"
        ) from None


def _copy_ledger(home: Path, state: Path, config: DaemonConfig, owner: pwd.struct_passwd) -> None:
    source_path = local_ledger_path(home)
    if source_path.is_symlink() or source_path.parent.is_symlink():
        raise InputError(f"{source_path}: is a symbolic link; root does not follow links of another account")
    is_new = not source_path.parent.exists()
    prepare_directory(source_path.parent)
    if is_new:
        os.chown(source_path.parent, config.client_uid, config.client_gid)
    state.mkdir(mode=0o750, parents=True, exist_ok=True)
    database = Path(config.database)
    temporary = database.with_name(f".{database.name}.new")
    temporary.unlink(missing_ok=True)
    with closing(SqliteLedger(source_path, "create")) as ledger:
        details = {"account": config.account, "client_uid": config.client_uid}
        ledger.append(EventRow(run_id="ledger", type="ledger.moved", payload={**details}))
        key = ledger.key
        with closing(sqlite3.connect(source_path)) as source, closing(sqlite3.connect(temporary)) as target:
            source.backup(target)
    if key is None:
        raise LedgerError(f"{source_path}: has no key")
    temporary.chmod(DATABASE_MODE)
    os.chown(temporary, owner.pw_uid, config.client_gid)
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    temporary.replace(database)
    _write_atomically(key_path(database), key.value.hex() + "\n", 0o600, owner.pw_uid, owner.pw_gid)
    _write_atomically(state / _CONFIG_NAME, config.model_dump_json() + "\n", 0o644, 0, 0)
    os.chown(state, owner.pw_uid, config.client_gid)
    state.chmod(0o2750)


def _publish_location(home: Path, config: DaemonConfig, owner: pwd.struct_passwd, client: os.stat_result) -> None:
    """Publish the location of the ledger. From the moment that this file exists, the ledger belongs to the daemon."""
    location = DaemonLocation(database=config.database, socket=config.socket, account_uid=owner.pw_uid)
    fault_point("daemon.before-location")
    _write_atomically(location_path(home), location.model_dump_json() + "\n", 0o600, client.st_uid, client.st_gid)
    fault_point("daemon.after-location")


def _remove_old(home: Path) -> None:
    database = local_ledger_path(home)
    for path in (
        database,
        *(database.with_name(database.name + suffix) for suffix in ("-wal", "-shm")),
        key_path(database),
        checkpoint_path(database),
    ):
        path.unlink(missing_ok=True)


def _write_atomically(path: Path, text: str, mode: int, uid: int, gid: int) -> None:
    """Write the file atomically and sync it to the disk."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chown(temporary, uid, gid)
    temporary.chmod(mode)
    temporary.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
