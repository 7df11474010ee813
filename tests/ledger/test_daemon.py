"""A ledger that a daemon keeps is a ledger like any other, and answers only the user whose it is."""

from __future__ import annotations

import os
import select
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proofstone.errors import InputError, LedgerError
from proofstone.ledger import daemon as wire
from proofstone.ledger.connection import DaemonLocation, ledger_path, location_path, read_daemon_location
from proofstone.ledger.daemon import DaemonConfig, LedgerDaemon, bind_socket
from proofstone.ledger.daemon_setup import listen_as_account, move_to_account, read_config, render_systemd_unit
from proofstone.ledger.models import CheckRow
from proofstone.ledger.opening import DaemonLedger, open_ledger
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.testing.ledger_conformance import LedgerConformance, build_check_row


@pytest.fixture
def place() -> Iterator[Path]:
    """Short: the path of a socket has at most 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="proofstone-d-") as folder:
        yield Path(folder)


@pytest.fixture
def location(place: Path, path: Path) -> DaemonLocation:
    return DaemonLocation(database=str(path), socket=str(place / "s"), account_uid=os.getuid())


@pytest.fixture
def serve(location: DaemonLocation) -> Iterator[Callable[[int], None]]:
    ended: list[Callable[[], None]] = []

    def start(client_uid: int) -> None:
        ledger = SqliteLedger(Path(location.database), file_mode=0o640)
        listener = bind_socket(Path(location.socket))
        thread = threading.Thread(target=LedgerDaemon(ledger, listener, client_uid).serve)
        thread.start()

        def end() -> None:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()
            ledger.close()

        ended.append(end)

    yield start
    for end in ended:
        end()


class TestDaemonLedger(LedgerConformance):
    @pytest.fixture
    def open_ledger(
        self, location: DaemonLocation, serve: Callable[[int], None]
    ) -> Iterator[Callable[[], DaemonLedger]]:
        serve(os.getuid())
        opened: list[DaemonLedger] = []

        def open_one() -> DaemonLedger:
            opened.append(DaemonLedger(location, writable=True))
            return opened[-1]

        yield open_one
        for ledger in opened:
            ledger.close()


def test_another_user_is_refused(location: DaemonLocation, serve: Callable[[int], None]) -> None:
    serve(os.getuid() + 1)
    ledger = DaemonLedger(location, writable=True)
    ledger._connection = ledger._connect()
    select.select([ledger._connection], [], [])  # it has refused, and may have closed, before anything is sent
    with pytest.raises(LedgerError, match=f"kept for the user {os.getuid() + 1}; you are {os.getuid()}"):
        ledger.append(build_check_row())
    assert ledger.head().seq == 0
    ledger.close()


def test_a_socket_that_another_account_serves_is_not_spoken_to(
    location: DaemonLocation, serve: Callable[[int], None]
) -> None:
    serve(os.getuid())
    ledger = DaemonLedger(location.model_copy(update={"account_uid": os.getuid() + 1}), writable=True)
    with pytest.raises(LedgerError, match="is served by user"):
        ledger.append(build_check_row())
    ledger.close()


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "delete", "seq": 1},
        {"op": "append"},
        {"op": "append", "rows": [{"table": "chain", "row": {}}], "provided": [], "durable": True},
        {"op": "append", "rows": [{"table": "events", "row": {"seq": 1}}], "provided": [], "durable": True},
        {"op": "append", "rows": [], "provided": [{"table": "events", "where": 1, "seq": 0}], "durable": True},
        {"op": "is_authentic", "stored": {"table": "events", "link": [1]}},
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_request_that_makes_no_sense_is_answered_with_an_error(
    location: DaemonLocation, serve: Callable[[int], None], request_: dict[str, object]
) -> None:
    serve(os.getuid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(location.socket)
        wire.send_message(connection, request_)
        answer = wire.receive_message(connection)
        assert answer is not None
        assert answer["error"] == "LedgerError"
        wire.send_message(connection, {"op": "checkpoint"})
        assert wire.receive_message(connection) == {"ok": None}, "it goes on serving"


def test_bytes_that_are_no_message_end_the_connection_and_not_the_daemon(
    location: DaemonLocation, serve: Callable[[int], None]
) -> None:
    serve(os.getuid())
    for data in (struct.pack(">I", 2**32 - 1), struct.pack(">I", 3) + b"[1]", struct.pack(">I", 2) + b"\xff\xff"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(location.socket)
            connection.sendall(data)
            assert connection.recv(1) == b""
    ledger = DaemonLedger(location, writable=True)
    assert ledger.append(build_check_row()) == (1,)
    ledger.close()


def test_only_what_the_daemon_has_verified_becomes_a_checkpoint(
    location: DaemonLocation, serve: Callable[[int], None]
) -> None:
    serve(os.getuid())
    ledger = DaemonLedger(location, writable=True)
    ledger.append(build_check_row(), build_check_row())
    assert "nothing was verified up to row 2" in ledger.record_checkpoint(ledger.head())
    assert ledger.verify().ok
    assert ledger.record_checkpoint(ledger.head()) == ""
    assert ledger.checkpoint() == ledger.head()
    guessed = Anchor(ledger_id=ledger.ledger_id, seq=1, hash=str(ledger.hash_at(1)))
    assert ledger.verify(since=guessed).start == 0
    ledger.close()


def test_a_daemon_that_is_not_there_is_said_and_rows_can_be_read(location: DaemonLocation) -> None:
    with SqliteLedger(Path(location.database)) as own:
        own.append(build_check_row())
    ledger = DaemonLedger(location, writable=True)
    assert len(ledger.read(CheckRow)) == 1
    with pytest.raises(LedgerError, match="daemon cannot be reached"):
        ledger.append(build_check_row())
    ledger.close()


def test_a_location_that_cannot_be_understood_is_named(home: Path) -> None:
    location_path(home).parent.mkdir(parents=True)
    location_path(home).write_text('{"database": 1}')
    with pytest.raises(LedgerError, match=r"location\.json: does not say where the ledger is \(database"):
        ledger_path(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files to another account needs root")
def test_the_ledger_moves_to_an_account_and_is_served_from_there(home: Path, place: Path) -> None:
    """`nobody` keeps it, for a made-up user."""
    home.mkdir(mode=0o700)
    with pytest.raises(InputError, match="belongs to root"):
        move_to_account(home, "nobody", place / "s", place / "state")
    with SqliteLedger(ledger_path(home)) as ledger:
        ledger.append(build_check_row())
        before = ledger.head()
    os.chown(home, 12345, 12345)
    config = move_to_account(home, "nobody", place / "s", place / "state")
    assert sorted(one.name for one in (home / "ledger").iterdir()) == ["location.json"]
    assert read_config(place / "state") == config
    assert "ledger daemon --state" in render_systemd_unit(config, "/usr/bin/proofstone", place / "state")
    assert (place / "state" / "key").stat().st_mode & 0o777 == 0o600
    location = read_daemon_location(home)
    assert location is not None
    assert location.account_uid == (place / "state" / "ledger.db").stat().st_uid != 0
    ledger_ = open_ledger(home, "read")
    assert ledger_.hash_at(1) == before.hash
    ledger_.close()
    with pytest.raises(InputError, match="a daemon already keeps this ledger"):
        move_to_account(home, "nobody", place / "s", place / "state")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may become the account")
def test_only_the_account_can_serve(place: Path) -> None:
    config = DaemonConfig(database="d", socket=str(place / "s"), account="root", client_uid=1, client_gid=1)
    with pytest.raises(InputError, match="runs as root"):
        listen_as_account(config)
