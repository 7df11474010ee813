"""Saying and hearing: once by id, along the routes, and each subscriber at its own pace."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from proofstone.agents.bus import MessageBus, NoRouteError, OutgoingMessage, Subscription
from proofstone.agents.models import Envelope
from proofstone.errors import InternalError
from proofstone.ledger.models import DeliveryRow, EventRow, MessageRow
from proofstone.ledger.schema import LedgerRow
from proofstone.ledger.sqlite import SqliteLedger


def dispatches(count: int, to: str = "planner") -> list[OutgoingMessage]:
    return [OutgoingMessage("engine", to, "Dispatch", {"number": number, "task": None}) for number in range(count)]


def numbers(envelopes: list[Envelope]) -> list[object]:
    return [envelope.payload["number"] for envelope in envelopes]


def effect(envelope: Envelope) -> EventRow:
    return EventRow(run_id=envelope.run_id, type="heard", payload={"seq": envelope.seq})


class TestPublishing:
    def test_what_is_said_comes_back_as_it_stands_in_the_ledger(self, ledger: SqliteLedger) -> None:
        said = MessageBus(ledger, "r1").publish(
            "engine", "reviewer:security", "Dispatch", {"n": [1, None]}, message_id="m/1"
        )
        (stored,) = ledger.read(MessageRow)
        assert stored.row.payload == {"n": [1, None]}
        assert said.model_dump(by_alias=True) == {
            "id": "m/1",
            "timestamp": stored.ts,
            "from": "engine",
            "to": "reviewer:security",
            "type": "Dispatch",
            "payload": {"n": [1, None]},
            "run_id": "r1",
            "seq": stored.seq,
        }

    def test_an_id_that_was_said_is_not_said_again_nor_what_belongs_to_it(self, ledger: SqliteLedger) -> None:
        spent = EventRow(run_id="r1", type="spent")
        bus = MessageBus(ledger, "r1")
        first = bus.publish("engine", "planner", "Dispatch", {"at": 1}, message_id="m", also=[spent])
        again = bus.publish("engine", "planner", "Dispatch", {"at": 2}, message_id="m", also=[spent])
        assert again == first
        assert again.payload == {"at": 1}
        assert (len(ledger.read(MessageRow)), len(ledger.read(EventRow))) == (1, 1)

    def test_the_same_id_in_another_run_is_another_message(self, ledger: SqliteLedger) -> None:
        for run in ("r1", "r2"):
            MessageBus(ledger, run).publish("engine", "planner", "Dispatch", {}, message_id="m")
        assert [stored.row.run_id for stored in ledger.read(MessageRow)] == ["r1", "r2"]

    def test_an_id_cannot_stand_for_two_messages(self, ledger: SqliteLedger) -> None:
        bus = MessageBus(ledger, "r1")
        bus.publish("engine", "planner", "Dispatch", {}, message_id="m")
        with pytest.raises(InternalError, match="m is a Dispatch from engine to planner"):
            bus.publish("planner", "engine", "Output", {}, message_id="m")

    def test_messages_without_an_id_are_each_their_own(self, ledger: SqliteLedger) -> None:
        bus = MessageBus(ledger, "r1")
        assert len({bus.publish("engine", "planner", "Dispatch", {}).id for _ in range(3)}) == 3

    def test_of_a_batch_only_what_is_new_is_written_and_all_of_it_is_returned(self, ledger: SqliteLedger) -> None:
        letters = [OutgoingMessage("engine", "planner", "Dispatch", {"number": n}, f"m{n}") for n in range(4)]
        bus = MessageBus(ledger, "r1")
        bus.publish_all(letters[1:3])
        said = bus.publish_all(letters)
        assert [envelope.id for envelope in said] == ["m0", "m1", "m2", "m3"]
        assert [stored.row.message_id for stored in ledger.read(MessageRow)] == ["m1", "m2", "m0", "m3"]
        assert [envelope.seq for envelope in said] == [3, 1, 2, 4]

    def test_off_the_routes_nothing_is_said_and_the_attempt_is_recorded(self, ledger: SqliteLedger) -> None:
        bus = MessageBus(ledger, "r1")
        spent = EventRow(run_id="r1", type="spent")
        with pytest.raises(NoRouteError, match="executor may say nothing to planner"):
            bus.publish("executor", "planner", "Hint", {"task": "task-01"}, message_id="m", also=[spent])
        with pytest.raises(NoRouteError):
            bus.publish_all([*dispatches(1), OutgoingMessage("auditor", "planner", "AuditReport")])
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

    def test_of_two_processes_that_say_the_same_id_at_once_one_is_heard(
        self, open_ledger: Callable[[], SqliteLedger]
    ) -> None:
        buses = [MessageBus(open_ledger(), "r1") for _ in range(4)]
        said: list[Envelope] = []

        def work(bus: MessageBus) -> None:
            for number in range(10):
                said.append(bus.publish("engine", "planner", "Dispatch", {}, message_id=f"m{number}"))

        threads = [threading.Thread(target=work, args=(bus,)) for bus in buses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(said) == 40
        assert len({envelope.seq for envelope in said}) == 10


class TestSubscribing:
    def test_what_is_pending_stays_so_until_it_is_handled_and_comes_in_order(self, ledger: SqliteLedger) -> None:
        MessageBus(ledger, "r1").publish_all(dispatches(5))
        hearing = Subscription(ledger, "view")
        assert numbers(hearing.read_pending(3)) == [0, 1, 2]
        pending = hearing.read_pending(3)
        assert numbers(pending) == [0, 1, 2]
        assert hearing.commit(pending[1], [effect(one) for one in pending[:2]])
        assert numbers(hearing.read_pending()) == [2, 3, 4]

    def test_each_subscriber_has_its_own_cursor(self, ledger: SqliteLedger) -> None:
        MessageBus(ledger, "r1").publish_all(dispatches(3))
        quick, slow = Subscription(ledger, "quick"), Subscription(ledger, "slow")
        assert quick.commit(quick.read_pending()[-1])
        assert quick.read_pending() == []
        assert numbers(slow.read_pending()) == [0, 1, 2]

    def test_the_cursor_outlives_the_process(self, open_ledger: Callable[[], SqliteLedger]) -> None:
        ledger = open_ledger()
        MessageBus(ledger, "r1").publish_all(dispatches(3))
        hearing = Subscription(ledger, "view")
        assert hearing.commit(hearing.read_pending()[0])
        ledger.close()
        assert numbers(Subscription(open_ledger(), "view").read_pending()) == [1, 2]

    def test_a_cursor_of_one_run_is_not_that_of_another_or_of_all(self, ledger: SqliteLedger) -> None:
        for run in ("r1", "r2"):
            MessageBus(ledger, run).publish_all(dispatches(2))
        one = Subscription(ledger, "view", run_id="r1")
        assert {envelope.run_id for envelope in one.read_pending()} == {"r1"}
        assert one.commit(one.read_pending()[-1])
        assert len(Subscription(ledger, "view", run_id="r2").read_pending()) == 2
        assert len(Subscription(ledger, "view").read_pending()) == 4

    def test_whom_and_what_it_hears_can_be_narrowed(self, ledger: SqliteLedger) -> None:
        bus = MessageBus(ledger, "r1")
        bus.publish_all(dispatches(2, "planner"))
        bus.publish_all(dispatches(2, "executor"))
        bus.publish("engine", "executor", "Repair", {"number": 9})
        assert numbers(Subscription(ledger, "a", recipient="executor").read_pending()) == [0, 1, 9]
        repairs = Subscription(ledger, "b", types={"Repair"})
        assert numbers(repairs.read_pending(1)) == [9]
        assert repairs.commit(repairs.read_pending()[0])
        assert repairs.read_pending() == []
        bus.publish("engine", "executor", "Repair", {"number": 10})
        assert numbers(repairs.read_pending()) == [10], "what it does not hear does not stand in the way"

    def test_the_effects_and_the_cursor_are_one_append(self, ledger: SqliteLedger) -> None:
        MessageBus(ledger, "r1").publish_all(dispatches(2))
        hearing = Subscription(ledger, "view")
        unstorable = EventRow(run_id="r1", type="t", payload={"ratio": float("nan")})
        pending = hearing.read_pending()
        with pytest.raises(Exception, match="cannot be recorded"):
            hearing.commit(pending[-1], [effect(pending[0]), unstorable])
        assert (ledger.read(EventRow), ledger.read(DeliveryRow)) == ([], [])
        assert hearing.read_pending() == pending

    def test_of_two_of_the_same_name_the_second_has_no_effect(self, open_ledger: Callable[[], SqliteLedger]) -> None:
        ledger = open_ledger()
        MessageBus(ledger, "r1").publish_all(dispatches(4))
        first, second = (Subscription(open_ledger(), "view") for _ in range(2))
        heard, too = first.read_pending(), second.read_pending()
        assert first.commit(heard[1], [effect(one) for one in heard[:2]])
        assert not second.commit(too[-1], [effect(one) for one in too])
        assert not second.commit(too[0], [effect(too[0])])
        assert numbers(second.read_pending()) == [2, 3]
        assert second.commit(second.read_pending()[-1], [effect(one) for one in too[2:]])
        assert not first.commit(heard[-1], [effect(heard[-1])])
        assert not first.commit(heard[0]), "the cursor never goes back"
        assert [stored.row.upto for stored in ledger.read(DeliveryRow)] == [2, 4]
        assert [stored.row.payload["seq"] for stored in ledger.read(EventRow)] == [1, 2, 3, 4]

    def test_following_handles_what_is_there_and_what_comes_until_it_is_stopped(
        self, open_ledger: Callable[[], SqliteLedger]
    ) -> None:
        stop = threading.Event()
        heard: list[Envelope] = []

        def handle(envelope: Envelope) -> list[LedgerRow]:
            heard.append(envelope)
            if envelope.payload["number"] == 24:
                stop.set()
            return [effect(envelope)]

        ledger = open_ledger()
        bus = MessageBus(ledger, "r1")
        letters = dispatches(25)
        bus.publish_all(letters[:10])
        following = threading.Thread(
            target=Subscription(open_ledger(), "view").follow, args=(handle, stop), kwargs={"batch": 4}
        )
        following.start()
        for letter in letters[10:]:
            bus.publish_all([letter])
        following.join(30)
        assert not following.is_alive()
        assert numbers(heard) == list(range(25))
        assert len(ledger.read(EventRow)) == 25
        assert ledger.verify().ok
