"""The daemon that keeps a ledger, and the protocol between the daemon and its clients.

The daemon is the only process that can write the database and read the key. It runs as an account of its own and
listens on a Unix socket. The kernel tells it who connects, and it serves only the owner of the ledger. It validates,
numbers, stamps, chains and authenticates the rows that it appends, and it has no request that changes or removes a row.
Clients read the database directly: their group has read access and nothing more.

A message is a length and a JSON object. A request is `{"op": …, …}`; an answer is `{"ok": …}` or `{"error": …,
"message": …, "hint": …}`. Rows are sent as their contracts, so that the daemon validates them like rows of its own
process.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from pydantic import ValidationError

from proofstone.common.models import FrozenModel
from proofstone.errors import LedgerBusyError, LedgerCorruptError, LedgerError
from proofstone.ledger import LastRowCondition, Verification
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import AuthenticationLevel, ChainBreak, ChainLink
from proofstone.ledger.schema import TABLES, LedgerRow, StoredRow, TableSpec, table_of
from proofstone.ledger.sqlite import SqliteLedger

_MAX_BYTES: Final = 256 * 1024 * 1024
_LENGTH: Final = struct.Struct(">I")
_CREDENTIALS: Final = struct.Struct("3i")
_ERRORS: Final = {kind.__name__: kind for kind in (LedgerError, LedgerBusyError, LedgerCorruptError)}
_TABLES_BY_NAME: Final = {table.name: table for table in TABLES.values()}

WireMessage: TypeAlias = Mapping[str, Any]
WireResult: TypeAlias = Any
"""The result of a request: JSON, in the form that belongs to the request."""


def send_message(connection: socket.socket, message: WireMessage) -> None:
    data = json.dumps(message).encode("ascii")
    if len(data) > _MAX_BYTES:
        raise LedgerError(f"{len(data):,} bytes are too many to record at once")
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive_message(connection: socket.socket) -> dict[str, Any] | None:
    """Return the next message; None if the other side has closed the connection."""
    header = _receive_exactly(connection, _LENGTH.size)
    if header is None:
        return None
    (size,) = _LENGTH.unpack(header)
    if size > _MAX_BYTES:
        raise LedgerError(f"a message of {size:,} bytes is too long")
    data = _receive_exactly(connection, size)
    try:
        message = json.loads(data) if data is not None else None
    except (ValueError, RecursionError) as error:
        raise LedgerError("a message is not JSON") from error
    if message is not None and not isinstance(message, dict):
        raise LedgerError("a message is not an object")
    return message


def peer_uid(connection: socket.socket) -> int:
    """Return the user id of the process at the other end, as reported by the kernel."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(data)
    return int(uid)


def encode_error(error: LedgerError) -> WireMessage:
    name = type(error).__name__
    return {"error": name if name in _ERRORS else "LedgerError", "message": error.message, "hint": error.hint}


def decode_result(answer: WireMessage) -> WireResult:
    """Return the result of an answer; raise the error that the other side reported."""
    if "error" in answer:
        raise _ERRORS.get(str(answer["error"]), LedgerError)(str(answer["message"]), hint=answer.get("hint"))
    return answer["ok"]


def encode_row(row: LedgerRow) -> WireMessage:
    return {"table": table_of(type(row)).name, "row": row.model_dump()}


def decode_row(message: WireMessage) -> LedgerRow:
    table = _find_table(message)
    try:
        return cast("LedgerRow", table.model.model_validate(message["row"]))
    except (ValidationError, KeyError, TypeError) as error:
        raise LedgerError(f"{table.name}: not a row of this table: {error}") from error


def encode_condition(condition: LastRowCondition) -> WireMessage:
    return {"table": table_of(condition.kind).name, "where": dict(condition.where), "seq": condition.seq}


def decode_condition(message: WireMessage) -> LastRowCondition:
    return LastRowCondition(_find_table(message).model, dict(message["where"]), int(message["seq"]))


def encode_stored_row(stored: StoredRow[Any]) -> WireMessage:
    link = stored.link
    chained = [link.seq, link.table, link.payload_hash, link.prev_hash, link.hash]
    return {"table": link.table, "link": chained, "values": dict(stored.values)}


def decode_stored_row(message: WireMessage) -> StoredRow[FrozenModel]:
    seq, table, *hashes = message["link"]
    link = ChainLink(int(seq), str(table), *(str(value) for value in hashes))
    return StoredRow(_find_table(message).model, link, dict(message["values"]))


def encode_verification(verification: Verification) -> WireMessage:
    return {
        "head": verification.head.model_dump(),
        "problems": [[problem.seq, problem.reason] for problem in verification.problems],
        "start": verification.start,
        "unlisted": verification.unlisted,
    }


