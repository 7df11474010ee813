"""The budgets are the protocol's tables, to the number; only a raise moves them, and not past twice the table."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.roles.models.plan_gate import ResearchMode
from proofstone.agents.roles.models.plan_gate_records import UnknownType
from proofstone.agents.rules.tool_budgets import (
    COMBINED_LIMITS,
    MODE_LIMITS,
    TOOL_KINDS,
    BudgetKind,
    ToolBudget,
    explain_search_refusal,
    find_kind,
    find_tools,
)
from proofstone.agents.tools.models import (
    CLAIMING_TOOLS,
    EXTERNAL_TOOLS,
    READING_TOOLS,
    WRITING_TOOLS,
    SearchReason,
    Tool,
)
from tests.rows import each_row

TABLE = {
    ResearchMode.RESOLVE: {"Read": 8, "Grep": 5, "git log": 0, "memory_search": 3, "WebSearch": 3, "WebFetch": 2},
    ResearchMode.SURFACE: {"Read": 3, "Grep": 4, "git log": 1, "memory_search": 3, "WebSearch": 0, "WebFetch": 0},
    ResearchMode.PROBE: {"Read": 3, "Grep": 4, "git log": 0, "memory_search": 2, "WebSearch": 1, "WebFetch": 0},
}
TOTALS = {"Read": 14, "Grep": 13, "git log": 1, "memory_search": 8, "WebSearch": 4, "WebFetch": 2}
EVERY = [(mode, kind) for mode in ResearchMode for kind in BudgetKind]


@each_row(("mode", "kind"), EVERY)
@pytest.mark.seed("plan-gate", "tool-budgets")
def test_each_mode_has_what_the_protocol_gives_it(mode: ResearchMode, kind: BudgetKind) -> None:
    assert ToolBudget().limit(mode, kind) == TABLE[mode][kind]


@each_row("kind", list(BudgetKind))
@pytest.mark.seed("plan-gate", "combined-budget")
def test_all_modes_together_have_what_the_protocol_gives_them(kind: BudgetKind) -> None:
    assert ToolBudget().combined_limit(kind) == TOTALS[kind] == sum(TABLE[mode][kind] for mode in ResearchMode)


@each_row(
    ("kind", "tools"),
    [
        ("Read", {"read", "list", "symbols"}),
        ("Grep", {"grep", "glob"}),
        ("git log", {"git_log", "git_show", "git_diff"}),
        ("memory_search", {"memory_search"}),
        ("WebSearch", {"web_search"}),
        ("WebFetch", {"web_fetch"}),
    ],
)
def test_tools_count_as_what_they_are(kind: str, tools: set[str]) -> None:
    assert {str(tool) for tool, its in TOOL_KINDS.items() if its == kind} == tools


def test_every_tool_that_changes_nothing_is_counted() -> None:
    assert TOOL_KINDS.keys() == READING_TOOLS | EXTERNAL_TOOLS == set(Tool) - WRITING_TOOLS - CLAIMING_TOOLS


def test_a_mode_has_the_tools_that_it_has_a_limit_for() -> None:
    looking = {Tool.READ, Tool.LIST, Tool.SYMBOLS, Tool.GREP, Tool.GLOB, Tool.MEMORY_SEARCH}
    assert find_tools(ResearchMode.RESOLVE) == looking | {Tool.WEB_SEARCH, Tool.WEB_FETCH}
    assert find_tools(ResearchMode.SURFACE) == looking | {Tool.GIT_LOG, Tool.GIT_SHOW, Tool.GIT_DIFF}
    assert find_tools(ResearchMode.PROBE) == looking | {Tool.WEB_SEARCH}


@each_row(
    ("mode", "kind", "by", "limit", "combined"),
    [
        (ResearchMode.RESOLVE, BudgetKind.READ, 2, 10, 16),
        (ResearchMode.RESOLVE, BudgetKind.READ, 8, 16, 22),
        (ResearchMode.RESOLVE, BudgetKind.WEB_SEARCH, 8, 6, 7),
        (ResearchMode.SURFACE, BudgetKind.GIT_LOG, 1, 2, 2),
        (ResearchMode.SURFACE, BudgetKind.WEB_SEARCH, 5, 0, 4),
        (ResearchMode.PROBE, BudgetKind.GREP, 0, 4, 13),
    ],
)
def test_a_raise_lifts_the_mode_and_the_total_and_not_past_double(
    mode: ResearchMode, kind: BudgetKind, by: int, limit: int, combined: int
) -> None:
    raised = ToolBudget().raise_limit(mode, kind, by)
    assert (raised.limit(mode, kind), raised.combined_limit(kind)) == (limit, combined)
    others = [(one, what) for one, what in EVERY if (one, what) != (mode, kind)]
    assert all(raised.limit(*other) == ToolBudget().limit(*other) for other in others)


def test_a_raise_that_gives_nothing_changes_nothing() -> None:
    full = ToolBudget().raise_limit(ResearchMode.PROBE, BudgetKind.WEB_SEARCH, 1)
    assert full.raise_limit(ResearchMode.PROBE, BudgetKind.WEB_SEARCH, 1) is full
    assert full.raise_limit(ResearchMode.SURFACE, BudgetKind.WEB_FETCH, 2) is full


@given(
    st.lists(st.tuples(st.sampled_from(ResearchMode), st.sampled_from(BudgetKind), st.integers(-3, 20)), max_size=20)
)
def test_no_sequence_of_raises_goes_past_double_or_below_the_table(
    raises: list[tuple[ResearchMode, BudgetKind, int]],
) -> None:
    budget = ToolBudget()
    for mode, kind, by in raises:
        budget = budget.raise_limit(mode, kind, by)
    for mode, kind in EVERY:
        assert TABLE[mode][kind] <= budget.limit(mode, kind) <= 2 * TABLE[mode][kind]
    for kind in BudgetKind:
        assert (
            budget.combined_limit(kind)
            == sum(budget.limit(mode, kind) for mode in ResearchMode)
            <= 2 * COMBINED_LIMITS[kind]
        )


REASONS = [(mode, reason) for mode in ResearchMode for reason in get_args(SearchReason)]
MAY = {
    (ResearchMode.RESOLVE, "API_BEHAVIOR"),
    (ResearchMode.RESOLVE, "STALE_KNOWLEDGE"),
    (ResearchMode.RESOLVE, "INTEGRATION_UNKNOWN"),
    (ResearchMode.PROBE, "TEMPORAL_RISK"),
}


@each_row(("mode", "reason"), REASONS)
@pytest.mark.seed("plan-gate", "web-search")
def test_the_web_is_searched_only_for_what_the_protocol_allows(mode: ResearchMode, reason: str) -> None:
    assert (explain_search_refusal(mode, reason) == "") is ((mode, reason) in MAY)


def test_what_is_no_reason_is_none() -> None:
    assert "API_BEHAVIOR, STALE_KNOWLEDGE or INTEGRATION_UNKNOWN, not for WHIM" in explain_search_refusal(
        ResearchMode.RESOLVE, "WHIM"
    )
    assert "You may not search the web" in explain_search_refusal(ResearchMode.SURFACE, "API_BEHAVIOR")


def test_the_reasons_are_the_types_of_unknowns_and_one_risk() -> None:
    assert set(get_args(SearchReason)) == {*UnknownType, "TEMPORAL_RISK"}


@each_row(
    ("text", "kind"),
    [
        *((str(kind), kind) for kind in BudgetKind),
        *((str(tool), kind) for tool, kind in TOOL_KINDS.items()),
        ("web search", BudgetKind.WEB_SEARCH),
        ("WEBFETCH", BudgetKind.WEB_FETCH),
        (" git-log ", BudgetKind.GIT_LOG),
        ("", None),
        ("write", None),
        ("everything", None),
    ],
)
def test_a_budget_is_known_by_its_names(text: str, kind: BudgetKind | None) -> None:
    assert find_kind(text) is kind


def test_an_agent_is_told_its_limits_in_words() -> None:
    assert ToolBudget().format_lines(ResearchMode.PROBE) == (
        "Grep: `grep`, `glob` 4 times in all",
        "Read: `read`, `list`, `symbols` 3 times in all",
        "memory_search: `memory_search` 2 times",
        "WebSearch: `web_search` once, only for TEMPORAL_RISK",
    )


def test_an_agent_is_not_told_of_tools_that_it_is_not_offered() -> None:
    lines = ToolBudget().format_lines(ResearchMode.RESOLVE, {Tool.READ, Tool.GREP})
    assert lines == ("Read: `read` 8 times", "Grep: `grep` 5 times")


def test_all_budgets_are_listed_by_mode_with_their_totals() -> None:
    lines = ToolBudget().raise_limit(ResearchMode.SURFACE, BudgetKind.GIT_LOG, 1).format_all_lines()
    assert lines == (
        "resolve: Read 8, Grep 5, memory_search 3, WebSearch 3, WebFetch 2",
        "surface: memory_search 3, Grep 4, Read 3, git log 2",
        "probe: Grep 4, Read 3, memory_search 2, WebSearch 1",
        "together: Read 14, Grep 13, git log 2, memory_search 8, WebSearch 4, WebFetch 2",
    )
    assert all(find_kind(kind) is kind for mode in ResearchMode for kind in MODE_LIMITS[mode])
