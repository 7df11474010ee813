"""Agents that only read: each has a tree to read, a scratch folder of its own, and tools that change nothing.

`ReadOnlyAgents` serves the agents of a run. `ask` asks one agent once, outside of any pipeline.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from pydantic import JsonValue

from proofstone.agents.backends import Backend
from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import AnswerCallback, Dispatcher, DispatchRequest
from proofstone.agents.executors.context import ExecutionContext, SandboxedShell
from proofstone.agents.models import CompletionStatus, DispatchKey, DispatchResult, Fault, FaultKind
from proofstone.agents.roles.role import Role, format_request
from proofstone.agents.rules.conversation import AnswerCheck
from proofstone.agents.sandbox_shell import ReadOnlyView, build_read_only_shell, find_sandbox_root
from proofstone.agents.spending import SpendingMeter, read_dispatch_records
from proofstone.agents.supervisor import Supervisor
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox, Tools
from proofstone.check.context import RunContext
from proofstone.common.models import Budget, BudgetUsage, FrozenModel
from proofstone.ledger.artifacts import ArtifactWriter
from proofstone.ledger.models import EventRow
from proofstone.ledger.schema import LedgerRow
from proofstone.runtime.journal import RowWriter


@dataclass(frozen=True)
class ReadOnlyRequest:
    """A request to an agent of a run."""

    role: Role
    request: FrozenModel
    occasion: DispatchKey

    @cached_property
    def text(self) -> str:
        """The whole request as the agent reads it."""
        return format_request(self.role, self.request)


CreateSupervisor = Callable[[DispatchKey], Supervisor | None]
"""Creates the supervisor of a dispatch, or None if the agent is not supervised."""


@dataclass
class ReadOnlyAgents:
    world: RunContext
    backends: Mapping[str, Backend]
    """Backends by the name of the agent or its role."""
    dispatcher: Dispatcher
    on_progress: Callable[[str, str], None]
    """Called with the name of an agent and a line about what it does."""
    on_message: Callable[[str, str], None]
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
        asking: ReadOnlyRequest,
        toolbox: Tools | None = None,
        check: AnswerCheck = lambda _: "",
        beginning: tuple[LedgerRow, ...] = (),
        ending: AnswerCallback | None = None,
        attends: CreateSupervisor = lambda _: None,
    ) -> DispatchResult:
        world, agent = self.world, asking.occasion.agent
        with world.artifacts.open_writer(world.settings.limits.output_mb << 20) as sink:
            errand = DispatchRequest(
                text=asking.text,
                backend=self.backends[agent] if agent in self.backends else self.backends[asking.role.name],
                toolbox=toolbox or Toolbox(self.tool_context, asking.role.tools),
                site=self._site(agent, sink),
                seconds=self.seconds(asking.role.name),
                check=check,
                first_rows=beginning,
                on_answer=None if ending is None else partial(_end_with_output, sink, ending),
                create_supervisor=attends,
            )
            dispatched = self.dispatcher.dispatch(asking.role, asking.occasion, errand)
            world.ledger.append(*_output_rows(sink))
        return dispatched

    def get_spent(self) -> BudgetUsage:
        return self.dispatcher.meter.get_spent()

    def count_dispatches(self) -> int:
        return len(read_dispatch_records(self.world.ledger, self.world.run_id))

    @cached_property
    def tool_context(self) -> ToolContext:
        world = self.world
        return ToolContext(
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
        sight = ReadOnlyView(
            self.tree, self.commit, gate.architect_seconds, gate.network, gate.pass_through, hide_secrets=True
        )
        # Nothing runs in this shell itself: every agent gets a copy with its own scratch folder and output.
        sink = self._stack.enter_context(world.artifacts.open_writer(world.settings.limits.output_mb << 20))
        return build_read_only_shell(world, sight, sink)

    def _site(self, agent: str, sink: ArtifactWriter) -> ExecutionContext:
        """Build a site with its own scratch folder, so that no agent sees what another one writes."""
        world = self.world
        scratch = Path(tempfile.mkdtemp(prefix="agent-", dir=world.scratch))
        shell = replace(self.shell, scratch=scratch, sink=sink)
        return ExecutionContext(
            work_tree=shell.view.files,
            scratch=scratch,
            run=shell,
            say=lambda line: self.on_message(agent, line),
            on_progress=lambda line: self.on_progress(agent, line),
            sandbox_path=find_sandbox_root(shell),
            level=world.sandbox.level,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
            mask=world.secrets,
        )

    def close(self) -> None:
        self._stack.close()


def _end_with_output(
    sink: ArtifactWriter, ending: AnswerCallback, dispatched: DispatchResult, write: RowWriter
) -> None:
    """Record the output of the agent's commands with its answer, because neither can be produced again."""
    ending(dispatched, lambda *rows: write(*rows, *_output_rows(sink)))


def _output_rows(sink: ArtifactWriter) -> tuple[LedgerRow, ...]:
    return (sink.finish().to_row(),) if sink.is_unpublished else ()


def get_answer(dispatched: DispatchResult) -> FrozenModel | Fault:
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
class SingleRequest:
    """One request to an agent, with its backend and limits."""

    role: Role
    focus: str | None
    request: FrozenModel
    backend: Backend
    budget: Budget
    seconds: float | None


@dataclass(frozen=True)
class SingleResult:
    dispatched: DispatchResult
    spent: BudgetUsage


def ask_agent(world: RunContext, asking: SingleRequest, site: ExecutionContext) -> SingleResult:
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
    meter = SpendingMeter(asking.budget)
    dispatcher = Dispatcher(MessageBus(world.ledger, world.run_id), meter)
    with world.artifacts.open_writer(world.settings.limits.output_mb << 20) as sink:
        gate = world.settings.gate
        sight = ReadOnlyView(
            world.base_tree,
            world.base_commit,
            gate.architect_seconds,
            gate.network,
            gate.pass_through,
            hide_secrets=True,
        )
        shell = build_read_only_shell(world, sight, sink)
        ground = ToolContext(
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
            sandbox_path=find_sandbox_root(shell),
            level=world.sandbox.level,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
        )
        occasion = DispatchKey(run_id=world.run_id, role=asking.role.name, step="ask", focus=asking.focus)
        text = format_request(asking.role, asking.request)
        errand = DispatchRequest(text, asking.backend, Toolbox(ground, asking.role.tools), agent_site, asking.seconds)
        try:
            dispatched = dispatcher.dispatch(asking.role, occasion, errand)
        except BaseException as error:
            payload: dict[str, JsonValue] = {"reason": str(error) or "interrupted"}
            world.ledger.append(EventRow(run_id=world.run_id, type="run.interrupted", payload=payload))
            raise
        world.ledger.append(sink.finish().to_row())
    outcome = "failed" if dispatched.fault else "passed"
    reason = dispatched.completion.summary if dispatched.fault else ""
    world.ledger.append(
        EventRow(run_id=world.run_id, type="run.finished", payload={"outcome": outcome, "reason": reason})
    )
    return SingleResult(dispatched, meter.get_spent())
