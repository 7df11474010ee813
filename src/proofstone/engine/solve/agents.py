"""Those who pursue a goal: dispatched like any agent, in the work tree of the run.

An executor may change it, with the tools that its subtask names and no blocked one; looking is always allowed. Whoever
plans or judges only looks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from proofstone.adapters.backends import Backend
from proofstone.adapters.executors import SandboxedShell
from proofstone.adapters.executors.site import Site
from proofstone.adapters.tools import Toolbox
from proofstone.contracts.agent import CompletionStatus, Dispatched, Fault, FaultKind, ToolCall
from proofstone.contracts.base import Contract
from proofstone.contracts.budget import Spent
from proofstone.contracts.solve.messages import SubTask
from proofstone.contracts.tools import READING, WRITING, Tool
from proofstone.engine.agents.dispatch import Dispatcher, Errand
from proofstone.engine.agents.on_record import on_record
from proofstone.engine.solve.requests import SolveAsking
from proofstone.engine.solve.workspace import Workspace
from proofstone.engine.viewing import seen_at
from proofstone.roles import IN_THE_LOOP

TOOLS: Final = tuple(tool.value for tool in Tool if tool in IN_THE_LOOP["execute"].tools)
"""That an executor has."""


class Called(NamedTuple):
    call: ToolCall
    ok: bool

    @property
    def target(self) -> str:
        """The path that it was used on, if it names one."""
        path = self.call.arguments.get("path")
        return path if isinstance(path, str) else ""


@dataclass(frozen=True)
class SolveAgents:
    workspace: Workspace
    backends: Mapping[str, Backend]
    """By role."""
    dispatcher: Dispatcher
    doing: Callable[[str, str], None]
    """Told what an agent does, in a line."""
    said: Callable[[str, str], None]
    """Told what an agent, or whoever serves it, says to the person."""
    seconds: Callable[[str], float | None]
    """How long one of that role may take."""
    own_tools: Collection[str] = ()
    """Roles that are served by a program with tools of its own."""
    coding_agents: Collection[str] = ()
    """Those of them that are coding agents, which are not silent for long while they work."""

    def ask(self, one: SolveAsking) -> Contract | Fault:
        """Somebody who only looks."""
        came = self._dispatched(one, one.role.tools & READING, keeps=False)
        if came.output is None:
            return came.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer")
        if came.completion.status is CompletionStatus.ERROR:  # whatever else it says, it could not do it
            return Fault(kind=FaultKind.FAILED, why=came.completion.summary or "it says that it could not")
        return came.output

    def execute(self, one: SolveAsking, subtask: SubTask, blocked: Collection[str]) -> Dispatched:
        return self._dispatched(one, allowed(subtask, blocked), keeps=not only_looks(subtask))

    def calls(self, dispatched: Dispatched) -> tuple[Called, ...]:
        """What it has called in that very conversation, and was not refused."""
        workspace = self.workspace
        recorded = on_record(workspace.world.ledger, workspace.world.run_id).get(dispatched.occasion.id)
        if recorded is None:
            return ()
        came = {result.call_id: result for result in recorded.results}
        called = [call for turn in recorded.turns for call in turn.calls if call.id in came]
        return tuple(Called(call, came[call.id].ok) for call in called if came[call.id].refused is None)

    def spent(self) -> Spent:
        return self.dispatcher.meter.spent()

    def dispatches(self) -> int:
        return len(on_record(self.workspace.world.ledger, self.workspace.world.run_id))

    def _dispatched(self, one: SolveAsking, tools: Collection[Tool], *, keeps: bool) -> Dispatched:
        world = self.workspace.world
        gate = world.settings.gate
        idle = gate.idle_seconds if one.role.name in self.coding_agents else None
        limits = world.job_limits(gate.agent_seconds, idle)
        with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
            with self.workspace.shell(sink, limits, keeps=keeps) as shell:
                errand = Errand(
                    text=one.text,
                    backend=self.backends[one.role.name],
                    toolbox=Toolbox(self.workspace.ground(shell if keeps else None), tools),
                    site=self._site(one, shell, keeps=keeps),
                    seconds=self.seconds(one.role.name),
                )
                came = self.dispatcher.dispatch(one.role, one.occasion, errand)
            world.ledger.append(sink.finish().row())
        return came

    def _site(self, one: SolveAsking, shell: SandboxedShell, *, keeps: bool) -> Site:
        world, agent = self.workspace.world, one.who
        return Site(
            work_tree=shell.view.files,
            scratch=shell.scratch,
            run=shell,
            say=lambda line: self.said(agent, line),
            doing=lambda line: self.doing(agent, line),
            scope=("**",) if keeps else (),
            seen_at=seen_at(shell),
            level=world.sandbox.level,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
            mask=world.secrets,
        )


def allowed(subtask: SubTask, blocked: Collection[str]) -> frozenset[Tool]:
    """The tools of its executor. One that names none has them all."""
    has = IN_THE_LOOP["execute"].tools
    named = {tool for tool in has if tool in subtask.tools} | (has & READING) if subtask.tools else has
    return frozenset(tool for tool in named if tool not in blocked)


def only_looks(subtask: SubTask) -> bool:
    """Whether it can run beside others: it has said which tools it uses, and none of them changes anything."""
    return bool(subtask.tools) and not WRITING & set(map(Tool, subtask.tools))
