"""How often a researcher may use each tool in one iteration, and what it may search the web for.

The tables are those of the protocol. Rules:
- a mode does not have a tool that has no limit in its table;
- only a directive of the synthesizer raises a budget: for the mode and for all modes together, and never beyond twice
  the limit in the table;
- where the protocol gives no total (`git log`), it is the sum of the limits of the modes.

`agents.tools.toolbox` counts the calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.models.plan_gate import ResearchMode
from proofstone.agents.tools.models import Tool


class BudgetKind(StrEnum):
    """What is counted, with the names of the protocol."""

    READ = "Read"
    GREP = "Grep"
    GIT_LOG = "git log"
    MEMORY_SEARCH = "memory_search"
    WEB_SEARCH = "WebSearch"
    WEB_FETCH = "WebFetch"


MODE_LIMITS: Final[Mapping[ResearchMode, Mapping[BudgetKind, int]]] = MappingProxyType(
    {
        ResearchMode.RESOLVE: {
            BudgetKind.READ: 8,
            BudgetKind.GREP: 5,
            BudgetKind.MEMORY_SEARCH: 3,
            BudgetKind.WEB_SEARCH: 3,
            BudgetKind.WEB_FETCH: 2,
        },
        ResearchMode.SURFACE: {
            BudgetKind.MEMORY_SEARCH: 3,
            BudgetKind.GREP: 4,
            BudgetKind.READ: 3,
            BudgetKind.GIT_LOG: 1,
        },
        ResearchMode.PROBE: {
            BudgetKind.GREP: 4,
            BudgetKind.READ: 3,
            BudgetKind.MEMORY_SEARCH: 2,
            BudgetKind.WEB_SEARCH: 1,
        },
    }
)
COMBINED_LIMITS: Final[Mapping[BudgetKind, int]] = MappingProxyType(
    {
        BudgetKind.READ: 14,
        BudgetKind.GREP: 13,
        BudgetKind.GIT_LOG: 1,
        BudgetKind.MEMORY_SEARCH: 8,
        BudgetKind.WEB_SEARCH: 4,
        BudgetKind.WEB_FETCH: 2,
    }
)
TOOL_KINDS: Final[Mapping[Tool, BudgetKind]] = MappingProxyType(
    {
        Tool.READ: BudgetKind.READ,
        Tool.LIST: BudgetKind.READ,
        Tool.SYMBOLS: BudgetKind.READ,
        Tool.GREP: BudgetKind.GREP,
        Tool.GLOB: BudgetKind.GREP,
        Tool.GIT_LOG: BudgetKind.GIT_LOG,
        Tool.GIT_SHOW: BudgetKind.GIT_LOG,
        Tool.GIT_DIFF: BudgetKind.GIT_LOG,
        Tool.MEMORY_SEARCH: BudgetKind.MEMORY_SEARCH,
        Tool.WEB_SEARCH: BudgetKind.WEB_SEARCH,
        Tool.WEB_FETCH: BudgetKind.WEB_FETCH,
    }
)
"""The kind that each tool counts as."""
SEARCH_REASONS: Final[Mapping[ResearchMode, tuple[str, ...]]] = MappingProxyType(
    {
        ResearchMode.RESOLVE: ("API_BEHAVIOR", "STALE_KNOWLEDGE", "INTEGRATION_UNKNOWN"),
        ResearchMode.SURFACE: (),
        ResearchMode.PROBE: ("TEMPORAL_RISK",),
    }
)
"""The reasons for which each mode may search the web."""
_MOST_TIMES: Final = 2


@dataclass(frozen=True)
class ToolBudget:
    raises: tuple[tuple[ResearchMode, BudgetKind, int], ...] = ()
    """What was granted beyond the tables: mode, kind and number of calls."""

    def limit(self, mode: ResearchMode, kind: BudgetKind) -> int:
        granted = sum(by for raised_mode, raised_kind, by in self.raises if (raised_mode, raised_kind) == (mode, kind))
        return _table_limit(mode, kind) + granted

    def combined_limit(self, kind: BudgetKind) -> int:
        return COMBINED_LIMITS[kind] + sum(by for _, raised_kind, by in self.raises if raised_kind is kind)

    def raise_limit(self, mode: ResearchMode, kind: BudgetKind, by: int) -> ToolBudget:
        """Return the budget raised by as much as is allowed, or itself if it may not be raised at all."""
        room = _MOST_TIMES * _table_limit(mode, kind) - self.limit(mode, kind)
        granted = min(by, room)
        return self if granted <= 0 else replace(self, raises=(*self.raises, (mode, kind, granted)))

    def format_lines(self, mode: ResearchMode, offered: Collection[Tool] = frozenset(Tool)) -> tuple[str, ...]:
        """Return the limits in words for the agent. Tools that it is not offered are left out."""
        return tuple(
            self._line(mode, kind, tools) for kind in MODE_LIMITS[mode] if (tools := _tools_counted_as(kind, offered))
        )

    def format_all_lines(self) -> tuple[str, ...]:
        """Return all limits in words for the synthesizer, which may have them raised."""
        modes = (
            f"{mode}: {_join_limits({kind: self.limit(mode, kind) for kind in MODE_LIMITS[mode]})}"
            for mode in ResearchMode
        )
        return (*modes, f"together: {_join_limits({kind: self.combined_limit(kind) for kind in BudgetKind})}")

    def _line(self, mode: ResearchMode, kind: BudgetKind, tools: tuple[Tool, ...]) -> str:
        limit = self.limit(mode, kind)
        times = "once" if limit == 1 else f"{limit} times"
        suffix = " in all" if len(tools) > 1 else ""
        restriction = f", only for {_join_with_or(SEARCH_REASONS[mode])}" if kind is BudgetKind.WEB_SEARCH else ""
        return f"{kind}: {', '.join(f'`{tool}`' for tool in tools)} {times}{suffix}{restriction}"


def find_tools(mode: ResearchMode) -> frozenset[Tool]:
    return frozenset(tool for tool, kind in TOOL_KINDS.items() if _table_limit(mode, kind))


def explain_search_refusal(mode: ResearchMode, reason: str) -> str:
    """Return why the web may not be searched for this reason; empty if it may."""
    allowed = SEARCH_REASONS[mode]
    if reason in allowed:
        return ""
    if not allowed:
        return f"You may not search the web in mode {mode}: look in the project, its history and the memory."
    return (
        f"In mode {mode} you may search the web only for {_join_with_or(allowed)}, not for {reason}: "
        "look up in the project or the memory what they can answer."
    )


def find_kind(text: str) -> BudgetKind | None:
    """Return the kind with this name, or the kind that a tool with this name counts as; None if there is none."""
    return _KINDS_BY_NAME.get(_normalize(text))


def _table_limit(mode: ResearchMode, kind: BudgetKind) -> int:
    return MODE_LIMITS[mode].get(kind, 0)


def _tools_counted_as(kind: BudgetKind, offered: Collection[Tool]) -> tuple[Tool, ...]:
    return tuple(tool for tool, tool_kind in TOOL_KINDS.items() if tool_kind is kind and tool in offered)


def _join_limits(limits: Mapping[BudgetKind, int]) -> str:
    return ", ".join(f"{kind} {limit}" for kind, limit in limits.items())


def _join_with_or(words: tuple[str, ...]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _normalize(name: str) -> str:
    """Return a name without case and punctuation: `WebSearch`, `web_search` and `web search` are the same."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


_KINDS_BY_NAME: Final[Mapping[str, BudgetKind]] = MappingProxyType(
    {_normalize(tool): kind for tool, kind in TOOL_KINDS.items()} | {_normalize(kind): kind for kind in BudgetKind}
)
