"""Tests that every ledger must pass, whatever stores it. Subclass `LedgerConformance` and define `open_ledger`.

    class TestMine(LedgerConformance):
        @pytest.fixture
        def open_ledger(self, tmp_path): return lambda: MyLedger(tmp_path / "file")

Each call of `open_ledger()` is a new connection to the same ledger, which is empty at first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest

from proofstone.common.models import Assurance, Phase, ReviewVerdict, Severity, Verdict
from proofstone.errors import LedgerError
from proofstone.ledger import LastRowCondition, Ledger, read_all_rows
from proofstone.ledger.models import (
    ApprovalRow,
    ArtifactRow,
    CheckRow,
    EventRow,
    MessageRow,
    OverrideRow,
    StepStatus,
    TelemetryRow,
)
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import ChainEntry, find_first_break, genesis_hash
from proofstone.ledger.schema import LedgerRow

OpenLedger: TypeAlias = Callable[[], Ledger]


def build_check_row(run_id: str = "run-1", task_id: str = "task-01", state: Verdict = Verdict.PASS) -> CheckRow:
    return CheckRow(
        run_id=run_id, task_id=task_id, phase=Phase.AFTER, check_name="tests:pytest", tool="pytest", state=state
    )


FULL_CHECK_ROW = CheckRow(
    run_id="run-1",
    task_id="shop-code-review",
    phase=Phase.REVIEW,
    check_name="review-code-security",
    tool="reviewer",
    command="adversarial-review",
    exit_code=-9,
    output_snippet="é" * 500,
    state=Verdict.FAIL,
    verdict=ReviewVerdict.NEEDS_REVISION,
    severity=Severity.MAJOR,
    round=2,
    attempt=3,
    tree="a" * 40,
    tier=4,
    assurance=Assurance.BUBBLEWRAP,
    duration_ms=0,
    artifact="b" * 64,
    reused_from=1,
)

SAMPLE_ROWS: tuple[LedgerRow, ...] = (
    FULL_CHECK_ROW,
    TelemetryRow(run_id="run-1", step="plan", agent="planner", started_at="2026-01-01T00:00:00Z"),
    TelemetryRow(
        run_id="run-1",
        step="plan",
        agent="planner",
        instance="1",
        started_at="2026-01-01T00:00:00Z",
        completed_at="2026-01-01T00:01:00Z",
        status=StepStatus.DONE,
        notes="fine",
    ),
    MessageRow(
        message_id="m-1",
        run_id="run-1",
        sender="engine",
        recipient="planner",
        type="ask",
        payload={"n": [1, None]},
    ),
    ApprovalRow(run_id="run-1", gate="gate-post-planning", option="approve", decided_by="person"),
    OverrideRow(
        run_id="run-1",
        task_id="task-01",
        action="skip",
        category="false-negative",
        reason="r",
        decided_by="person",
    ),
    EventRow(run_id="run-1", type="run.started", payload={"text": 'quote " \ud800 \x00', "ratio": 0.1}),
    ArtifactRow(artifact="b" * 64, size=12, media_type="text/plain", truncated=True),
)


class LedgerConformance:
    """The tests that every ledger must pass."""

    @pytest.fixture
    def ledger(self, open_ledger: OpenLedger) -> Ledger:
        """An empty ledger. `open_ledger` closes what it opened."""
        return open_ledger()

    @pytest.mark.parametrize("row", SAMPLE_ROWS, ids=lambda row: type(row).__name__)
    def test_a_row_is_read_as_it_was_appended(self, ledger: Ledger, row: LedgerRow) -> None:
        (seq,) = ledger.append(row)
        (stored,) = ledger.read(type(row))
        assert (stored.seq, stored.row) == (seq, row)

    def test_rows_of_one_append_are_numbered_in_order_across_tables(self, ledger: Ledger) -> None:
        assert ledger.append(*SAMPLE_ROWS) == tuple(range(1, len(SAMPLE_ROWS) + 1))
        assert ledger.append(build_check_row(), build_check_row()) == (len(SAMPLE_ROWS) + 1, len(SAMPLE_ROWS) + 2)
        assert [type(stored.row) for stored in read_all_rows(ledger)][: len(SAMPLE_ROWS)] == [
            type(row) for row in SAMPLE_ROWS
        ]

    def test_appending_nothing_changes_nothing(self, ledger: Ledger) -> None:
        before = ledger.head()
        assert ledger.append() == ()
        assert ledger.head() == before

    def test_a_row_that_cannot_be_stored_leaves_none_of_its_append(self, ledger: Ledger) -> None:
        broken = build_check_row().model_copy(update={"output_snippet": "x" * 501})
        before = ledger.head()
        with pytest.raises(LedgerError):
            ledger.append(build_check_row(), broken)
        assert ledger.head() == before
        assert ledger.read(CheckRow) == []
        assert ledger.append(build_check_row()) == (1,)

    def test_a_number_beyond_64_bits_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match="duration_ms"):
            ledger.append(build_check_row().model_copy(update={"duration_ms": 2**63}))

    def test_a_number_that_is_not_finite_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match="cannot be recorded"):
            ledger.append(EventRow(run_id="r", type="t", payload={"ratio": float("nan")}))

    def test_text_no_database_can_hold_is_replaced_character_by_character(self, ledger: Ledger) -> None:
        ledger.append(build_check_row(task_id="a\udc80b\x00c"))
        (stored,) = ledger.read(CheckRow, task_id="a\udc80b\x00c")
        assert stored.row.task_id == "a\ufffdb\ufffdc"
        assert ledger.verify().ok

    def test_reading_filters_by_every_column_named(self, ledger: Ledger) -> None:
        ledger.append(
            build_check_row("r1", "t1"), build_check_row("r1", "t2"), build_check_row("r2", "t1", Verdict.FAIL)
        )
        assert [stored.seq for stored in ledger.read(CheckRow, run_id="r1")] == [1, 2]
        assert [stored.seq for stored in ledger.read(CheckRow, run_id="r1", task_id="t1")] == [1]
        assert [stored.seq for stored in ledger.read(CheckRow, passed=0)] == [3]
        assert [stored.seq for stored in ledger.read(CheckRow, state=Verdict.PASS)] == [1, 2]
        assert [stored.seq for stored in ledger.read(CheckRow, tree=None)] == [1, 2, 3]

    def test_reading_goes_on_after_a_sequence_number_up_to_a_limit(self, ledger: Ledger) -> None:
        ledger.append(*(build_check_row() for _ in range(5)))
        assert [stored.seq for stored in ledger.read(CheckRow, after=2, limit=2)] == [3, 4]

    def test_the_newest_can_come_first(self, ledger: Ledger) -> None:
        ledger.append(build_check_row("r1"), build_check_row("r2"), build_check_row("r1"), build_check_row("r1"))
        assert [stored.seq for stored in ledger.read(CheckRow, newest=True, limit=2, run_id="r1")] == [4, 3]

    def test_an_append_may_depend_on_what_the_last_row_is(self, ledger: Ledger) -> None:
        """All conditions are checked together: one that does not hold is enough."""
        none = LastRowCondition(CheckRow, {"run_id": "r1", "tree": None})
        assert ledger.append(build_check_row("r1"), build_check_row("r1"), provided=[none]) == (1, 2)
        assert ledger.append(build_check_row("r1"), provided=[none]) == ()
        assert (
            ledger.append(build_check_row("r1"), provided=[LastRowCondition(CheckRow, {"run_id": "r1"}, seq=1)]) == ()
        )
        newest = LastRowCondition(CheckRow, {"run_id": "r1"}, seq=2)
        assert ledger.append(build_check_row("r1"), provided=[newest, none]) == ()
        assert len(ledger.read(CheckRow)) == 2
        assert ledger.append(
            build_check_row("r1"), provided=[newest, LastRowCondition(EventRow, {"run_id": "r1"})]
        ) == (3,)
        assert ledger.verify().ok

    def test_of_many_appends_that_depend_on_the_same_row_one_is_written(self, open_ledger: OpenLedger) -> None:
        connections = [open_ledger() for _ in range(4)]
        written: list[int] = []

        def work(ledger: Ledger) -> None:
            for _ in range(10):
                last = ledger.read(CheckRow, newest=True, limit=1)
                condition = LastRowCondition(CheckRow, {"run_id": "run-1"}, seq=last[0].seq if last else 0)
                written.extend(ledger.append(build_check_row(), provided=[condition]))

        threads = [threading.Thread(target=work, args=(ledger,)) for ledger in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(written) == list(range(1, len(written) + 1)), "each append builds on the one before"
        assert len(written) >= 10, "the first append of every round is written"

    def test_a_message_id_is_unique_in_a_run(self, ledger: Ledger) -> None:
        def message(run: str, id: str) -> MessageRow:
            return MessageRow(message_id=id, run_id=run, sender="engine", recipient="planner", type="Dispatch")

        ledger.append(message("r1", "a"), message("r1", "b"), message("r2", "a"))
        with pytest.raises(LedgerError):
            ledger.append(message("r1", "c"), message("r1", "a"))
        assert [stored.row.message_id for stored in ledger.read(MessageRow, run_id="r1")] == ["a", "b"]

    def test_reading_by_an_unknown_column_names_it(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match="no column colour"):
            ledger.read(CheckRow, colour="red")

    def test_unverifiable_never_counts_as_passed(self, ledger: Ledger) -> None:
        ledger.append(*(build_check_row(state=state) for state in Verdict))
        assert [stored.row.state for stored in ledger.read(CheckRow, passed=1)] == [Verdict.PASS]

    def test_the_head_of_an_empty_ledger_is_its_genesis(self, ledger: Ledger) -> None:
        head = ledger.head()
        assert (head.seq, head.hash) == (0, genesis_hash(head.ledger_id))
        assert ledger.verify().ok

    def test_the_head_is_the_last_row(self, ledger: Ledger) -> None:
        ledger.append(*SAMPLE_ROWS)
        *_, last = read_all_rows(ledger)
        assert (ledger.head().seq, ledger.head().hash) == (last.seq, last.link.hash)

    def test_rows_form_one_chain_that_verifies_outside_the_ledger(self, ledger: Ledger) -> None:
        ledger.append(*SAMPLE_ROWS)
        ledger.append(build_check_row())
        entries = [ChainEntry(stored.link, stored.link, stored.values) for stored in read_all_rows(ledger)]
        assert len(entries) == len(SAMPLE_ROWS) + 1
        assert find_first_break(ledger.head().ledger_id, entries) is None

    def test_verification_holds_against_anchors_of_any_age(self, ledger: Ledger) -> None:
        anchors = [ledger.head()]
        for row in SAMPLE_ROWS:
            ledger.append(row)
            anchors.append(ledger.head())
        verification = ledger.verify(anchors)
        assert verification.ok
        assert verification.head == anchors[-1]

    def test_an_anchor_ahead_of_the_ledger_is_a_cut_tail(self, ledger: Ledger) -> None:
        ledger.append(build_check_row())
        ahead = Anchor(ledger_id=ledger.head().ledger_id, seq=3, hash="0" * 64)
        problem = ledger.verify([ahead]).problem
        assert problem is not None
        assert problem.seq == 2

    def test_an_anchor_of_another_ledger_does_not_hold(self, ledger: Ledger) -> None:
        ledger.append(build_check_row())
        other = Anchor(ledger_id="another", seq=1, hash=ledger.head().hash)
        assert not ledger.verify([other]).ok

    def test_a_second_connection_sees_what_the_first_wrote(self, open_ledger: OpenLedger) -> None:
        first, second = open_ledger(), open_ledger()
        first.append(build_check_row())
        assert [stored.seq for stored in second.read(CheckRow)] == [1]
        assert second.head() == first.head()
        assert second.append(build_check_row()) == (2,)
        assert first.verify().ok

    def test_rows_survive_closing(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()
        ledger.append(*SAMPLE_ROWS)
        head = ledger.head()
        ledger.close()
        again = open_ledger()
        assert again.head() == head
        assert again.verify([head]).ok

    def test_threads_share_a_connection_and_lose_nothing(self, ledger: Ledger) -> None:
        seqs: list[int] = []

        def work() -> None:
            for _ in range(20):
                seqs.extend(ledger.append(build_check_row(), build_check_row()))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seqs) == list(range(1, 161))
        assert ledger.verify().ok

    def test_the_hash_of_an_entry_can_be_read(self, ledger: Ledger) -> None:
        ledger.append(*SAMPLE_ROWS)
        assert ledger.hash_at(0) == genesis_hash(ledger.head().ledger_id)
        assert [ledger.hash_at(stored.seq) for stored in read_all_rows(ledger)] == [
            stored.link.hash for stored in read_all_rows(ledger)
        ]
        assert ledger.hash_at(len(SAMPLE_ROWS) + 1) is None

    def test_rows_are_authentic_and_edited_ones_are_not(self, ledger: Ledger) -> None:
        ledger.append(*SAMPLE_ROWS)
        for stored in read_all_rows(ledger):
            assert ledger.is_authentic(stored)
            assert not ledger.is_authentic(replace(stored, values={**stored.values, "ts": "another time"}))
        first, second = list(read_all_rows(ledger))[:2]
        assert not ledger.is_authentic(replace(first, link=second.link))

    def test_verification_goes_on_from_a_checkpoint(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()
        ledger.append(*SAMPLE_ROWS)
        assert ledger.checkpoint() is None
        assert ledger.verify().ok
        assert ledger.record_checkpoint(ledger.head()) == ""
        since = ledger.head()
        ledger.append(build_check_row())
        again = open_ledger()
        assert again.checkpoint() == since
        verification = again.verify(since=since)
        assert (verification.ok, verification.start, verification.head.seq) == (True, since.seq, since.seq + 1)
        not_in_chain = since.model_copy(update={"hash": "0" * 64})
        assert again.verify(since=not_in_chain).start == 0, "verification cannot begin at a hash outside the chain"

    def test_the_rows_of_a_run_can_be_read_alone(self, ledger: Ledger) -> None:
        ledger.append(build_check_row("r1"), build_check_row("r2"), EventRow(run_id="r1", type="run.finished"))
        assert [stored.seq for stored in read_all_rows(ledger, "r1")] == [1, 3]
