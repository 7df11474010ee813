"""Messages are published once by id, and only along the routes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from proofstone.agents.bus import MessageBus, NoRouteError, OutgoingMessage, to_envelope
from proofstone.errors import InternalError
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.sqlite import SqliteLedger


def letter(message_id: str) -> OutgoingMessage:
    return OutgoingMessage("engine", "planner", "Dispatch", {"task": None}, message_id)


def test_a_message_is_read_as_it_was_published(ledger: SqliteLedger) -> None:
    MessageBus(ledger, "r1").publish("engine", "reviewer:security", "Dispatch", {"n": [1, None]}, message_id="m/1")
    (stored,) = ledger.read(MessageRow)
    assert to_envelope(stored).model_dump(by_alias=True) == {
        "id": "m/1",
        "timestamp": stored.ts,
        "from": "engine",
        "to": "reviewer:security",
        "type": "Dispatch",
        "payload": {"n": [1, None]},
        "run_id": "r1",
        "seq": stored.seq,
    }


def test_an_id_that_was_published_is_not_published_again(ledger: SqliteLedger) -> None:
    bus = MessageBus(ledger, "r1")
    for number in (1, 2):
        bus.publish("engine", "planner", "Dispatch", {"number": number}, message_id="m")
    (stored,) = ledger.read(MessageRow)
    assert stored.row.payload == {"number": 1}


def test_the_same_id_in_another_run_is_another_message(ledger: SqliteLedger) -> None:
    for run in ("r1", "r2"):
        MessageBus(ledger, run).publish("engine", "planner", "Dispatch", {}, message_id="m")
    assert [stored.row.run_id for stored in ledger.read(MessageRow)] == ["r1", "r2"]


def test_an_id_cannot_stand_for_two_messages(ledger: SqliteLedger) -> None:
    bus = MessageBus(ledger, "r1")
    bus.publish("engine", "planner", "Dispatch", {}, message_id="m")
    with pytest.raises(InternalError, match="m is a Dispatch from engine to planner"):
        bus.publish("planner", "engine", "Output", {}, message_id="m")


def test_of_a_batch_only_what_is_new_is_written_and_other_rows_in_any_case(ledger: SqliteLedger) -> None:
    letters = [letter(f"m{number}") for number in range(4)]
    bus = MessageBus(ledger, "r1")
    bus.write(letters[1:3])
    bus.write(letters, [EventRow(run_id="r1", type="spent")])
    bus.write(letters, [EventRow(run_id="r1", type="spent")])
    bus.write(letters)
    assert [stored.row.message_id for stored in ledger.read(MessageRow)] == ["m1", "m2", "m0", "m3"]
    assert len(ledger.read(EventRow)) == 2


@pytest.mark.seed("control-loop", "bus")
def test_off_the_routes_nothing_is_said_and_the_attempt_is_recorded(ledger: SqliteLedger) -> None:
    bus = MessageBus(ledger, "r1")
    spent = EventRow(run_id="r1", type="spent")
    with pytest.raises(NoRouteError, match="executor may say nothing to planner"):
        bus.write([OutgoingMessage("executor", "planner", "Hint", {"task": "task-01"}, "m")], [spent])
    with pytest.raises(NoRouteError):
        bus.write([letter("m1"), OutgoingMessage("auditor", "planner", "AuditReport", {}, "m2")])
    assert ledger.read(MessageRow) == []
    first, second = (stored.row for stored in ledger.read(EventRow))
    assert (first.type, first.task_id) == ("bus.refused", "task-01")
    assert first.payload == {
        "from": "executor",
        "to": "planner",
        "type": "Hint",
        "id": "m",
        "why": "executor may say nothing to planner",
    }
    assert (second.payload["from"], second.task_id) == ("auditor", None)


def test_of_several_processes_that_publish_the_same_id_at_once_one_succeeds(
    open_ledger: Callable[[], SqliteLedger],
) -> None:
    buses = [MessageBus(open_ledger(), "r1") for _ in range(4)]
    ids = [f"m{number}" for number in range(10)]

    def work(bus: MessageBus) -> None:
        for message_id in ids:
            bus.write([letter(message_id)])

    threads = [threading.Thread(target=work, args=(bus,)) for bus in buses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [stored.row.message_id for stored in open_ledger().read(MessageRow)] == ids
