"""How often a researcher may use which tool in one iteration, and what it may search the web for.

The tables are the protocol's own. Rules:
- a tool without a limit in a mode is not one of that mode's;
- a budget is raised by a directive of the synthesizer and by nothing else: by so much for the mode and for all modes
  together, and never past twice what the table says;
- what the table does not total (`git log`) is the sum of what the modes have.

What counts is decided where the tool is called (`agents.tools.toolbox`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.models.plan_gate import Mode
from proofstone.agents.tools.models import Tool


class BudgetKind(StrEnum):
    """What is counted, by the protocol's names."""

    READ = "Read"
    GREP = "Grep"
    GIT_LOG = "git log"
    MEMORY_SEARCH = "memory_search"
    WEB_SEARCH = "WebSearch"
    WEB_FETCH = "WebFetch"


LIMITS: Final[Mapping[Mode, Mapping[BudgetKind, int]]] = MappingProxyType(
    {
        Mode.RESOLVE: {
            BudgetKind.READ: 8,
            BudgetKind.GREP: 5,
            BudgetKind.MEMORY_SEARCH: 3,
            BudgetKind.WEB_SEARCH: 3,
            BudgetKind.WEB_FETCH: 2,
        },
        Mode.SURFACE: {
            BudgetKind.MEMORY_SEARCH: 3,
            BudgetKind.GREP: 4,
            BudgetKind.READ: 3,
            BudgetKind.GIT_LOG: 1,
        },
        Mode.PROBE: {
            BudgetKind.GREP: 4,
            BudgetKind.READ: 3,
            BudgetKind.MEMORY_SEARCH: 2,
            BudgetKind.WEB_SEARCH: 1,
        },
    }
)
COMBINED: Final[Mapping[BudgetKind, int]] = MappingProxyType(
    {
        BudgetKind.READ: 14,
        BudgetKind.GREP: 13,
        BudgetKind.GIT_LOG: 1,
        BudgetKind.MEMORY_SEARCH: 8,
        BudgetKind.WEB_SEARCH: 4,
        BudgetKind.WEB_FETCH: 2,
    }
)
KINDS: Final[Mapping[Tool, BudgetKind]] = MappingProxyType(
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
"""What each tool counts as."""
SEARCHABLE: Final[Mapping[Mode, tuple[str, ...]]] = MappingProxyType(
    {
        Mode.RESOLVE: ("API_BEHAVIOR", "STALE_KNOWLEDGE", "INTEGRATION_UNKNOWN"),
        Mode.SURFACE: (),
        Mode.PROBE: ("TEMPORAL_RISK",),
    }
)
"""What the web may be searched for."""
_MOST_TIMES: Final = 2


@dataclass(frozen=True)
class ToolBudget:
    raises: tuple[tuple[Mode, BudgetKind, int], ...] = ()
    """What was granted beyond the tables."""

    def limit(self, mode: Mode, kind: BudgetKind) -> int:
        granted = sum(by for whose, what, by in self.raises if (whose, what) == (mode, kind))
        return _tabled(mode, kind) + granted

    def combined(self, kind: BudgetKind) -> int:
        return COMBINED[kind] + sum(by for _, what, by in self.raises if what is kind)

    def raised(self, mode: Mode, kind: BudgetKind, by: int) -> ToolBudget:
        """With so much more, as far as it may be; itself, if it may not be at all."""
        room = _MOST_TIMES * _tabled(mode, kind) - self.limit(mode, kind)
        granted = min(by, room)
        return self if granted <= 0 else replace(self, raises=(*self.raises, (mode, kind, granted)))

    def lines(self, mode: Mode, offered: Collection[Tool] = frozenset(Tool)) -> tuple[str, ...]:
        """In words for the agent; of tools that it is not offered it need not hear."""
        return tuple(self._line(mode, kind, tools) for kind in LIMITS[mode] if (tools := _counted_as(kind, offered)))

    def all_lines(self) -> tuple[str, ...]:
        """In words for whoever may have one raised."""
        modes = (f"{mode}: {_listed({kind: self.limit(mode, kind) for kind in LIMITS[mode]})}" for mode in Mode)
        return (*modes, f"together: {_listed({kind: self.combined(kind) for kind in BudgetKind})}")

    def _line(self, mode: Mode, kind: BudgetKind, tools: tuple[Tool, ...]) -> str:
        limit = self.limit(mode, kind)
        times = "once" if limit == 1 else f"{limit} times"
        among = " in all" if len(tools) > 1 else ""
        only = f", only for {_either(SEARCHABLE[mode])}" if kind is BudgetKind.WEB_SEARCH else ""
        return f"{kind}: {', '.join(f'`{tool}`' for tool in tools)} {times}{among}{only}"


def tools_of(mode: Mode) -> frozenset[Tool]:
    return frozenset(tool for tool, kind in KINDS.items() if _tabled(mode, kind))


def why_no_search(mode: Mode, reason: str) -> str:
    """Why the web may not be searched for this; empty if it may."""
    allowed = SEARCHABLE[mode]
    if reason in allowed:
        return ""
    if not allowed:
        return f"The web is never searched in mode {mode}: look into the project, its history and the memory."
    return (
        f"In mode {mode} the web is searched only for {_either(allowed)}, not for {reason}: "
        "what the project or the memory can answer is looked up there."
    )


def kind_named(text: str) -> BudgetKind | None:
    """What is meant by a name: the protocol's own, or that of a tool which counts as it. None: nothing is."""
    return _NAMED.get(_plain(text))


def _tabled(mode: Mode, kind: BudgetKind) -> int:
    return LIMITS[mode].get(kind, 0)


def _counted_as(kind: BudgetKind, offered: Collection[Tool]) -> tuple[Tool, ...]:
    return tuple(tool for tool, its in KINDS.items() if its is kind and tool in offered)


def _listed(limits: Mapping[BudgetKind, int]) -> str:
    return ", ".join(f"{kind} {limit}" for kind, limit in limits.items())


def _either(words: tuple[str, ...]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _plain(name: str) -> str:
    """However it is spelt: `WebSearch`, `web_search` and `web search` are one."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


_NAMED: Final[Mapping[str, BudgetKind]] = MappingProxyType(
    {_plain(tool): kind for tool, kind in KINDS.items()} | {_plain(kind): kind for kind in BudgetKind}
)
