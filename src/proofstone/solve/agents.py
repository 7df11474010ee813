"""The agents that pursue a goal, dispatched in the work tree of the run, and the observer of a run.

An executor may change the work tree, with the tools that its subtask names and that are not blocked; read access is
always allowed. All other agents only read. Each of them is dispatched once: its answer is recorded before the loop
receives it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from pydantic import JsonValue

from proofstone.agents.backends import Backend
from proofstone.agents.dispatch import Dispatcher, DispatchRequest
from proofstone.agents.executors.context import ExecutionContext, SandboxedShell
from proofstone.agents.models import CompletionStatus, DispatchResult, Fault, FaultKind, ToolCall
from proofstone.agents.roles.models.solve import (
    FailureOutput,
    JudgementOutput,
    MergeOutput,
    PerceiveOutput,
    SolvePlanOutput,
)
from proofstone.agents.roles.models.solve_messages import SubTask, SubTaskOutcome
from proofstone.agents.roles.registry import LOOP_ROLES
from proofstone.agents.sandbox_shell import find_sandbox_root
from proofstone.agents.spending import raise_if_fatal, read_dispatch_records
from proofstone.agents.tools.models import READING_TOOLS, WRITING_TOOLS, Tool
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.common.models import BudgetUsage, FrozenModel
from proofstone.common.text import pluralize
from proofstone.runtime.workflow import AgentObserver, Operation
from proofstone.solve.models import SolveRound
from proofstone.solve.requests import SolveDispatch
from proofstone.solve.rules.effects import SolveAgentFailure, SolveAgentReply
from proofstone.solve.workspace import SolveWorkspace


@dataclass(frozen=True)
class SolveStart:
    """What is known before any agent is dispatched."""

    run_id: str
    goal: str
    agents: Mapping[str, str]
    """The agent that serves each role."""
    policy: str
    max_replans: int
    time_budget_ms: int
    notes: tuple[str, ...] = ()
    resumed: bool = False


class SolveObserver(AgentObserver, Protocol):
    """The observer of a run. Executors work in parallel, so it is called from several threads."""

    def on_run_started(self, beginning: SolveStart) -> None: ...

    def on_plan_rejected(self, round: int, why: str) -> None:
        """A plan was rejected; the planner receives the reason."""
        ...

    def on_plan_accepted(self, round: int, subtasks: Sequence[SubTask]) -> None:
        """A plan was accepted."""
        ...

    def on_subtask_ended(self, outcome: SubTaskOutcome) -> None:
        """A subtask has ended."""
        ...

    def on_round_ended(self, round: SolveRound) -> None:
        """A round has ended, with its measurements and the next directive. The last round ends with accept or
        abandon.
        """
        ...


EXECUTOR_TOOLS: Final = tuple(tool.value for tool in Tool if tool in LOOP_ROLES["execute"].tools)
"""The tools of an executor."""


class ExecutedCall(NamedTuple):
    call: ToolCall
    ok: bool

    @property
    def target(self) -> str:
        """The path in the arguments of the call, if there is one."""
        path = self.call.arguments.get("path")
        return path if isinstance(path, str) else ""


@dataclass(frozen=True)
class SolveAgents:
    workspace: SolveWorkspace
    backends: Mapping[str, Backend]
    """The backend of each role."""
    dispatcher: Dispatcher
    on_activity: Callable[[str, str], None]
    """Called with the current activity of an agent, in one line."""
    on_message: Callable[[str, str], None]
    """Called with a message to the user from an agent or its backend."""
    time_limit_of: Callable[[str], float | None]
    """The time limit of a role, in seconds."""
    roles_with_own_tools: Collection[str] = ()
    """The roles that are served by a program with its own tools."""
    coding_agent_roles: Collection[str] = ()
    """The roles that are served by a coding agent, which is never silent for long while it works."""

    def dispatch_reader(self, request: SolveDispatch) -> FrozenModel | Fault:
        """Dispatch an agent that only reads."""
        result = self._dispatch(request, request.role.tools & READING_TOOLS, keeps=False)
        if result.output is None:
            return result.fault or Fault(kind=FaultKind.CRASHED, why="the agent gave no answer")
        if result.completion.status is CompletionStatus.ERROR:  # whatever else it reports, it has failed
            return Fault(
                kind=FaultKind.FAILED, why=result.completion.summary or "the agent reported a failure without a reason"
            )
        return result.output

    def execute(self, request: SolveDispatch, subtask: SubTask, blocked: Collection[str]) -> DispatchResult:
        return self._dispatch(request, allowed_tools(subtask, blocked), keeps=not is_read_only(subtask))

    def read_calls(self, dispatched: DispatchResult) -> tuple[ExecutedCall, ...]:
        """Return the calls of this conversation that were not refused."""
        workspace = self.workspace
        recorded = read_dispatch_records(workspace.context.ledger, workspace.context.run_id).get(dispatched.occasion.id)
        if recorded is None:
            return ()
        results = {result.call_id: result for result in recorded.results}
        calls = [call for turn in recorded.turns for call in turn.calls if call.id in results]
        return tuple(ExecutedCall(call, results[call.id].ok) for call in calls if results[call.id].refused is None)

    def read_spent(self) -> BudgetUsage:
        return self.dispatcher.meter.get_spent()

    def count_dispatches(self) -> int:
        return len(read_dispatch_records(self.workspace.context.ledger, self.workspace.context.run_id))

    def _dispatch(self, request: SolveDispatch, tools: Collection[Tool], *, keeps: bool) -> DispatchResult:
        world = self.workspace.context
        gate = world.settings.gate
        idle = gate.idle_seconds if request.role.name in self.coding_agent_roles else None
        limits = world.job_limits(gate.agent_seconds, idle)
        with world.artifacts.open_writer(world.settings.limits.output_mb << 20) as sink:
            with self.workspace.open_shell(sink, limits, keeps=keeps) as shell:
                errand = DispatchRequest(
                    text=request.text,
                    backend=self.backends[request.role.name],
                    toolbox=Toolbox(self.workspace.tool_context(shell if keeps else None), tools),
                    site=self._build_site(request, shell, keeps=keeps),
                    seconds=self.time_limit_of(request.role.name),
                )
                result = self.dispatcher.dispatch(request.role, request.occasion, errand)
            world.ledger.append(sink.finish().to_row())
        return result

    def _build_site(self, request: SolveDispatch, shell: SandboxedShell, *, keeps: bool) -> ExecutionContext:
        world, agent = self.workspace.context, request.agent_label
        return ExecutionContext(
            work_tree=shell.view.files,
            scratch=shell.scratch,
            run=shell,
            say=lambda line: self.on_message(agent, line),
            on_progress=lambda line: self.on_activity(agent, line),
            scope=("**",) if keeps else (),
            sandbox_path=find_sandbox_root(shell),
            level=world.sandbox.level,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
            mask=world.secrets,
        )


def allowed_tools(subtask: SubTask, blocked: Collection[str]) -> frozenset[Tool]:
    """Return the tools of the executor. A subtask that names no tools gets all of them."""
    available = LOOP_ROLES["execute"].tools
    chosen = (
        {tool for tool in available if tool in subtask.tools} | (available & READING_TOOLS)
        if subtask.tools
        else available
    )
    return frozenset(tool for tool in chosen if tool not in blocked)


def is_read_only(subtask: SubTask) -> bool:
    """Return whether the subtask can run in parallel with others: it names its tools, and none of them changes
    anything.
    """
    return bool(subtask.tools) and not WRITING_TOOLS & set(map(Tool, subtask.tools))


def build_reader_operation(
    agents: SolveAgents, request: SolveDispatch
) -> Operation[SolveAgentReply | SolveAgentFailure]:
    """Return the operation of an agent that only reads."""

    def ask() -> SolveAgentReply | SolveAgentFailure:
        answer = agents.dispatch_reader(request)
        if not isinstance(answer, Fault):
            return SolveAgentReply(answer)
        raise_if_fatal(answer, request.occasion.agent)
        return SolveAgentFailure(answer.why)

    def encode(result: SolveAgentReply | SolveAgentFailure) -> dict[str, JsonValue]:
        said: dict[str, JsonValue] = (
            {"why": result.why}
            if isinstance(result, SolveAgentFailure)
            else {"output": result.output.model_dump(mode="json")}
        )
        return {"agent": request.occasion.agent, **said}

    def decode(payload: Mapping[str, JsonValue]) -> SolveAgentReply | SolveAgentFailure:
        if "why" in payload:
            return SolveAgentFailure(str(payload["why"]))
        return SolveAgentReply(request.role.output.model_validate(payload["output"]))

    return Operation(
        perform=ask,
        step=request.occasion.id,
        input=request.text,
        encode=encode,
        decode=decode,
        in_thread=True,
        agent=request.agent_label,
        about=request.subject,
        describe=lambda result: (_summarize_answer(result), isinstance(result, SolveAgentFailure)),
    )


def _summarize_answer(result: SolveAgentReply | SolveAgentFailure) -> str:
    if isinstance(result, SolveAgentFailure):
        return result.why
    answer = result.output
    match answer:
        case PerceiveOutput():
            return answer.question or answer.intent
        case SolvePlanOutput():
            criteria = len(answer.task_criteria)
            return (
                f"{pluralize(len(answer.subtasks), 'subtask')}, {criteria} "
                f"{'criterion' if criteria == 1 else 'criteria'}"
            )
        case JudgementOutput():
            failed = sum(verdict.verdict == "fail" for verdict in answer.verdicts)
            return f"{pluralize(len(answer.verdicts), 'verdict')}, {failed} failed"
        case MergeOutput() | FailureOutput():
            return answer.summary
    raise AssertionError(f"no agent answers with {type(answer).__name__}")
