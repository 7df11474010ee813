"""The daemon that keeps a ledger: the only process that can write the database and read the key.

It runs as an account of its own and listens on a Unix socket. The kernel tells it who connects, and only the user whose
ledger it is may. It adds rows, which it validates, numbers, stamps, chains and authenticates itself; it has no request
that changes or removes one. Clients read the database directly: their group may read it, and nothing more.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from proofstone.adapters.ledger import wire
from proofstone.adapters.ledger.sqlite import SqliteLedger
from proofstone.contracts.base import Contract
from proofstone.core.anchoring import Anchor
from proofstone.errors import LedgerError

FILE_MODE: Final = 0o640
_MOST_CLIENTS: Final = 64


class DaemonConfig(Contract):
    """What a daemon is told by whoever set it up. The file belongs to root: no client can change it."""

    database: str
    socket: str
    account: str
    client_uid: int
    client_gid: int


class LedgerDaemon:
    """Serves one ledger on a socket that is bound already, to one user."""

    def __init__(self, ledger: SqliteLedger, listener: socket.socket, client_uid: int) -> None:
        self._ledger = ledger
        self._listener = listener
        self._client_uid = client_uid
        self._places = threading.BoundedSemaphore(_MOST_CLIENTS)
        self._verified: set[Anchor] = set()
        """Where verifications that held have ended: only there a checkpoint may be."""

    def serve(self) -> None:
        """Until the listener is closed."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._places.acquire()
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        try:
            with connection:
                uid = wire.peer_uid(connection)
                if uid != self._client_uid:
                    message = f"this ledger is kept for the user {self._client_uid}; you are {uid}"
                    wire.send(connection, wire.failure(LedgerError(message)))
                    return
                while (request := wire.receive(connection)) is not None:
                    wire.send(connection, self._answer(request))
        except (OSError, LedgerError):
            return  # the client is gone, or does not speak our language: it learns nothing more
        finally:
            self._places.release()

    def _answer(self, request: wire.Message) -> wire.Message:
        perform = self._operations.get(str(request.get("op")))
        if perform is None:
            return wire.failure(LedgerError(f"there is no request {request.get('op')}"))
        try:
            return {"ok": perform(request)}
        except LedgerError as error:
            return wire.failure(error)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            return wire.failure(LedgerError(f"the request {request.get('op')} is malformed: {error}"))

    @property
    def _operations(self) -> dict[str, Callable[[wire.Message], Any]]:
        return {
            "append": self._append,
            "is_authentic": lambda request: self._ledger.is_authentic(wire.stored_in(request["stored"])),
            "verify": self._verify,
            "checkpoint": lambda _: _dumped(self._ledger.checkpoint()),
            "keep_checkpoint": self._keep_checkpoint,
        }

    def _append(self, request: wire.Message) -> list[int]:
        rows = [wire.row_in(row) for row in request["rows"]]
        provided = [wire.last_in(one) for one in request["provided"]]
        return list(self._ledger.append(*rows, provided=provided, durable=bool(request["durable"])))

    def _verify(self, request: wire.Message) -> wire.Message:
        anchors = [Anchor.model_validate(one) for one in request["anchors"]]
        since = None if request["since"] is None else Anchor.model_validate(request["since"])
        if since is not None and since != self._ledger.checkpoint():
            since = None  # only what this daemon has verified is taken as verified
        found = self._ledger.verify(anchors, since=since)
        if found.ok:
            self._verified.add(found.head)
        return wire.verification_out(found)

    def _keep_checkpoint(self, request: wire.Message) -> str:
        anchor = Anchor.model_validate(request["anchor"])
        if anchor not in self._verified:
            return f"nothing was verified up to row {anchor.seq}"
        self._verified.clear()
        return self._ledger.keep_checkpoint(anchor)


def bind(path: Path) -> socket.socket:
    """A listening socket; one that a daemon left behind which is gone is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and not _is_served(path):
            path.unlink()
        listener.bind(str(path))
        path.chmod(0o666)  # who may speak is decided by who they are
        listener.listen()
    except OSError as error:
        listener.close()
        raise LedgerError(f"{path}: cannot listen there ({error.strerror})", hint="another daemon may be") from error
    return listener


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True


def _dumped(anchor: Anchor | None) -> dict[str, Any] | None:
    return None if anchor is None else anchor.model_dump()
