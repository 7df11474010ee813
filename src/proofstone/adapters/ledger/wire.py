"""What a ledger's daemon and its clients say to each other: a length and a JSON object, there and back.

A request is `{"op": …, …}`; an answer is `{"ok": …}` or `{"error": …, "message": …, "hint": …}`. Rows travel as their
contracts, so that the daemon validates them like rows of its own process.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from pydantic import ValidationError

from proofstone.adapters.ledger import Last, Row, Stored, Verification
from proofstone.adapters.ledger.tables import TABLES, Table, table_of
from proofstone.contracts.base import Contract
from proofstone.core.anchoring import Anchor
from proofstone.core.authentication import AuthenticationLevel
from proofstone.core.chain import Break, Link
from proofstone.errors import LedgerBusyError, LedgerCorruptError, LedgerError

_MOST_BYTES: Final = 256 * 1024 * 1024
_LENGTH: Final = struct.Struct(">I")
_CREDENTIALS: Final = struct.Struct("3i")
_ERRORS: Final = {kind.__name__: kind for kind in (LedgerError, LedgerBusyError, LedgerCorruptError)}
_BY_NAME: Final = {table.name: table for table in TABLES.values()}

Message: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = Any
"""What a request is answered with: JSON, of the shape that the request has."""


def send(connection: socket.socket, message: Message) -> None:
    data = json.dumps(message).encode("ascii")
    if len(data) > _MOST_BYTES:
        raise LedgerError(f"{len(data):,} bytes are more than can be recorded at once")
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """The next message; None if the other side has ended."""
    header = _read(connection, _LENGTH.size)
    if header is None:
        return None
    (size,) = _LENGTH.unpack(header)
    if size > _MOST_BYTES:
        raise LedgerError(f"a message of {size:,} bytes was announced, which is too much")
    data = _read(connection, size)
    try:
        message = json.loads(data) if data is not None else None
    except (ValueError, RecursionError) as error:
        raise LedgerError("a message is not JSON") from error
    if message is not None and not isinstance(message, dict):
        raise LedgerError("a message is not an object")
    return message


def peer_uid(connection: socket.socket) -> int:
    """The user id of the process at the other end, as the kernel knows it."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(data)
    return int(uid)


def failure(error: LedgerError) -> Message:
    name = type(error).__name__
    return {"error": name if name in _ERRORS else "LedgerError", "message": error.message, "hint": error.hint}


def result_of(answer: Message) -> Answer:
    """What was answered; raises the error that the other side had."""
    if "error" in answer:
        raise _ERRORS.get(str(answer["error"]), LedgerError)(str(answer["message"]), hint=answer.get("hint"))
    return answer["ok"]


def row_out(row: Row) -> Message:
    return {"table": table_of(type(row)).name, "row": row.model_dump()}


def row_in(message: Message) -> Row:
    table = _table(message)
    try:
        return cast("Row", table.model.model_validate(message["row"]))
    except (ValidationError, KeyError, TypeError) as error:
        raise LedgerError(f"{table.name}: not a row of this table: {error}") from error


def last_out(condition: Last) -> Message:
    return {"table": table_of(condition.kind).name, "where": dict(condition.where), "seq": condition.seq}


def last_in(message: Message) -> Last:
    return Last(_table(message).model, dict(message["where"]), int(message["seq"]))


def stored_out(stored: Stored[Any]) -> Message:
    link = stored.link
    chained = [link.seq, link.table, link.payload_hash, link.prev_hash, link.hash]
    return {"table": link.table, "link": chained, "values": dict(stored.values)}


def stored_in(message: Message) -> Stored[Contract]:
    seq, table, *hashes = message["link"]
    link = Link(int(seq), str(table), *(str(one) for one in hashes))
    return Stored(_table(message).model, link, dict(message["values"]))


def verification_out(found: Verification) -> Message:
    return {
        "head": found.head.model_dump(),
        "problems": [[one.seq, one.reason] for one in found.problems],
        "start": found.start,
        "unlisted": found.unlisted,
    }


def verification_in(message: Message, level: AuthenticationLevel) -> Verification:
    return Verification(
        Anchor.model_validate(message["head"]),
        tuple(Break(seq, str(reason)) for seq, reason in message["problems"]),
        int(message["start"]),
        int(message["unlisted"]),
        level,
    )


def _table(message: Message) -> Table:
    table = _BY_NAME.get(str(message.get("table")))
    if table is None:
        raise LedgerError(f"there is no table {message.get('table')}; there are: {', '.join(_BY_NAME)}")
    return table


def _read(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)
