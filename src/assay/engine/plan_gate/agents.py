"""Those who are asked at the plan gate: dispatched like any agent, with the base of the repository to look at."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from assay.adapters.backends import Backend
from assay.adapters.executors import SandboxedShell
from assay.adapters.executors.site import Site
from assay.adapters.ledger.artifacts import ArtifactWriter
from assay.adapters.tools import Ground, Toolbox, Tools
from assay.adapters.tools.budgeted import BudgetedTools, ToolCounts
from assay.adapters.web import Web
from assay.contracts.agent import CompletionStatus, Fault, FaultKind, RefusalRule, ToolResult
from assay.contracts.budget import Spent
from assay.contracts.memory import Memory
from assay.contracts.tools import BEYOND, Tool
from assay.core.plan_gate.needs import Heard
from assay.engine.agents.dispatch import Dispatcher, Errand
from assay.engine.agents.on_record import on_record
from assay.engine.plan_gate.claims import Place, look_up
from assay.engine.plan_gate.requests import Asking, claims_in
from assay.engine.viewing import Sight, seen_at, shell_at
from assay.engine.world import World


@dataclass
class PlanAgents:
    world: World
    backends: Mapping[str, Backend]
    """By role. Nobody is asked if there is none."""
    dispatcher: Dispatcher
    doing: Callable[[str, str], None]
    """Told what an agent does, in a line."""
    said: Callable[[str, str], None]
    """Told what an agent, or whoever serves it, says to the person."""
    seconds: Callable[[str], float | None]
    """How long one of that role may take."""
    memory: Memory | None = None
    web: Web | None = None
    beyond: frozenset[Tool] = frozenset()
    """Tools that look further than the tree, as agents were told of them when the run began."""
    _counts: dict[int, ToolCounts] = field(default_factory=dict)
    """By iteration: what researchers have used of their tools."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def served(self) -> frozenset[Tool]:
        """The tools that there are here at all. It is part of what is asked, so it is the same when a run goes on."""
        return (frozenset(Tool) - BEYOND) | self.beyond

    def prepare(self) -> None:
        """Before several of them stand on the same ground."""
        _ = self._ground

    def dispatch(self, one: Asking) -> Heard | Fault:
        """Ask, and look up what the answer rests on."""
        with self.world.artifacts.writer(self.world.settings.limits.output_mb << 20) as sink:
            errand = Errand(
                request=one.request,
                backend=self.backends[one.role.name],
                toolbox=self._tools(one),
                site=self._site(one, sink),
                seconds=self.seconds(one.role.name),
                check=one.why_not,
            )
            dispatched = self.dispatcher.dispatch(one.role, one.occasion, errand)
            self.world.ledger.append(sink.finish().row())
        if dispatched.output is None:
            return dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer")
        if dispatched.completion.status is CompletionStatus.ERROR:  # whatever else it says, it could not do it
            return Fault(kind=FaultKind.FAILED, why=dispatched.completion.summary or "it says that it could not")
        shown = self._results(dispatched.occasion.id)
        place = Place(self._ground, self.memory)
        looked = tuple(look_up(claim, place, shown) for claim in claims_in(dispatched.output))
        refusals = tuple(result.text for result in shown if result.refused is RefusalRule.BUDGET)
        return Heard(dispatched.output, looked, refusals)

    def cancel(self) -> None:
        self.world.cancel.set()

    def spent(self) -> Spent:
        return self.dispatcher.meter.spent()

    def dispatches(self) -> int:
        return len(on_record(self.world.ledger, self.world.run_id))

    def _results(self, dispatch: str) -> list[ToolResult]:
        """What the tools of that very conversation have shown."""
        recorded = on_record(self.world.ledger, self.world.run_id).get(dispatch)
        return recorded.results if recorded else []

    def _tools(self, one: Asking) -> Tools:
        toolbox = Toolbox(self._ground, one.role.tools & self.served)
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

    def _site(self, one: Asking, sink: ArtifactWriter) -> Site:
        """Each has a corner of its own: what one writes, no other sees."""
        world, agent = self.world, one.agent
        scratch = Path(tempfile.mkdtemp(prefix="agent-", dir=world.scratch))
        shell = replace(self._shell, scratch=scratch, sink=sink)
        return Site(
            work_tree=shell.view.files,
            scratch=scratch,
            run=shell,
            say=lambda line: self.said(agent, line),
            doing=lambda line: self.doing(agent, line),
            seen_at=seen_at(shell),
            level=world.sandbox.level,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
        )

    @cached_property
    def _ground(self) -> Ground:
        world = self.world
        return Ground(
            files=self._shell.view.files,
            git=world.store.git(),
            commit=world.base_commit,
            secret=world.settings.tools.secret,
            memory=self.memory,
            web=self.web,
            cancel=world.cancel,
        )

    @cached_property
    def _shell(self) -> SandboxedShell:
        gate, world = self.world.settings.gate, self.world
        sight = Sight(
            world.base_tree,
            world.base_commit,
            gate.architect_seconds,
            gate.network,
            gate.pass_through,
            hide_secrets=True,
        )
        # Nothing is run in this one: every agent has a corner and an output of its own.
        sink = self._stack.enter_context(world.artifacts.writer(world.settings.limits.output_mb << 20))
        return shell_at(world, sight, sink)

    def close(self) -> None:
        self._stack.close()
