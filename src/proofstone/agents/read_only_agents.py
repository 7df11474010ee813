"""Agents that only read: each has a tree to read, a scratch folder of its own, and tools that change nothing.

`Onlookers` serves the agents of a run. `ask` asks one agent once, outside of any pipeline.
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
    """A request to an agent of a run."""

    role: Role
    request: Contract
    occasion: Occasion

    @cached_property
    def text(self) -> str:
        """The whole request as the agent reads it."""
        return request_text(self.role, self.request)


Attends = Callable[[Occasion], Attendant | None]
"""Creates the attendant of a dispatch, or None if the agent is not supervised."""


@dataclass
class Onlookers:
    world: World
    backends: Mapping[str, Backend]
    """Backends by the name of the agent or its role."""
    dispatcher: Dispatcher
    doing: Callable[[str, str], None]
    """Called with the name of an agent and a line about what it does."""
    said: Callable[[str, str], None]
    """Called with the name of an agent and a line that it, or its backend, says to the person."""
    seconds: Callable[[str], float | None]
    """Returns how many seconds an agent of a role may take."""
    tree: str
    """The tree that the agents read."""
    commit: str
    """The commit that the agents see as HEAD."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def prepare(self) -> None:
        """Create the shared shell before several agents use it in parallel."""
        _ = self.shell

    def dispatch(
        self,
        asking: Asking,
        toolbox: Tools | None = None,
        check: Check = lambda _: "",
        beginning: tuple[Row, ...] = (),
        ending: Ending | None = None,
        attends: Attends = lambda _: None,
    ) -> Dispatched:
        world, agent = self.world, asking.occasion.agent
        with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
            errand = Errand(
                text=asking.text,
                backend=self.backends[agent] if agent in self.backends else self.backends[asking.role.name],
                toolbox=toolbox or Toolbox(self.ground, asking.role.tools),
                site=self._site(agent, sink),
                seconds=self.seconds(asking.role.name),
                check=check,
                beginning=beginning,
                ending=None if ending is None else partial(_end_with_output, sink, ending),
                attends=attends,
            )
            dispatched = self.dispatcher.dispatch(asking.role, asking.occasion, errand)
            world.ledger.append(*_output_rows(sink))
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
        # Nothing runs in this shell itself: every agent gets a copy with its own scratch folder and output.
        sink = self._stack.enter_context(world.artifacts.writer(world.settings.limits.output_mb << 20))
        return shell_at(world, sight, sink)

    def _site(self, agent: str, sink: ArtifactWriter) -> Site:
        """Build a site with its own scratch folder, so that no agent sees what another one writes."""
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


def _end_with_output(sink: ArtifactWriter, ending: Ending, dispatched: Dispatched, write: Write) -> None:
    """Record the output of the agent's commands with its answer, because neither can be produced again."""
    ending(dispatched, lambda *rows: write(*rows, *_output_rows(sink)))


def _output_rows(sink: ArtifactWriter) -> tuple[Row, ...]:
    return (sink.finish().row(),) if sink.is_due else ()


def answer_of(dispatched: Dispatched) -> Contract | Fault:
    """Return the answer, or the fault if there is no usable answer."""
    if dispatched.output is None:
        return dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer")
    if (
        dispatched.completion.status is CompletionStatus.ERROR
    ):  # the agent could not do the work, so its payload does not count
        return Fault(
            kind=FaultKind.FAILED, why=dispatched.completion.summary or "the agent says that it could not do the work"
        )
    return dispatched.output


@dataclass(frozen=True)
class AskingAsking:
    """One request to an agent, with its backend and limits."""

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
    """Ask an agent once and return the result. `site` carries its callbacks; the tree to read is added here."""
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
        agent_site = replace(
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
        errand = Errand(text, asking.backend, Toolbox(ground, asking.role.tools), agent_site, asking.seconds)
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
