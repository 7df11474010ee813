"""Who looks on while a goal is pursued.

Those who pursue a goal: dispatched like any agent, in the work tree of the run.

An executor may change it, with the tools that its subtask names and no blocked one; looking is always allowed. Whoever
plans or judges only looks.

Who is asked only looks, and is asked once: what they answered is on record before the loop hears of it.
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
    """What is known before anybody is asked."""

    run_id: str
    goal: str
    agents: Mapping[str, str]
    """Who serves whom."""
    policy: str
    max_replans: int
    time_budget_ms: int
    notes: tuple[str, ...] = ()
    resumed: bool = False


class Watching(Protocol):
    """Told from several threads at once while executors work beside each other."""

    def began(self, beginning: Beginning) -> None: ...

    def asked(self, agent: str, about: str) -> None:
        """An agent begins: `planner`, about `round 2`; `executor`, about the intent of its subtask."""
        ...

    def doing(self, agent: str, line: str) -> None:
        """What it does, in a line, in the place of what it did before."""
        ...

    def said(self, agent: str, line: str) -> None:
        """For the person who looks on: a question to them, a pause, a warning."""
        ...

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        """In one line what came of it: `3 subtasks`, or why there is no answer."""
        ...

    def rejected(self, round: int, why: str) -> None:
        """A plan was not taken; the planner is told why."""
        ...

    def planned(self, round: int, subtasks: Sequence[SubTask]) -> None:
        """A plan was taken."""
        ...

    def pursued(self, outcome: SubTaskOutcome) -> None:
        """A subtask has ended."""
        ...

    def decided(self, round: SolveRound) -> None:
        """A round has ended: where the loop stands, and what is next. The last one ends with accept or abandon."""
        ...

    def spending(self, spent: Spent) -> None: ...


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


@dataclass(frozen=True)
class Asked:
    run_id: str
    steps: Steps
    agents: SolveAgents
    watching: Watching

    def once(self, one: SolveAsking) -> Contract | Fault:
        """Their answer, now or on record."""
        known = self.steps.recall(one.occasion.id, one.text)
        if known is not None:
            read = Fault if "fault" in known else one.role.output
            return read.model_validate(known.get("fault") or known["output"])
        self.watching.asked(one.who, one.about)
        came = self.agents.ask(one)
        if isinstance(came, Fault):
            stop_for(came, one.occasion.agent)
        kind = "fault" if isinstance(came, Fault) else "output"
        self.steps.keep(one.occasion.id, one.text, {"agent": one.occasion.agent, kind: came.model_dump(mode="json")})
        self.watching.answered(one.who, _in_short(came), failed=isinstance(came, Fault))
        return came


def _in_short(came: Contract | Fault) -> str:
    match came:
        case Fault():
            return came.why
        case PerceivedOutput():
            return came.question or came.intent
        case SolvePlanOutput():
            criteria = len(came.task_criteria)
            return (
                f"{counted(len(came.subtasks), 'subtask')}, {criteria} {'criterion' if criteria == 1 else 'criteria'}"
            )
        case JudgementOutput():
            failed = sum(verdict.verdict == "fail" for verdict in came.verdicts)
            return f"{counted(len(came.verdicts), 'verdict')}, {failed} failed"
        case MergeOutput() | FailureOutput():
            return came.summary
    raise AssertionError(f"nobody answers with {type(came).__name__}")
