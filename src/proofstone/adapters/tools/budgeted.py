"""A researcher's tools at the plan gate, each to be used so often and no more. Held at the call, whatever the agent was
told or says; how often is `core.plan_gate.tool_budgets`.

What counts is a call that was carried out, also one that came to nothing. A call that was refused does not, whoever
refused it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Final, get_args

from proofstone.adapters.tools.toolbox import Tools
from proofstone.contracts.agent import RefusalRule, ToolCall, ToolResult, ToolSpec
from proofstone.contracts.plan_gate.answers import Mode
from proofstone.contracts.tools import SearchReason, Tool
from proofstone.core.plan_gate.tool_budgets import KINDS, BudgetKind, ToolBudget, tools_of, why_no_search

_REASONS: Final = frozenset(get_args(SearchReason))


class ToolCounts:
    """What has been used in one iteration, by all modes; they work beside each other."""

    def __init__(self, budget: ToolBudget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._used: Counter[tuple[Mode, BudgetKind]] = Counter()

    def take(self, mode: Mode, kind: BudgetKind) -> str:
        """One more is used; or, if there is none left, why not, in words for the agent."""
        with self._lock:
            limit, combined = self._budget.limit(mode, kind), self._budget.combined(kind)
            if self._used[mode, kind] >= limit:
                return _spent(kind, f"you had {limit}" if limit else "you have none in this mode")
            if sum(used for (_, what), used in self._used.items() if what is kind) >= combined:
                return _spent(kind, f"all modes together had {combined}")
            self._used[mode, kind] += 1
            return ""

    def give_back(self, mode: Mode, kind: BudgetKind) -> None:
        """What was taken was not used."""
        with self._lock:
            self._used[mode, kind] -= 1

    def seen(self, mode: Mode, results: Iterable[ToolResult]) -> None:
        """What an earlier process has on record: whoever goes on has no fresh budget."""
        for result in results:
            if result.refused is None and not result.repeated and (kind := _kind(result.name)):
                with self._lock:
                    self._used[mode, kind] += 1


class BudgetedTools:
    """Implements `proofstone.adapters.tools.toolbox.Tools` around those of one mode."""

    def __init__(self, tools: Tools, mode: Mode, counts: ToolCounts) -> None:
        self._tools = tools
        self._mode = mode
        self._counts = counts

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Without those that could not be used once."""
        unusable = KINDS.keys() - tools_of(self._mode)
        return tuple(spec for spec in self._tools.specs if spec.name not in unusable)

    def within(self, scope: tuple[str, ...]) -> BudgetedTools:
        return BudgetedTools(self._tools.within(scope), self._mode, self._counts)

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult:
        kind = _kind(call.name)
        if kind is None or not self._offers(call.name):
            return self._tools.call(call, seconds)  # nobody counts it, or it is refused there
        if why := self._why_not(call) or self._counts.take(self._mode, kind):
            return ToolResult(call_id=call.id, name=call.name, text=why, ok=False, refused=RefusalRule.BUDGET)
        result = self._tools.call(call, seconds)
        if result.refused is not None:
            self._counts.give_back(self._mode, kind)
        return result

    def _offers(self, name: str) -> bool:
        return any(spec.name == name for spec in self._tools.specs)

    def _why_not(self, call: ToolCall) -> str:
        """Of a search for the wrong reason. What is no reason at all is for the tool itself to say."""
        reason = call.arguments.get("reason")
        if call.name != Tool.WEB_SEARCH or not isinstance(reason, str) or reason not in _REASONS:
            return ""
        return why_no_search(self._mode, reason)


def _kind(name: str) -> BudgetKind | None:
    return KINDS[Tool(name)] if name in KINDS else None


def _spent(kind: BudgetKind, had: str) -> str:
    return (
        f"No more {kind} calls: {had} for this iteration. Answer with what you know, and say what you could not check."
    )
