"""Open the ledger of a state directory, whether it is a local file or kept by a daemon.

Clients of a daemon read the database themselves and ask the daemon to append rows.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from proofstone.errors import LedgerError
from proofstone.ledger import LastRowCondition, Ledger, Verification, daemon
from proofstone.ledger.connection import DaemonLocation, local_ledger_path, read_daemon_location
from proofstone.ledger.keys import key_path, read_key
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import AuthenticationLevel, Scalar
from proofstone.ledger.schema import LedgerRow, RowT, StoredRow
from proofstone.ledger.sqlite import OpenMode, SqliteLedger


class DaemonLedger:
    """Implements `proofstone.ledger.Ledger`."""

    def __init__(self, location: DaemonLocation, *, writable: bool) -> None:
        self._location = location
        self._writable = writable
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._reader = SqliteLedger(Path(location.database), "read")
        self.ledger_id = self._reader.ledger_id

    def append(
        self, *rows: LedgerRow, provided: Sequence[LastRowCondition] = (), durable: bool = True
    ) -> tuple[int, ...]:
        if not self._writable:
            raise LedgerError(f"{self._location.database}: is open for reading only")
        if not rows:
            return ()
        written = self._send_request(
            "append",
            rows=[daemon.encode_row(row) for row in rows],
            provided=[daemon.encode_condition(condition) for condition in provided],
            durable=durable,
        )
        return tuple(int(seq) for seq in written)

    def read(
        self, kind: type[RowT], /, *, after: int = 0, limit: int | None = None, newest: bool = False, **where: Scalar
    ) -> list[StoredRow[RowT]]:
        return self._reader.read(kind, after=after, limit=limit, newest=newest, **where)

    def head(self) -> Anchor:
        return self._reader.head()

    def hash_at(self, seq: int) -> str | None:
        return self._reader.hash_at(seq)

    def is_authentic(self, stored: StoredRow[Any]) -> bool:
        return bool(self._send_request("is_authentic", stored=daemon.encode_stored_row(stored)))

    def verify(self, anchors: Sequence[Anchor] = (), *, since: Anchor | None = None) -> Verification:
        answer = self._send_request(
            "verify",
            anchors=[anchor.model_dump() for anchor in anchors],
            since=None if since is None else since.model_dump(),
        )
        is_separate = self._location.account_uid != os.getuid()
        level = AuthenticationLevel.SEPARATE_ACCOUNT if is_separate else AuthenticationLevel.KEY_FILE
        return daemon.decode_verification(answer, level)

    def checkpoint(self) -> Anchor | None:
        answer = self._send_request("checkpoint")
        return None if answer is None else Anchor.model_validate(answer)

    def record_checkpoint(self, anchor: Anchor) -> str:
        return str(self._send_request("keep_checkpoint", anchor=anchor.model_dump()))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
        self._reader.close()

    def _send_request(self, operation: str, **arguments: daemon.WireResult) -> daemon.WireResult:
        """Send one request at a time. If the connection breaks, the outcome is unknown, so that is an error."""
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
            try:
                # A daemon that refuses the caller answers and closes before it has read a request.
                with suppress(BrokenPipeError):
                    daemon.send_message(self._connection, {"op": operation, **arguments})
                answer = daemon.receive_message(self._connection)
            except OSError as error:
                raise self._unavailable_error(f"the connection broke ({error.strerror})") from error
        if answer is None:
            raise self._unavailable_error("it closed the connection")
        return daemon.decode_result(answer)

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._location.socket)
            uid = daemon.peer_uid(connection)
        except OSError as error:
            connection.close()
            raise self._unavailable_error(error.strerror or str(error)) from error
        if uid != self._location.account_uid:
            connection.close()
            raise LedgerError(
                f"{self._location.socket}: is served by user {uid}, but user {self._location.account_uid} keeps "
                "the ledger",
                hint="nothing was recorded; find out who listens there",
            )
        return connection

    def _unavailable_error(self, reason: str) -> LedgerError:
        return LedgerError(
            f"{self._location.socket}: the ledger's daemon cannot be reached: {reason}",
            hint="start it: `systemctl start proofstone-ledger`, or `proofstone ledger daemon` as root",
        )


def authentication_level(home: Path) -> AuthenticationLevel:
    """Return who is able to write a row that verifies, according to the setup of the state directory."""
    location = read_daemon_location(home)
    if location is not None and location.account_uid != os.getuid():
        return AuthenticationLevel.SEPARATE_ACCOUNT
    if location is not None:
        return AuthenticationLevel.KEY_FILE
    key = read_key(key_path(local_ledger_path(home)))
    return AuthenticationLevel.NONE if key is None else key.level


def open_ledger(home: Path, mode: OpenMode) -> Ledger:
    location = read_daemon_location(home)
    if location is None:
        return SqliteLedger(local_ledger_path(home), mode)
    return DaemonLedger(location, writable=mode != "read")
