"""A dispatch that is cut short and taken up again: nothing is asked for twice, nothing is left undone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import Dispatcher, DispatchRequest
from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.models import (
    Conversation,
    DispatchKey,
    DispatchResult,
    Fault,
    FaultKind,
    OutputHeader,
    ToolCall,
    Turn,
)
from proofstone.agents.roles.role import Role
from proofstone.agents.spending import SpendingMeter, list_spending, read_dispatch_records
from proofstone.agents.tools.models import READING_TOOLS, WRITING_TOOLS
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.common.models import Allowance, Budget, BudgetUsage, Usage
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.sandbox.job import SandboxResult
from proofstone.testing.backend_conformance import SAMPLE_ROLE as READER

ROLE = Role(
    name="executor",
    title="Writes what it is told",
    input=READER.input,
    output=READER.output,
    tools=READING_TOOLS | WRITING_TOOLS,
    prompt="executor.md",
    tier=1,
    completion=READER.completion,
)
USAGE = Usage(requests=1, input_tokens=10, output_tokens=5, usd=0.5)


def says(finding: str = "done") -> Turn:
    return Turn(answer={"finding": finding}, usage=USAGE)


def writes(path: str, content: str = "x\n") -> Turn:
    call = ToolCall(id=f"c-{path}", name="write", arguments={"path": path, "content": content})
    return Turn(calls=(call,), usage=USAGE)


def fault(kind: FaultKind) -> Fault:
    return Fault(kind=kind, why="?")


@dataclass
class Played:
    """A backend that says what was prepared, by how much the conversation holds already."""

    turns: list[Turn | Fault]
    asked: list[Conversation] = field(default_factory=list)

    @property
    def identity(self) -> BackendIdentity:
        return BackendIdentity("script:played")

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        self.asked.append(conversation)
        return self.turns.pop(0)

    def close(self) -> None:
        return None


def no_shell(_: ShellCommand) -> SandboxResult:
    raise AssertionError("nothing is run here")


@dataclass
class Table:
    ledger: SqliteLedger
    folder: Path
    work_trees: int = 0
    budget: Budget = field(default_factory=Budget)

    def dispatch(
        self,
        *turns: Turn | Fault,
        again: bool = False,
        occasion: DispatchKey | None = None,
        backend: Played | None = None,
        beginning: tuple[EventRow, ...] = (),
    ) -> DispatchResult:
        """In a new process, as it were: a new work tree, and what is known comes from the ledger."""
        self.work_trees += 1
        self.work_tree.mkdir()
        self.backend = backend or Played(list(turns))
        recorded = read_dispatch_records(self.ledger, "run-1")
        meter = SpendingMeter(self.budget, list_spending(recorded))
        dispatcher = Dispatcher(MessageBus(self.ledger, "run-1"), meter, recorded, pause_factor=0.0)
        ground = ToolContext(files=self.work_tree, scope=("**",), cancel=threading.Event())
        site = ExecutionContext(self.work_tree, self.folder, no_shell)
        toolbox = Toolbox(ground, ROLE.tools)
        errand = DispatchRequest("?", self.backend, toolbox, site, 60, first_rows=beginning)
        occasion = occasion or DispatchKey(run_id="run-1", role="executor", step="task-01/a1", task="task-01")
        made = dispatcher.dispatch if again else dispatcher.dispatch_once
        try:
            return made(ROLE, occasion, errand)
        finally:
            self.meter = meter

    @property
    def work_tree(self) -> Path:
        return self.folder / f"tree-{self.work_trees}"

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.work_tree.iterdir()}

    def ids(self) -> list[str]:
        return [stored.row.message_id for stored in self.ledger.read(MessageRow, run_id="run-1")]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with SqliteLedger(tmp_path / "ledger" / "ledger.db") as ledger:
        yield Table(ledger, tmp_path)


def test_a_cut_dispatch_goes_on_where_it_was_in_a_new_work_tree(table: Table) -> None:
    first = table.dispatch(writes("a"), writes("b"), fault(FaultKind.CANCELLED))
    assert first.fault is not None and first.fault.kind is FaultKind.CANCELLED
    second = table.dispatch(writes("c"), says())
    assert second.fault is None and second.turns == 4 and second.usage.requests == 4
    assert len(table.backend.asked) == 2, "what is on record is not asked for again"
    assert table.files == {"a", "b", "c"}, "what tools did is done again"
    assert table.meter.get_spent() == BudgetUsage(
        requests=4, input_tokens=40, output_tokens=20, usd=2.0, tool_calls=3, seconds=table.meter.get_spent().seconds
    )


def test_a_finished_dispatch_is_not_asked_for_again_at_all(table: Table) -> None:
    table.dispatch(writes("a"), says("first"))
    before = table.ids()
    again = table.dispatch()
    assert again.output == READER.output.model_validate({"finding": "first"})
    assert table.files == {"a"} and table.ids() == before


def test_repairs_are_taken_up_as_well(table: Table) -> None:
    table.dispatch(Turn(text="nonsense", usage=USAGE), fault(FaultKind.CANCELLED))
    again = table.dispatch(says())
    assert again.fault is None and again.repairs == 1
    assert table.backend.asked[0].repairs == 1


def test_what_an_agent_did_behind_the_runtimes_back_only_it_can_do_again(table: Table) -> None:
    table.dispatch(writes("a").model_copy(update={"acted": True}), fault(FaultKind.CANCELLED))
    again = table.dispatch(writes("a"), says())
    assert again.fault is None and len(table.backend.asked) == 2
    assert table.ids() == [
        "task-01/a1/executor#begun",
        "task-01/a1/executor#turn-0",
        "task-01/a1/executor#result-0",
        "task-01/a1/executor#fault-1-0",
        "task-01/a1/executor~2#begun",
        "task-01/a1/executor~2#turn-0",
        "task-01/a1/executor~2#result-0",
        "task-01/a1/executor~2#turn-1",
        "task-01/a1/executor~2#output",
    ]
    assert table.meter.get_spent().requests == 3, "the first take has been paid for too"


def test_what_an_agent_did_before_it_failed_only_it_can_do_again(table: Table) -> None:
    failed = Fault(kind=FaultKind.UNAVAILABLE, why="?", acted=True)
    table.dispatch(failed, writes("a"), fault(FaultKind.CANCELLED))
    again = table.dispatch(writes("b"), says())
    assert again.fault is None and len(table.backend.asked) == 2, "it begins anew"
    assert table.files == {"b"} and "task-01/a1/executor~2#begun" in table.ids()


def test_it_counts_also_where_it_was_the_person_who_ended_it(table: Table) -> None:
    class Interrupted(Played):
        def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
            site.cancel.set()
            return Fault(kind=FaultKind.CRASHED, why="ended", acted=True)

    table.dispatch(writes("a"), fault(FaultKind.CANCELLED))
    table.dispatch(backend=Interrupted([]))
    (known,) = read_dispatch_records(table.ledger, "run-1").values()
    assert known.fault is not None and known.fault.kind is FaultKind.CANCELLED
    assert not known.can_resume


def test_another_attempt_is_another_dispatch(table: Table) -> None:
    table.dispatch(writes("a"), says())
    other = DispatchKey(run_id="run-1", role="executor", step="task-01/a2", task="task-01", attempt=2)
    table.dispatch(says("second"), occasion=other)
    assert table.files == set() and len(table.backend.asked) == 1
    assert table.meter.get_spent("task-01").requests == 3, "a task pays for all its attempts"


def test_what_belongs_to_its_beginning_is_on_record_once_before_anybody_is_asked(table: Table) -> None:
    begun = EventRow(run_id="run-1", type="begun")
    told: list[int] = []

    class Looks(Played):
        def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
            told.append(len(table.ledger.read(EventRow, run_id="run-1", type="begun")))
            return super().turn(conversation, site, seconds)

    asked = Looks([fault(FaultKind.CRASHED), says()])
    done = table.dispatch(again=True, backend=asked, beginning=(begun,))
    assert done.occasion.dispatch == 2
    assert told == [1, 1]


@pytest.mark.parametrize("kind", [FaultKind.CRASHED, FaultKind.MALFORMED])
def test_what_may_have_been_chance_is_asked_for_once_more(table: Table, kind: FaultKind) -> None:
    done = table.dispatch(fault(kind), says(), again=True)
    assert done.fault is None and done.occasion.dispatch == 2
    assert "task-01/a1/executor/d2#output" in table.ids()


@pytest.mark.parametrize("kind", [FaultKind.DENIED, FaultKind.FAILED, FaultKind.TIMEOUT, FaultKind.BUDGET])
def test_what_was_no_chance_is_not(table: Table, kind: FaultKind) -> None:
    done = table.dispatch(fault(kind), says(), again=True)
    assert done.fault is not None and done.fault.kind is kind and len(table.backend.asked) == 1


def test_a_second_dispatch_that_was_cut_is_taken_up_and_not_the_first(table: Table) -> None:
    table.dispatch(fault(FaultKind.CRASHED), writes("a"), fault(FaultKind.CANCELLED), again=True)
    done = table.dispatch(says(), again=True)
    assert done.fault is None and done.occasion.dispatch == 2 and len(table.backend.asked) == 1


def test_a_budget_is_looked_at_before_a_turn_and_counts_what_was_spent_before(table: Table) -> None:
    table.budget = Budget(run=Allowance(usd=1.0))
    stopped = table.dispatch(writes("a"), writes("b"), says())
    assert stopped.fault is not None and stopped.fault.kind is FaultKind.BUDGET
    assert len(table.backend.asked) == 2 and "$1" in stopped.fault.why and table.meter.stop_reason == stopped.fault.why
    table.budget = Budget(run=Allowance(usd=1.2))
    assert table.dispatch(says()).fault is None


def test_an_answer_goes_on_record_with_who_gave_it_when_and_in_which_schema(table: Table) -> None:
    table.dispatch(says("found"))
    (said,) = [one.row.payload for one in table.ledger.read(MessageRow, run_id="run-1", type="Output")]
    header = OutputHeader.model_validate(said["output"])
    assert (header.agent, header.instance, header.step) == ("executor", "task-01/a1/executor", "task-01/a1")
    assert header.schema_version == ROLE.schema_version and header.payload["finding"] == "found"
    assert header.started_at <= header.completed_at
