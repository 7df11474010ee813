"""Agents who only look: each has a tree to look at, a corner of its own, and tools that change nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from proofstone.adapters.backends import Backend
from proofstone.adapters.executors import SandboxedShell
from proofstone.adapters.executors.site import Site
from proofstone.adapters.ledger import Row
from proofstone.adapters.ledger.artifacts import ArtifactWriter
from proofstone.adapters.tools import Ground, Toolbox, Tools
from proofstone.contracts.agent import CompletionStatus, Dispatched, Fault, FaultKind, Occasion
from proofstone.contracts.base import Contract
from proofstone.contracts.budget import Spent
from proofstone.core.agent.loop import Check
from proofstone.engine.agents.attending import Attendant
from proofstone.engine.agents.dispatch import Dispatcher, Ending, Errand
from proofstone.engine.agents.on_record import on_record
from proofstone.engine.steps import Write
from proofstone.engine.viewing import Sight, seen_at, shell_at
from proofstone.engine.world import World
from proofstone.roles.asking import request_text
from proofstone.roles.role import Role


@dataclass(frozen=True)
class Asking:
    """Who is asked what, and when."""

    role: Role
    request: Contract
    occasion: Occasion

    @cached_property
    def text(self) -> str:
        """The request, in full."""
        return request_text(self.role, self.request)


Attends = Callable[[Occasion], Attendant | None]
"""Who attends to whoever is asked then; None: nobody."""


@dataclass
class Onlookers:
    world: World
    backends: Mapping[str, Backend]
    """By agent."""
    dispatcher: Dispatcher
    doing: Callable[[str, str], None]
    """Told what an agent does, in a line."""
    said: Callable[[str, str], None]
    """Told what an agent, or whoever serves it, says to the person."""
    seconds: Callable[[str], float | None]
    """How long one of that name may take."""
    tree: str
    """What they look at."""
    commit: str
    """What they call HEAD."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def prepare(self) -> None:
        """Before several of them stand on the same ground."""
        _ = self.shell

    def dispatch(
        self,
        one: Asking,
        toolbox: Tools | None = None,
        check: Check = lambda _: "",
        beginning: tuple[Row, ...] = (),
        ending: Ending | None = None,
        attends: Attends = lambda _: None,
    ) -> Dispatched:
        world, agent = self.world, one.occasion.agent
        with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
            errand = Errand(
                text=one.text,
                backend=self.backends[agent] if agent in self.backends else self.backends[one.role.name],
                toolbox=toolbox or Toolbox(self.ground, one.role.tools),
                site=self._site(agent, sink),
                seconds=self.seconds(one.role.name),
                check=check,
                beginning=beginning,
                ending=None if ending is None else partial(_with_output, sink, ending),
                attends=attends,
            )
            dispatched = self.dispatcher.dispatch(one.role, one.occasion, errand)
            world.ledger.append(*_output(sink))
        return dispatched

    def spent(self) -> Spent:
        return self.dispatcher.meter.spent()

    def dispatches(self) -> int:
        return len(on_record(self.world.ledger, self.world.run_id))

    @cached_property
    def ground(self) -> Ground:
        world = self.world
        return Ground(
            files=self.shell.view.files,
            git=world.store.git(),
            commit=self.commit,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
            mask=world.secrets,
        )

    @cached_property
    def shell(self) -> SandboxedShell:
        gate, world = self.world.settings.gate, self.world
        sight = Sight(
            self.tree, self.commit, gate.architect_seconds, gate.network, gate.pass_through, hide_secrets=True
        )
        # Nothing is run in this one: every agent has a corner and an output of its own.
        sink = self._stack.enter_context(world.artifacts.writer(world.settings.limits.output_mb << 20))
        return shell_at(world, sight, sink)

    def _site(self, agent: str, sink: ArtifactWriter) -> Site:
        """Each has a corner of its own: what one writes, no other sees."""
        world = self.world
        scratch = Path(tempfile.mkdtemp(prefix="agent-", dir=world.scratch))
        shell = replace(self.shell, scratch=scratch, sink=sink)
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
            mask=world.secrets,
        )

    def close(self) -> None:
        self._stack.close()


def _with_output(sink: ArtifactWriter, ending: Ending, dispatched: Dispatched, write: Write) -> None:
    """What its commands have printed is on record with its answer: neither is to be had again."""
    ending(dispatched, lambda *rows: write(*rows, *_output(sink)))


def _output(sink: ArtifactWriter) -> tuple[Row, ...]:
    return (sink.finish().row(),) if sink.is_due else ()


def answer_of(dispatched: Dispatched) -> Contract | Fault:
    """What it has answered, or why that is none."""
    if dispatched.output is None:
        return dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer")
    if dispatched.completion.status is CompletionStatus.ERROR:  # whatever else it says, it could not do it
        return Fault(kind=FaultKind.FAILED, why=dispatched.completion.summary or "it says that it could not")
    return dispatched.output