def decode_verification(message: WireMessage, level: AuthenticationLevel) -> Verification:
    return Verification(
        Anchor.model_validate(message["head"]),
        tuple(ChainBreak(seq, str(reason)) for seq, reason in message["problems"]),
        int(message["start"]),
        int(message["unlisted"]),
        level,
    )


def _find_table(message: WireMessage) -> TableSpec:
    table = _TABLES_BY_NAME.get(str(message.get("table")))
    if table is None:
        raise LedgerError(f"there is no table {message.get('table')}; there are: {', '.join(_TABLES_BY_NAME)}")
    return table


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)


DATABASE_MODE: Final = 0o640
_MAX_CLIENTS: Final = 64


class DaemonConfig(FrozenModel):
    """The configuration of a daemon. The file belongs to root: no client can change it."""

    database: str
    socket: str
    account: str
    client_uid: int
    client_gid: int


class LedgerDaemon:
    """Serves one ledger to one user, on a socket that is already bound."""

    def __init__(self, ledger: SqliteLedger, listener: socket.socket, client_uid: int) -> None:
        self._ledger = ledger
        self._listener = listener
        self._client_uid = client_uid
        self._client_slots = threading.BoundedSemaphore(_MAX_CLIENTS)
        self._verified_heads: set[Anchor] = set()
        """The heads of successful verifications: a checkpoint is only allowed there."""

    def serve(self) -> None:
        """Serve until the listener is closed."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._client_slots.acquire()
            threading.Thread(target=self._serve_client, args=(connection,), daemon=True).start()

    def _serve_client(self, connection: socket.socket) -> None:
        try:
            with connection:
                uid = peer_uid(connection)
                if uid != self._client_uid:
                    message = f"this ledger is kept for the user {self._client_uid}; you are {uid}"
                    send_message(connection, encode_error(LedgerError(message)))
                    return
                while (request := receive_message(connection)) is not None:
                    send_message(connection, self._answer(request))
        except (OSError, LedgerError):
            return  # the client is gone or violates the protocol: it gets no further answer
        finally:
            self._client_slots.release()

    def _answer(self, request: WireMessage) -> WireMessage:
        perform = self._operations.get(str(request.get("op")))
        if perform is None:
            return encode_error(LedgerError(f"there is no request {request.get('op')}"))
        try:
            return {"ok": perform(request)}
        except LedgerError as error:
            return encode_error(error)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            return encode_error(LedgerError(f"the request {request.get('op')} is malformed: {error}"))

    @property
    def _operations(self) -> dict[str, Callable[[WireMessage], Any]]:
        return {
            "append": self._append,
            "is_authentic": lambda request: self._ledger.is_authentic(decode_stored_row(request["stored"])),
            "verify": self._verify,
            "checkpoint": lambda _: _dump_anchor(self._ledger.checkpoint()),
            "keep_checkpoint": self._keep_checkpoint,
        }

    def _append(self, request: WireMessage) -> list[int]:
        rows = [decode_row(row) for row in request["rows"]]
        provided = [decode_condition(condition) for condition in request["provided"]]
        return list(self._ledger.append(*rows, provided=provided, durable=bool(request["durable"])))

    def _verify(self, request: WireMessage) -> WireMessage:
        anchors = [Anchor.model_validate(anchor) for anchor in request["anchors"]]
        since = None if request["since"] is None else Anchor.model_validate(request["since"])
        if since is not None and since != self._ledger.checkpoint():
            since = None  # the daemon trusts only its own checkpoint
        verification = self._ledger.verify(anchors, since=since)
        if verification.ok:
            self._verified_heads.add(verification.head)
        return encode_verification(verification)

    def _keep_checkpoint(self, request: WireMessage) -> str:
        anchor = Anchor.model_validate(request["anchor"])
        if anchor not in self._verified_heads:
            return f"nothing was verified up to row {anchor.seq}"
        self._verified_heads.clear()
        return self._ledger.record_checkpoint(anchor)


def bind_socket(path: Path) -> socket.socket:
    """Return a listening socket; replace the socket of a daemon that is gone."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and not _has_listener(path):
            path.unlink()
        listener.bind(str(path))
        path.chmod(0o666)  # access is decided by the user id of the client
        listener.listen()
    except OSError as error:
        listener.close()
        raise LedgerError(
            f"{path}: cannot listen there ({error.strerror})", hint="another daemon may be listening there"
        ) from error
    return listener


def _has_listener(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True


def _dump_anchor(anchor: Anchor | None) -> dict[str, Any] | None:
    return None if anchor is None else anchor.model_dump()
