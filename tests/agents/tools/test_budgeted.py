"""A budget is held at the call: the mode's, that of all modes together, and the reasons to search."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofstone.agents.models import RefusalRule, ToolCall, ToolResult
from proofstone.agents.roles.models.plan_gate import ResearchMode
from proofstone.agents.rules.tool_budgets import SEARCH_REASONS, BudgetKind, ToolBudget
from proofstone.agents.tools.models import EXTERNAL_TOOLS, READING_TOOLS, Tool
from proofstone.agents.tools.toolbox import BudgetedTools, Toolbox, ToolCounts, Tools
from proofstone.agents.web.pages import WebPage
from proofstone.agents.web.providers import WebProviders
from tests.agents.tools.desk import Desk


@dataclass
class Gate:
    """The tools of the three modes, in one iteration."""

    toolbox: Toolbox
    counts: ToolCounts

    def tools(self, mode: ResearchMode) -> Tools:
        return BudgetedTools(self.toolbox, mode, self.counts)

    def call(self, mode: ResearchMode, tool: str, **arguments: object) -> ToolResult:
        return self.tools(mode).call(ToolCall.model_validate({"id": "c", "name": tool, "arguments": arguments}))

    def search(self, mode: ResearchMode, reason: str) -> ToolResult:
        return self.call(mode, "web_search", query="q", reason=reason)


def gate_at(folder: Path, budget: ToolBudget | None = None) -> Gate:
    web = WebProviders(
        search=lambda wanted, seconds, cancel: "found", fetch=lambda wanted, seconds, cancel: WebPage((wanted,), "page")
    )
    desk = Desk(folder, ground_more={"web": web}, allowed=READING_TOOLS | EXTERNAL_TOOLS)
    desk.put("a.txt")
    return Gate(desk.toolbox, ToolCounts(budget or ToolBudget()))


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return gate_at(tmp_path)


@pytest.mark.parametrize("mode", list(ResearchMode))
def test_each_mode_may_read_as_often_as_it_has_and_no_more(gate: Gate, mode: ResearchMode) -> None:
    limit = ToolBudget().limit(mode, BudgetKind.READ)
    for _ in range(limit):
        assert gate.call(mode, "read", path="a.txt").ok
    result = gate.call(mode, "read", path="a.txt")
    assert (result.ok, result.refused) == (False, RefusalRule.BUDGET)
    assert f"you had {limit}" in result.text and "Answer with what you know" in result.text


def test_tools_of_one_kind_share_its_budget(gate: Gate) -> None:
    assert gate.call(ResearchMode.PROBE, "read", path="a.txt").ok
    assert gate.call(ResearchMode.PROBE, "list").ok
    assert gate.call(ResearchMode.PROBE, "symbols", name="x").ok
    assert gate.call(ResearchMode.PROBE, "list").refused is RefusalRule.BUDGET
    assert gate.call(ResearchMode.PROBE, "grep", pattern="x").ok


def test_the_modes_have_budgets_of_their_own(gate: Gate) -> None:
    for _ in range(3):
        gate.call(ResearchMode.SURFACE, "read", path="a.txt")
    assert gate.call(ResearchMode.SURFACE, "read", path="a.txt").refused is RefusalRule.BUDGET
    assert gate.call(ResearchMode.PROBE, "read", path="a.txt").ok


def test_all_modes_together_are_held_too(gate: Gate) -> None:
    """What came before may have used what is now another mode's."""
    of_old = [ToolResult(call_id="c", name="read", text="x") for _ in range(13)]
    gate.counts.count_recorded(ResearchMode.RESOLVE, of_old)
    assert gate.call(ResearchMode.PROBE, "read", path="a.txt").ok
    result = gate.call(ResearchMode.PROBE, "read", path="a.txt")
    assert result.refused is RefusalRule.BUDGET and "all modes together had 14" in result.text


def test_a_call_that_came_to_nothing_counts(gate: Gate) -> None:
    for _ in range(ToolBudget().limit(ResearchMode.PROBE, BudgetKind.READ)):
        result = gate.call(ResearchMode.PROBE, "read", path="missing.txt")
        assert not result.ok and result.refused is None
    assert gate.call(ResearchMode.PROBE, "read", path="a.txt").refused is RefusalRule.BUDGET


@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("read", {}, RefusalRule.ARGUMENTS),
        ("read", {"path": "../x"}, RefusalRule.OUTSIDE),
        ("read", {"path": ".env"}, RefusalRule.SECRET),
        ("memory_search", {"query": "x"}, RefusalRule.UNLISTED),
        ("write", {"path": "a.txt", "content": "y"}, RefusalRule.UNLISTED),
        ("bash", {"command": "id"}, RefusalRule.UNLISTED),
        ("web_search", {"query": "q", "reason": "WHIM"}, RefusalRule.ARGUMENTS),
        ("web_search", {"query": "q", "reason": ["API_BEHAVIOR"]}, RefusalRule.ARGUMENTS),
    ],
)
def test_a_call_that_is_refused_does_not_count(
    gate: Gate, tool: str, arguments: dict[str, object], rule: RefusalRule
) -> None:
    for _ in range(20):
        assert gate.call(ResearchMode.RESOLVE, tool, **arguments).refused is rule
    assert (
        gate.call(ResearchMode.RESOLVE, "read", path="a.txt").ok
        and gate.search(ResearchMode.RESOLVE, "API_BEHAVIOR").ok
    )


