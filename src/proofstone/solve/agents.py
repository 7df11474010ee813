"""The agents that pursue a goal, dispatched in the work tree of the run, and the observer of a run.

An executor may change the work tree, with the tools that its subtask names and that are not blocked; read access is
always allowed. All other agents only read. Each of them is dispatched once: its answer is recorded before the loop
receives it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from proofstone.agents.backends import Backend
from proofstone.agents.dispatch import Dispatcher, Errand
from proofstone.agents.executors.context import SandboxedShell, Site
from proofstone.agents.models import CompletionStatus, Dispatched, Fault, FaultKind, ToolCall
from proofstone.agents.roles.models.solve import (
    FailureOutput,
    JudgementOutput,
    MergeOutput,
    PerceivedOutput,
    SolvePlanOutput,
)
from proofstone.agents.roles.models.solve_messages import SubTask, SubTaskOutcome
from proofstone.agents.roles.registry import IN_THE_LOOP
from proofstone.agents.sandbox_shell import seen_at
from proofstone.agents.spending import on_record, stop_for
from proofstone.agents.tools.models import READING, WRITING, Tool
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.common.models import Contract, Spent
from proofstone.common.text import counted
from proofstone.runtime.journal import Steps
from proofstone.solve.models import SolveRound
from proofstone.solve.requests import SolveAsking
from proofstone.solve.workspace import Workspace


@dataclass(frozen=True)
class Beginning:
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


class Watching(Protocol):
    """The observer of a run. Executors work in parallel, so it is called from several threads."""

    def began(self, beginning: Beginning) -> None: ...

    def asked(self, agent: str, about: str) -> None:
        """An agent starts: `planner`, about `round 2`; `executor`, about the intent of its subtask."""
        ...

    def doing(self, agent: str, line: str) -> None:
        """The current activity of the agent, in one line that replaces the previous one."""
        ...

    def said(self, agent: str, line: str) -> None:
        """A message for the user: a question, a pause, a warning."""
        ...

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        """The result in one line: `3 subtasks`, or why there is no answer."""
        ...

    def rejected(self, round: int, why: str) -> None:
        """A plan was rejected; the planner receives the reason."""
        ...

    def planned(self, round: int, subtasks: Sequence[SubTask]) -> None:
        """A plan was accepted."""
        ...

    def pursued(self, outcome: SubTaskOutcome) -> None:
        """A subtask has ended."""
        ...

    def decided(self, round: SolveRound) -> None:
        """A round has ended, with its measurements and the next directive. The last round ends with accept or
        abandon.
        """
        ...

    def spending(self, spent: Spent) -> None: ...


TOOLS: Final = tuple(tool.value for tool in Tool if tool in IN_THE_LOOP["execute"].tools)
"""The tools of an executor."""


class Called(NamedTuple):
    call: ToolCall
    ok: bool

    @property
    def target(self) -> str:
        """The path in the arguments of the call, if there is one."""
        path = self.call.arguments.get("path")
        return path if isinstance(path, str) else ""


@dataclass(frozen=True)
class SolveAgents:
    workspace: Workspace
    backends: Mapping[str, Backend]
    """The backend of each role."""
    dispatcher: Dispatcher
    doing: Callable[[str, str], None]
    """Called with the current activity of an agent, in one line."""
    said: Callable[[str, str], None]
    """Called with a message to the user from an agent or its backend."""
    seconds: Callable[[str], float | None]
    """The time limit of a role, in seconds."""
    own_tools: Collection[str] = ()
    """The roles that are served by a program with its own tools."""
    coding_agents: Collection[str] = ()
    """The roles that are served by a coding agent, which is never silent for long while it works."""

    def ask(self, request: SolveAsking) -> Contract | Fault:
        """Dispatch an agent that only reads."""
        result = self._dispatch(request, request.role.tools & READING, keeps=False)
        if result.output is None:
            return result.fault or Fault(kind=FaultKind.CRASHED, why="the agent gave no answer")
        if result.completion.status is CompletionStatus.ERROR:  # whatever else it reports, it has failed
            return Fault(
                kind=FaultKind.FAILED, why=result.completion.summary or "the agent reported a failure without a reason"
            )
        return result.output

    def execute(self, request: SolveAsking, subtask: SubTask, blocked: Collection[str]) -> Dispatched:
        return self._dispatch(request, allowed(subtask, blocked), keeps=not only_looks(subtask))

    def calls(self, dispatched: Dispatched) -> tuple[Called, ...]:
        """Return the calls of this conversation that were not refused."""
        workspace = self.workspace
        recorded = on_record(workspace.world.ledger, workspace.world.run_id).get(dispatched.occasion.id)
        if recorded is None:
            return ()
        results = {result.call_id: result for result in recorded.results}
        calls = [call for turn in recorded.turns for call in turn.calls if call.id in results]
        return tuple(Called(call, results[call.id].ok) for call in calls if results[call.id].refused is None)

    def spent(self) -> Spent:
        return self.dispatcher.meter.spent()

    def dispatches(self) -> int:
        return len(on_record(self.workspace.world.ledger, self.workspace.world.run_id))

    def _dispatch(self, request: SolveAsking, tools: Collection[Tool], *, keeps: bool) -> Dispatched:
        world = self.workspace.world
        gate = world.settings.gate
        idle = gate.idle_seconds if request.role.name in self.coding_agents else None
        limits = world.job_limits(gate.agent_seconds, idle)
        with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
            with self.workspace.shell(sink, limits, keeps=keeps) as shell:
                errand = Errand(
                    text=request.text,
                    backend=self.backends[request.role.name],
                    toolbox=Toolbox(self.workspace.ground(shell if keeps else None), tools),
                    site=self._build_site(request, shell, keeps=keeps),
                    seconds=self.seconds(request.role.name),
                )
                result = self.dispatcher.dispatch(request.role, request.occasion, errand)
            world.ledger.append(sink.finish().row())
        return result

    def _build_site(self, request: SolveAsking, shell: SandboxedShell, *, keeps: bool) -> Site:
        world, agent = self.workspace.world, request.who
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
    """Return the tools of the executor. A subtask that names no tools gets all of them."""
    available = IN_THE_LOOP["execute"].tools
    chosen = (
        {tool for tool in available if tool in subtask.tools} | (available & READING) if subtask.tools else available
    )
    return frozenset(tool for tool in chosen if tool not in blocked)


def only_looks(subtask: SubTask) -> bool:
    """Return whether the subtask can run in parallel with others: it names its tools, and none of them changes
    anything.
    """
    return bool(subtask.tools) and not WRITING & set(map(Tool, subtask.tools))


@dataclass(frozen=True)
class Asked:
    run_id: str
    steps: Steps
    agents: SolveAgents
    watching: Watching

    def once(self, request: SolveAsking) -> Contract | Fault:
        """Return the answer of the agent, from the journal or from a new dispatch."""
        recorded = self.steps.recall(request.occasion.id, request.text)
        if recorded is not None:
            model = Fault if "fault" in recorded else request.role.output
            return model.model_validate(recorded.get("fault") or recorded["output"])
        self.watching.asked(request.who, request.about)
        answer = self.agents.ask(request)
        if isinstance(answer, Fault):
            stop_for(answer, request.occasion.agent)
        kind = "fault" if isinstance(answer, Fault) else "output"
        self.steps.keep(
            request.occasion.id, request.text, {"agent": request.occasion.agent, kind: answer.model_dump(mode="json")}
        )
        self.watching.answered(request.who, _summarize_answer(answer), failed=isinstance(answer, Fault))
        return answer


def _summarize_answer(answer: Contract | Fault) -> str:
    match answer:
        case Fault():
            return answer.why
        case PerceivedOutput():
            return answer.question or answer.intent
        case SolvePlanOutput():
            criteria = len(answer.task_criteria)
            return (
                f"{counted(len(answer.subtasks), 'subtask')}, {criteria} {'criterion' if criteria == 1 else 'criteria'}"
            )
        case JudgementOutput():
            failed = sum(verdict.verdict == "fail" for verdict in answer.verdicts)
            return f"{counted(len(answer.verdicts), 'verdict')}, {failed} failed"
        case MergeOutput() | FailureOutput():
            return answer.summary
    raise AssertionError(f"no agent answers with {type(answer).__name__}")
