"""Agents who only look: each has a tree to look at, a corner of its own, and tools that change nothing.

One agent, asked once, outside of any pipeline. It can look at the repository and change nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from pydantic import JsonValue

from proofstone.agents.attendant import Attendant
from proofstone.agents.backends import Backend
from proofstone.agents.bus import Bus
from proofstone.agents.dispatch import Dispatcher, Ending, Errand
from proofstone.agents.executors.context import SandboxedShell, Site
from proofstone.agents.models import CompletionStatus, Dispatched, Fault, FaultKind, Occasion
from proofstone.agents.roles.role import Role, request_text
from proofstone.agents.rules.conversation import Check
from proofstone.agents.sandbox_shell import Sight, seen_at, shell_at
from proofstone.agents.spending import Meter, on_record
from proofstone.agents.tools.tool_context import Ground
from proofstone.agents.tools.toolbox import Toolbox, Tools
from proofstone.check.context import World
from proofstone.common.models import Budget, Contract, Spent
from proofstone.ledger.artifacts import ArtifactWriter
from proofstone.ledger.models import EventRow
from proofstone.ledger.schema import Row
from proofstone.runtime.journal import Write


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


@dataclass(frozen=True)
class AskingAsking:
    """What an agent is asked, and how."""

    role: Role
    focus: str | None
    request: Contract
    backend: Backend
    budget: Budget
    seconds: float | None


@dataclass(frozen=True)
class Asked:
    dispatched: Dispatched
    spent: Spent


def ask(world: World, asking: AskingAsking, site: Site) -> Asked:
    """The answer, or the fault. `site` says how whoever answers is heard; it is given the tree to look at."""
    world.ledger.append(
        EventRow(
            run_id=world.run_id,
            type="run.started",
            payload={
                "command": "ask",
                "repository": str(world.repository.root),
                "role": asking.role.name,
                "backend": asking.backend.identity.spec,
            },
        )
    )
    meter = Meter(asking.budget)
    dispatcher = Dispatcher(Bus(world.ledger, world.run_id), meter)
    with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
        gate = world.settings.gate
        sight = Sight(
            world.base_tree,
            world.base_commit,
            gate.architect_seconds,
            gate.network,
            gate.pass_through,
            hide_secrets=True,
        )
        shell = shell_at(world, sight, sink)
        ground = Ground(
            files=shell.view.files,
            run=shell,
            git=world.store.git(),
            commit=world.base_commit,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
            mask=world.secrets,
        )
        placed = replace(
            site,
            work_tree=shell.view.files,
            scratch=world.scratch,
            run=shell,
            seen_at=seen_at(shell),
            level=world.sandbox.level,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
        )
        occasion = Occasion(run_id=world.run_id, role=asking.role.name, step="ask", focus=asking.focus)
        text = request_text(asking.role, asking.request)
        errand = Errand(text, asking.backend, Toolbox(ground, asking.role.tools), placed, asking.seconds)
        try:
            dispatched = dispatcher.dispatch(asking.role, occasion, errand)
        except BaseException as error:
            payload: dict[str, JsonValue] = {"reason": str(error) or "interrupted"}
            world.ledger.append(EventRow(run_id=world.run_id, type="run.interrupted", payload=payload))
            raise
        world.ledger.append(sink.finish().row())
    outcome = "failed" if dispatched.fault else "passed"
    reason = dispatched.completion.summary if dispatched.fault else ""
    world.ledger.append(
        EventRow(run_id=world.run_id, type="run.finished", payload={"outcome": outcome, "reason": reason})
    )
    return Asked(dispatched, meter.spent())