@pytest.mark.parametrize(
    ("mode", "reason", "said"),
    [
        (ResearchMode.RESOLVE, "FILE_MISSING", "only for API_BEHAVIOR, STALE_KNOWLEDGE or INTEGRATION_UNKNOWN"),
        (ResearchMode.RESOLVE, "PRIOR_DECISION", "not for PRIOR_DECISION"),
        (ResearchMode.RESOLVE, "TEMPORAL_RISK", "not for TEMPORAL_RISK"),
        (ResearchMode.PROBE, "API_BEHAVIOR", "only for TEMPORAL_RISK"),
        (ResearchMode.SURFACE, "STALE_KNOWLEDGE", "may not search the web in mode surface"),
    ],
)
def test_a_search_for_the_wrong_reason_is_refused_and_not_counted(
    gate: Gate, mode: ResearchMode, reason: str, said: str
) -> None:
    for _ in range(5):
        result = gate.search(mode, reason)
        assert result.refused is RefusalRule.BUDGET and said in result.text
    for right in SEARCH_REASONS[mode]:
        assert gate.search(mode, right).ok


def test_a_search_for_a_right_reason_is_counted(gate: Gate) -> None:
    assert gate.search(ResearchMode.PROBE, "TEMPORAL_RISK").text == "found"
    assert gate.search(ResearchMode.PROBE, "TEMPORAL_RISK").refused is RefusalRule.BUDGET
    for reason in ("API_BEHAVIOR", "STALE_KNOWLEDGE", "INTEGRATION_UNKNOWN"):
        assert gate.search(ResearchMode.RESOLVE, reason).ok
    assert gate.search(ResearchMode.RESOLVE, "API_BEHAVIOR").refused is RefusalRule.BUDGET


def test_a_mode_is_not_told_of_tools_that_it_cannot_use_once(gate: Gate) -> None:
    offered = {mode: {spec.name for spec in gate.tools(mode).specs} for mode in ResearchMode}
    looking = {"read", "list", "symbols", "grep", "glob"}
    assert offered == {
        ResearchMode.RESOLVE: looking | {"web_search", "web_fetch"},
        ResearchMode.SURFACE: looking,
        ResearchMode.PROBE: looking | {"web_search"},
    }
    result = gate.call(ResearchMode.PROBE, "web_fetch", url="https://e.org")
    assert result.refused is RefusalRule.BUDGET and "you have none in this mode" in result.text


def test_a_raised_budget_reaches_as_far_as_it_was_raised(tmp_path: Path) -> None:
    gate = gate_at(tmp_path, ToolBudget().raise_limit(ResearchMode.RESOLVE, BudgetKind.WEB_FETCH, 1))
    done = [gate.call(ResearchMode.RESOLVE, "web_fetch", url="https://e.org").ok for _ in range(4)]
    assert done == [True, True, True, False]


def test_whoever_goes_on_has_what_was_left(gate: Gate) -> None:
    record = [
        ToolResult(call_id="1", name="read", text="x"),
        ToolResult(call_id="2", name="list", text="nothing", ok=False),
        ToolResult(call_id="3", name="read", text="x", repeated=True),
        ToolResult(call_id="4", name="read", text="no", ok=False, refused=RefusalRule.OUTSIDE),
        ToolResult(call_id="5", name="bash", text="no", ok=False, refused=RefusalRule.UNLISTED),
        ToolResult(call_id="6", name="web_fetch", text="no more", ok=False, refused=RefusalRule.BUDGET),
    ]
    gate.counts.count_recorded(ResearchMode.SURFACE, record)
    assert gate.call(ResearchMode.SURFACE, "read", path="a.txt").ok
    assert gate.call(ResearchMode.SURFACE, "read", path="a.txt").refused is RefusalRule.BUDGET


def test_threads_together_use_no_more_than_there_is(gate: Gate) -> None:
    results: list[ToolResult] = []
    together = threading.Barrier(9)

    def work(mode: ResearchMode) -> None:
        together.wait()
        results.extend(gate.call(mode, "grep", pattern="x") for _ in range(10))

    threads = [threading.Thread(target=work, args=(mode,)) for mode in ResearchMode for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(result.ok for result in results) == 13
    assert sum(result.refused is RefusalRule.BUDGET for result in results) == 90 - 13


def test_time_and_arguments_reach_the_tool_itself(gate: Gate) -> None:
    call = ToolCall(id="c", name=Tool.READ, arguments={"path": "a.txt"})
    assert "no time left" in gate.tools(ResearchMode.PROBE).call(call, 0.0).text
