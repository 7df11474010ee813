"""The driver performs what a workflow yields, records it once, and looks it up when the workflow runs again."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proofstone.common.models import BudgetUsage
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.runtime.journal import Journal, JournalMismatchError
from proofstone.runtime.workflow import Handlers, Operation, QuestionPendingError, drive
from proofstone.solve.rules.effects import AskPerson, ElapsedTime, MeasureTime, UserReply

RUN = "20260101T000000Z-driver"
Workflow = Generator[MeasureTime | AskPerson | tuple[MeasureTime, ...], object, list[int]]


def measure_three() -> Workflow:
    """One measurement, then two that may be made in parallel."""
    first = yield MeasureTime(1)
    others = yield (MeasureTime(2), MeasureTime(3))
    assert isinstance(first, ElapsedTime) and isinstance(others, tuple)
    return [first.ms, *(other.ms for other in others)]


@dataclass
class Observer:
    lines: list[str] = field(default_factory=list)

    def on_agent_started(self, agent: str, about: str) -> None:
        self.lines.append(f"{agent} starts: {about}")

    def on_agent_ended(self, agent: str, said: str, *, failed: bool) -> None:
        self.lines.append(f"{agent} ends: {said}{' (failed)' if failed else ''}")

    def on_activity(self, agent: str, line: str) -> None: ...

    def on_message(self, agent: str, line: str) -> None: ...

    def on_spending(self, spent: BudgetUsage) -> None: ...


@dataclass
class Clock:
    """Measures 100, 200, … and counts how often it was asked, in which threads."""

    asked: list[int] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    fails_in: int = 0
    input: str = "the same"

    @property
    def handlers(self) -> Handlers:
        return {MeasureTime: self.handle}

    def handle(self, effect: MeasureTime) -> Operation[ElapsedTime]:
        def measure() -> ElapsedTime:
            if effect.round == self.fails_in:
                raise RuntimeError("the clock stands still")
            self.asked.append(effect.round)
            self.threads.add(threading.get_ident())
            return ElapsedTime(100 * effect.round)

        return Operation(
            measure,
            step=f"time/{effect.round}",
            input=self.input,
            in_thread=True,
            agent="clock",
            about=f"round {effect.round}",
            describe=lambda elapsed: (f"{elapsed.ms} ms", elapsed.ms > 200),
        )


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with closing(SqliteLedger(tmp_path / "ledger.db", "create")) as ledger:
        yield ledger


def load(ledger: SqliteLedger) -> Journal:
    return Journal.load(ledger, RUN, "solve.step", "solve")


def test_a_workflow_is_driven_to_its_end(ledger: SqliteLedger) -> None:
    clock, observer = Clock(), Observer()
    ended = drive(measure_three(), clock.handlers, load(ledger), observer, max_parallel=2, cancel=threading.Event())
    assert ended == [100, 200, 300]
    assert threading.get_ident() not in clock.threads
    assert sorted(observer.lines) == [
        "clock ends: 100 ms",
        "clock ends: 200 ms",
        "clock ends: 300 ms (failed)",
        "clock starts: round 1",
        "clock starts: round 2",
        "clock starts: round 3",
    ]


def test_a_resumed_workflow_repeats_nothing_that_is_recorded(ledger: SqliteLedger) -> None:
    killed = Clock(fails_in=3)
    with pytest.raises(RuntimeError, match="stands still"):
        drive(measure_three(), killed.handlers, load(ledger))
    resumed, observer = Clock(), Observer()
    assert drive(measure_three(), resumed.handlers, load(ledger), observer) == [100, 200, 300]
    assert (killed.asked, resumed.asked) == ([1, 2], [3])
    assert observer.lines == ["clock starts: round 3", "clock ends: 300 ms (failed)"]
    steps = [row.row.payload["step"] for row in ledger.read(EventRow, run_id=RUN, type="solve.step")]
    assert steps == ["time/1", "time/2", "time/3"]


def test_another_input_under_a_recorded_name_is_an_error(ledger: SqliteLedger) -> None:
    drive(measure_three(), Clock().handlers, load(ledger))
    with pytest.raises(JournalMismatchError, match="time/1 differs from its input now"):
        drive(measure_three(), Clock(input="another").handlers, load(ledger))


def test_a_result_that_the_operation_has_recorded_itself_is_recorded_once(ledger: SqliteLedger) -> None:
    journal, seen = load(ledger), []

    def handle(effect: MeasureTime) -> Operation[ElapsedTime]:
        step = f"time/{effect.round}"

        def measure() -> ElapsedTime:
            journal.record(step, "", {"own": effect.round})
            return ElapsedTime(effect.round)

        def decode(payload: object) -> ElapsedTime:
            assert payload == {"step": step, "asked": journal_digest, "own": effect.round}
            return ElapsedTime(effect.round)

        return Operation(measure, step, decode=decode, on_result=lambda elapsed: seen.append(elapsed.ms))

    journal_digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of the empty input
    for _ in range(2):
        assert drive(measure_three(), {MeasureTime: handle}, journal) == [1, 2, 3]
    assert len(ledger.read(EventRow, run_id=RUN)) == 3
    assert seen == [1, 2, 3, 1, 2, 3]


def test_a_result_that_is_not_final_is_not_recorded(ledger: SqliteLedger) -> None:
    handlers: Handlers = {
        MeasureTime: lambda effect: Operation(
            lambda: ElapsedTime(effect.round), f"time/{effect.round}", encode=lambda _: None
        )
    }
    drive(measure_three(), handlers, load(ledger))
    assert not ledger.read(EventRow, run_id=RUN)


def test_a_question_that_nobody_answers_ends_the_workflow() -> None:
    def ask() -> Generator[AskPerson, UserReply, str]:
        reply = yield AskPerson("Which one?")
        return reply.text

    def nobody() -> UserReply:
        raise QuestionPendingError(AskPerson("Which one?"))

    with pytest.raises(QuestionPendingError) as pending:
        drive(ask(), {AskPerson: lambda _: Operation(nobody)})
    assert pending.value.effect == AskPerson("Which one?")
    assert drive(ask(), {AskPerson: lambda _: Operation(lambda: UserReply("this one"))}) == "this one"


def test_an_effect_without_a_handler_is_a_bug_that_is_seen() -> None:
    with pytest.raises(KeyError, match="MeasureTime"):
        drive(measure_three(), {})
