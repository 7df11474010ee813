"""Giving a ledger to an account of its own, and starting the daemon as that account. Both need root.

The database and the key move into a folder that the account owns; the group of the user may read the database, nobody
else may read the key. What the daemon is told lies beside them in a file of root's. The state directory of the user
keeps a file that says where the ledger is: once that file is there, the ledger has moved.
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
    daemon_location,
    location_path,
    own_ledger_path,
    prepare_directory,
)
from proofstone.ledger.daemon import FILE_MODE, DaemonConfig, bind
from proofstone.ledger.keys import key_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.ledger.verification import checkpoint_path
from proofstone.machine.locks import is_held

STATE: Final = Path("/var/lib/proofstone-ledger")
SOCKETS: Final = Path("/run/proofstone-ledger")
_CONFIG: Final = "daemon.json"
_DATABASE: Final = "ledger.db"


def move_to_account(home: Path, account: str, socket_path: Path, state: Path) -> DaemonConfig:
    """Move the ledger of a state directory to the account, and say in the state directory where it is."""
    client = _client_of(home)
    if daemon_location(home) is not None:
        raise InputError(f"{location_path(home)}: the ledger is kept by a daemon already")
    for lock in (home / "runs").glob("*.lock"):
        if is_held(home, lock.stem):
            raise InputError(f"{lock.stem} is under way", hint="wait until it has ended, or stop it")
    owner = _account(account)
    if owner.pw_uid == client.st_uid:
        raise InputError(f"--user {account}: that is the account whose ledger it is", hint="name another")
    config = DaemonConfig(
        database=str(state / _DATABASE),
        socket=str(socket_path),
        account=account,
        client_uid=client.st_uid,
        client_gid=client.st_gid,
    )
    try:
        _copy(home, state, config, owner)
        _publish_location(home, config, owner, client)
        _remove_old(home)
    except OSError as error:
        where = error.filename or state
        raise LedgerError(f"{where}: {error.strerror}", hint="the ledger stays where it was") from error
    return config


def read_config(state: Path) -> DaemonConfig:
    """What the daemon of a folder is told. Only a file of root's, or of whoever starts it, is believed."""
    path = state / _CONFIG
    try:
        if path.stat().st_uid not in (0, os.geteuid()):
            raise InputError(
                f"{path}: belongs to neither root nor you", hint="run `proofstone ledger init --daemon` again"
            )
        return DaemonConfig.model_validate_json(path.read_bytes())
    except OSError as error:
        hint = "`proofstone ledger init --daemon` makes it; --state names its folder"
        raise InputError(f"{path}: {error.strerror}", hint=hint) from error
    except ValidationError as error:
        raise InputError(f"{path}: cannot be understood: {error.errors()[0]['msg']}") from error


def listen_as_account(config: DaemonConfig) -> socket.socket:
    """The socket, bound; from then on this process is the account, whoever has started it."""
    path = Path(config.socket)
    owner = _known_account(config.account)
    if os.geteuid() == 0:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        os.chown(path.parent, owner.pw_uid, owner.pw_gid)
        os.setgroups([config.client_gid])
        os.setgid(owner.pw_gid)
        os.setuid(owner.pw_uid)
    if os.geteuid() != owner.pw_uid:
        raise InputError(f"this daemon runs as {config.account}", hint="start it as root, which it gives up")
    os.umask(0o027)
    return bind(path)


def unit_text(config: DaemonConfig, program: str, state: Path) -> str:
    """A systemd unit that keeps the daemon running."""
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


def _client_of(home: Path) -> os.stat_result:
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
            f"{home}: belongs to root, from whom no account can keep a key",
            hint="work as an ordinary user, and name that user's state directory with --home",
        )
    return client


def _account(name: str) -> pwd.struct_passwd:
    """The account, made if need be: a system account without a home and without a shell."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pass
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise MachineError(f"there is no account {name}, and no useradd to make one", hint="make it, and say --user")
    done = subprocess.run(
        [program, "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", name],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MachineError(f"the account {name} cannot be made: {done.stderr.strip()}", hint="make it, and say --user")
    return _known_account(name)


def _known_account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise MachineError(f"there is no account {name}", hint="`proofstone ledger init --daemon` makes it") from None


def _copy(home: Path, state: Path, config: DaemonConfig, owner: pwd.struct_passwd) -> None:
    own = own_ledger_path(home)
    if own.is_symlink() or own.parent.is_symlink():
        raise InputError(f"{own}: is a symbolic link, which root does not follow for another account")
    is_new = not own.parent.exists()
    prepare_directory(own.parent)
    if is_new:
        os.chown(own.parent, config.client_uid, config.client_gid)
    state.mkdir(mode=0o750, parents=True, exist_ok=True)
    database = Path(config.database)
    aside = database.with_name(f".{database.name}.new")
    aside.unlink(missing_ok=True)
    with closing(SqliteLedger(own, "create")) as ledger:
        moved = {"account": config.account, "client_uid": config.client_uid}
        ledger.append(EventRow(run_id="ledger", type="ledger.moved", payload={**moved}))
        key = ledger.key
        with closing(sqlite3.connect(own)) as source, closing(sqlite3.connect(aside)) as target:
            source.backup(target)
    if key is None:
        raise LedgerError(f"{own}: has no key")
    aside.chmod(FILE_MODE)
    os.chown(aside, owner.pw_uid, config.client_gid)
    for left in ("-wal", "-shm"):
        database.with_name(database.name + left).unlink(missing_ok=True)
    aside.replace(database)
    _write(key_path(database), key.value.hex() + "\n", 0o600, owner.pw_uid, owner.pw_gid)
    _write(state / _CONFIG, config.model_dump_json() + "\n", 0o644, 0, 0)
    os.chown(state, owner.pw_uid, config.client_gid)
    state.chmod(0o2750)


def _publish_location(home: Path, config: DaemonConfig, owner: pwd.struct_passwd, client: os.stat_result) -> None:
    """From the moment that this file is there the ledger is the daemon's."""
    location = DaemonLocation(database=config.database, socket=config.socket, account_uid=owner.pw_uid)
    fault_point("daemon.before-location")
    _write(location_path(home), location.model_dump_json() + "\n", 0o600, client.st_uid, client.st_gid)
    fault_point("daemon.after-location")


def _remove_old(home: Path) -> None:
    own = own_ledger_path(home)
    for path in (
        own,
        *(own.with_name(own.name + end) for end in ("-wal", "-shm")),
        key_path(own),
        checkpoint_path(own),
    ):
        path.unlink(missing_ok=True)


def _write(path: Path, text: str, mode: int, uid: int, gid: int) -> None:
    """Whole and on the disk, or not at all."""
    aside = path.with_name(f".{path.name}.new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chown(aside, uid, gid)
    aside.chmod(mode)
    aside.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
