"""Tests that every backend must pass, whatever is behind it. Subclass `BackendConformance` and define `stage`.

    class TestMine(BackendConformance):
        @pytest.fixture
        def stage(self, site): return lambda *plays: MyBackend(what, behaves, like, plays)

`stage(*plays)` returns a backend whose other side does these things, turn by turn. Each test is a whole dispatch: real
tools, a real ledger, the engine's own loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import JsonValue

from proofstone.agents.backends import Backend
from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import Dispatcher, DispatchRequest
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Completion, CompletionStatus, DispatchKey, DispatchResult, FaultKind, RefusalRule
from proofstone.agents.roles.role import Role, format_request
from proofstone.agents.spending import SpendingMeter
from proofstone.agents.tools.models import READING_TOOLS
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.common.models import Allowance, Budget, FrozenModel
from proofstone.ledger.models import MessageRow
from proofstone.ledger.sqlite import SqliteLedger


@dataclass(frozen=True)
class AnswerPlay:
    """Give an answer, in the form in which the backend gives answers."""

    answer: Mapping[str, JsonValue]


@dataclass(frozen=True)
class TextPlay:
    """Write a text, unchanged, instead of an answer."""

    text: str


@dataclass(frozen=True)
class CallPlay:
    """Call a tool before answering."""

    name: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class HangPlay:
    """Send nothing for a very long time."""


@dataclass(frozen=True)
class CrashPlay:
    """Crash without a message."""


Play = AnswerPlay | TextPlay | CallPlay | HangPlay | CrashPlay
BuildBackend = Callable[..., Backend]


class SampleQuestion(FrozenModel):
    question: str


class SampleFinding(FrozenModel):
    finding: str
    where: tuple[str, ...] = ()


def _build_completion(_: FrozenModel) -> Completion:
    return Completion(status=CompletionStatus.DONE, summary="looked")


SAMPLE_ROLE = Role(
    name="researcher",
    title="Looks at what is there",
    input=SampleQuestion,
    output=SampleFinding,
    tools=READING_TOOLS,
    prompt="researcher.md",
    tier=1,
    completion=_build_completion,
    tool_calls=8,
)
GOOD_ANSWER: Mapping[str, JsonValue] = {"finding": "an a", "where": ["a.txt"]}
_READ = CallPlay("read", {"path": "a.txt"})


@dataclass
class DispatchHarness:
    """Makes dispatches and records them."""

    ledger: SqliteLedger
    site: ExecutionContext
    budget: Budget = field(default_factory=Budget)

    def dispatch(self, backend: Backend, *, seconds: float | None = 60) -> DispatchResult:
        toolbox = Toolbox(
            ToolContext(files=self.site.work_tree, scope=(), run=None, cancel=self.site.cancel), SAMPLE_ROLE.tools
        )
        dispatcher = Dispatcher(MessageBus(self.ledger, "run-1"), SpendingMeter(self.budget), pause_factor=0.0)
        text = format_request(SAMPLE_ROLE, SampleQuestion(question="what is in a.txt?"))
        errand = DispatchRequest(text, backend, toolbox, self.site, seconds)
        return dispatcher.dispatch_once(
            SAMPLE_ROLE, DispatchKey(run_id="run-1", role=SAMPLE_ROLE.name, step="s"), errand
        )

    def read_messages(self) -> list[MessageRow]:
        return [stored.row for stored in self.ledger.read(MessageRow, run_id="run-1")]

    def list_message_types(self) -> list[str]:
        """Return the types of the messages to and from the engine, without the activities of a program in between."""
        return [row.type for row in self.read_messages() if row.type != "Activity"]


class BackendConformance:
    """The tests that every backend must pass."""

    crash_kinds: ClassVar[frozenset[FaultKind]] = frozenset((FaultKind.CRASHED,))
    """The kinds of fault that a crash of the other side may have."""

    @pytest.fixture
    def stage(self) -> BuildBackend:
        raise NotImplementedError("a subclass must define how its other side behaves")

    @pytest.fixture
    def table(self, tmp_path: Path, site: ExecutionContext) -> Iterator[DispatchHarness]:
        """Override this if the backend needs another site."""
        (site.work_tree / "a.txt").write_text("a\n")
        with SqliteLedger(tmp_path / "ledger" / "ledger.sqlite") as ledger:
            yield DispatchHarness(ledger, site)

    def test_an_answer_of_the_schema_is_the_output(self, stage: BuildBackend, table: DispatchHarness) -> None:
        backend = stage(AnswerPlay(GOOD_ANSWER))
        dispatched = table.dispatch(backend)
        backend.close()
        assert dispatched.output == SampleFinding(finding="an a", where=("a.txt",)), dispatched.fault
        assert (dispatched.turns, dispatched.repairs) == (1, 0)

    def test_an_answer_with_prose_a_fence_and_a_thought_around_it_is_found(
        self, stage: BuildBackend, table: DispatchHarness
    ) -> None:
        text = '<think>{"finding": "no"}</think>\nHere it is:\n```json\n{"finding": "an a"}\n```\nDone.'
        backend = stage(TextPlay(text))
        dispatched = table.dispatch(backend)
        backend.close()
        assert dispatched.output == SampleFinding(finding="an a"), dispatched.fault

    def test_a_tool_is_called_and_its_result_comes_back(self, stage: BuildBackend, table: DispatchHarness) -> None:
        backend = stage(_READ, AnswerPlay(GOOD_ANSWER))
        dispatched = table.dispatch(backend)
        backend.close()
        assert isinstance(dispatched.output, SampleFinding), dispatched.fault
        assert (dispatched.turns, dispatched.tool_calls, dispatched.refusals) == (2, 1, 0)
        (result,) = [row.payload["result"] for row in table.read_messages() if row.type == "ToolResult"]
        assert isinstance(result, dict) and result["ok"] and "a" in str(result["text"])

    def test_a_tool_that_the_role_does_not_have_is_refused_and_the_agent_continues(
        self, stage: BuildBackend, table: DispatchHarness
    ) -> None:
        backend = stage(CallPlay("write", {"path": "a.txt", "content": "b"}), AnswerPlay(GOOD_ANSWER))
        dispatched = table.dispatch(backend)
        backend.close()
        assert isinstance(dispatched.output, SampleFinding), dispatched.fault
        assert dispatched.refusals == 1
        (result,) = [row.payload["result"] for row in table.read_messages() if row.type == "ToolResult"]
        assert isinstance(result, dict) and result["refused"] == RefusalRule.UNLISTED
        assert (table.site.work_tree / "a.txt").read_text() == "a\n"

    def test_an_answer_that_is_not_of_the_schema_is_repaired(self, stage: BuildBackend, table: DispatchHarness) -> None:
        backend = stage(AnswerPlay({"finding": None}), AnswerPlay(GOOD_ANSWER))
        dispatched = table.dispatch(backend)
        backend.close()
        assert isinstance(dispatched.output, SampleFinding), dispatched.fault
        assert dispatched.repairs == 1
        assert table.list_message_types() == ["Dispatch", "Turn", "Repair", "Turn", "Output"]

    def test_after_two_repairs_the_dispatch_is_malformed(self, stage: BuildBackend, table: DispatchHarness) -> None:
        backend = stage(*(TextPlay(f"I cannot say ({n})") for n in range(3)))
        dispatched = table.dispatch(backend)
        backend.close()
        assert dispatched.fault is not None and dispatched.fault.kind is FaultKind.MALFORMED
        assert dispatched.completion.status is CompletionStatus.ERROR

    def test_it_ends_when_it_is_cancelled(self, stage: BuildBackend, table: DispatchHarness) -> None:
        backend = stage(_READ, HangPlay())
        done: list[DispatchResult] = []
        thread = threading.Thread(target=lambda: done.append(table.dispatch(backend, seconds=None)))
        thread.start()
        while "ToolResult" not in table.list_message_types():
            time.sleep(0.02)
        table.site.cancel.set()
        thread.join(30)
        assert not thread.is_alive()
        backend.close()
        assert done[0].fault is not None and done[0].fault.kind is FaultKind.CANCELLED

    def test_it_ends_at_its_deadline(self, stage: BuildBackend, table: DispatchHarness) -> None:
        backend = stage(HangPlay())
        dispatched = table.dispatch(backend, seconds=1)
        backend.close()
        assert dispatched.fault is not None and dispatched.fault.kind is FaultKind.TIMEOUT

    def test_a_crash_of_the_other_side_is_a_fault(self, stage: BuildBackend, table: DispatchHarness) -> None:
        backend = stage(CrashPlay(), CrashPlay(), CrashPlay())
        dispatched = table.dispatch(backend)
        backend.close()
        assert dispatched.fault is not None and dispatched.fault.kind in self.crash_kinds
        assert dispatched.fault.why
        assert table.list_message_types()[0] == "Dispatch" and set(table.list_message_types()[1:]) == {"Fault"}

    def test_a_spent_budget_stops_it_before_the_next_turn(self, stage: BuildBackend, table: DispatchHarness) -> None:
        table.budget = Budget(run=Allowance(tool_calls=1))
        backend = stage(_READ, AnswerPlay(GOOD_ANSWER))
        dispatched = table.dispatch(backend)
        backend.close()
        assert dispatched.fault is not None and dispatched.fault.kind is FaultKind.BUDGET
        assert "1 tool call " in dispatched.fault.why
        assert dispatched.turns == 1

    def test_any_character_comes_through(self, stage: BuildBackend, table: DispatchHarness) -> None:
        text = 'Grüße, 世界, 🎉, \u202e\u0301\t"quoted" \\ {brace} \n- line two: yes # no\x7f'
        backend = stage(AnswerPlay({"finding": text}))
        dispatched = table.dispatch(backend)
        backend.close()
        assert dispatched.output == SampleFinding(finding=text), dispatched.fault

    def test_an_answer_of_a_megabyte_comes_through(self, stage: BuildBackend, table: DispatchHarness) -> None:
        text = ("0123456789abcde\n" * (1 << 16))[: 1 << 20]
        backend = stage(AnswerPlay({"finding": text}))
        dispatched = table.dispatch(backend)
        backend.close()
        assert isinstance(dispatched.output, SampleFinding), dispatched.fault
        assert dispatched.output.finding == text

    def test_every_message_is_on_the_bus_in_order(self, stage: BuildBackend, table: DispatchHarness) -> None:
        backend = stage(_READ, AnswerPlay({"finding": None}), AnswerPlay(GOOD_ANSWER))
        table.dispatch(backend)
        backend.close()
        expected_types = ["Dispatch", "Turn", "ToolResult", "Turn", "Repair", "Turn", "Output"]
        assert table.list_message_types() == expected_types
        assert {row.payload["dispatch"] for row in table.read_messages()} == {"s/researcher"}

    def test_the_identity_is_known_without_a_request(self, stage: BuildBackend) -> None:
        backend = stage(AnswerPlay(GOOD_ANSWER))
        assert backend.identity.spec
        backend.close()
