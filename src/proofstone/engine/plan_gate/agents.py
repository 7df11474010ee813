"""Those who are asked at the plan gate: agents who look at the base of the repository, and further where they may."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property

from proofstone.adapters.tools import Ground, Toolbox, Tools
from proofstone.adapters.tools.budgeted import BudgetedTools, ToolCounts
from proofstone.adapters.web import Web
from proofstone.contracts.agent import Fault, RefusalRule, ToolResult
from proofstone.contracts.memory import Memory
from proofstone.contracts.tools import BEYOND, Tool
from proofstone.core.plan_gate.needs import Heard
from proofstone.engine.agents.on_record import on_record
from proofstone.engine.agents.onlookers import Onlookers, answer_of
from proofstone.engine.plan_gate.claims import Place, look_up
from proofstone.engine.plan_gate.requests import PlanAsking, claims_in


@dataclass
class PlanAgents(Onlookers):
    memory: Memory | None = None
    web: Web | None = None
    beyond: frozenset[Tool] = frozenset()
    """Tools that look further than the tree, as agents were told of them when the run began."""
    _counts: dict[int, ToolCounts] = field(default_factory=dict)
    """By iteration: what researchers have used of their tools."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def served(self) -> frozenset[Tool]:
        """The tools that there are here at all. It is part of what is asked, so it is the same when a run goes on."""
        return (frozenset(Tool) - BEYOND) | self.beyond

    @cached_property
    def ground(self) -> Ground:
        return replace(super().ground, memory=self.memory, web=self.web)

    def ask(self, one: PlanAsking) -> Heard | Fault:
        """Ask, and look up what the answer rests on."""
        dispatched = self.dispatch(one, self._tools(one), one.why_not)
        answer = answer_of(dispatched)
        if isinstance(answer, Fault):
            return answer
        shown = self._results(dispatched.occasion.id)
        place = Place(self.ground, self.memory)
        looked = tuple(look_up(claim, place, shown) for claim in claims_in(answer))
        refusals = tuple(result.text for result in shown if result.refused is RefusalRule.BUDGET)
        return Heard(answer, looked, refusals)

    def _results(self, dispatch: str) -> list[ToolResult]:
        """What the tools of that very conversation have shown."""
        recorded = on_record(self.world.ledger, self.world.run_id).get(dispatch)
        return recorded.results if recorded else []

    def _tools(self, one: PlanAsking) -> Tools:
        toolbox = Toolbox(self.ground, one.role.tools & self.served)
        if one.mode is None:
            return toolbox
        with self._lock:
            iteration = one.seen.iteration
            if iteration not in self._counts:
                self._counts[iteration] = ToolCounts(one.seen.budget)
            counts = self._counts[iteration]
        again = one.occasion.model_copy(update={"dispatch": one.occasion.dispatch + 1})
        for id in (one.occasion.id, again.id):
            if id in self.dispatcher.recorded:
                counts.seen(one.mode, self.dispatcher.recorded[id].results)
        return BudgetedTools(toolbox, one.mode, counts)
