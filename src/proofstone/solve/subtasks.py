"""Subtasks pursued: the shell that drives `solve.rules.subtask`, one loop for each subtask.

Those that only look are pursued beside each other. Those that may change something have the work tree for themselves,
one after the other in the order of the plan: else nobody could say who has left what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pydantic import TypeAdapter

from proofstone.agents.dispatch import in_short
from proofstone.agents.models import Dispatched, Fault, FaultKind
from proofstone.agents.roles.models.solve import SolveExecutionOutput
from proofstone.agents.roles.models.solve_messages import ExecutionResult, ExecutionStatus, SubTask, SubTaskOutcome
from proofstone.agents.spending import stop_for
from proofstone.errors import RepositoryError
from proofstone.runtime.parallel import side_by_side
from proofstone.solve.agents import Asked, SolveAgents, only_looks
from proofstone.solve.journal import look
from proofstone.solve.requests import asking_beside
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskValidator,
    Executed,
    Failed,
    FastNeed,
    FastSent,
    Heard,
    Look,
    Looked,
    Noted,
    Pursue,
    Say,
)
from proofstone.solve.rules.subtask import pursue

_EXECUTED: Final = TypeAdapter(Executed)
_LOOKED: Final = TypeAdapter(Looked)
_SHOWN: Final = 20
"""Calls that a result tells of."""


@dataclass(frozen=True)
class Subtasks:
    agents: SolveAgents
    asked: Asked
    say: Callable[[str, Say], None]
    """Over the bus; the first word names the message, and is the same after a crash."""
    pursued: Callable[[SubTaskOutcome], None]
    at_once: int

    def pursue(self, need: Pursue) -> tuple[SubTaskOutcome, ...]:
        """All of them, in their order."""
        jobs = {subtask.subtask_id: partial(self._one, need, subtask) for subtask in need.subtasks}
        looking = [subtask.subtask_id for subtask in need.subtasks if only_looks(subtask)]
        cancel = self.agents.workspace.world.cancel
        ended = dict(zip(looking, side_by_side([jobs[id] for id in looking], self.at_once, cancel), strict=True))
        for id, job in jobs.items():
            if id not in ended:
                (ended[id],) = side_by_side([job], 1, cancel)
        return tuple(ended[subtask.subtask_id] for subtask in need.subtasks)

    def _one(self, need: Pursue, subtask: SubTask) -> SubTaskOutcome:
        loop = pursue(need.spec, subtask, need.before, need.blocked_tools, need.blocked_targets)
        wanted = next(loop)
        said = 0
        while True:
            if isinstance(wanted, Say):
                said += 1
                self.say(f"{subtask.subtask_id}/{said}", wanted)
            sent = self._met(wanted, need.round)
            try:
                wanted = loop.send(sent)
            except StopIteration as stop:
                outcome: SubTaskOutcome = stop.value
                self.pursued(outcome)
                return outcome

    def _met(self, need: FastNeed, round: int) -> FastSent:
        match need:
            case Say():
                return Noted()
            case AskExecutor():
                return self._executed(need, round)
            case AskValidator():
                came = self.asked.once(asking_beside(need, self.asked.run_id, round))
                return Failed(came.why) if isinstance(came, Fault) else Heard(came)
            case Look():
                return self.looked(need)

    def looked(self, need: Look) -> Looked:
        """The engine's own eyes; also on the task as a whole."""
        step = f"look/{need.where}/a{need.attempt}"
        about = "\n".join((*(item.model_dump_json() for item in need.criteria), need.output))
        known = self.asked.steps.recall(step, about)
        if known is not None:
            return _LOOKED.validate_python(known["came"])
        agents = self.agents
        seconds = agents.workspace.world.settings.limits.check_seconds
        looked = Looked(tuple(look(item, agents.workspace, need.output, seconds) for item in need.criteria))
        self.asked.steps.keep(step, about, {"came": _LOOKED.dump_python(looked, mode="json")})
        return looked

    # Executors.

    def _executed(self, need: AskExecutor, round: int) -> Executed:
        one = asking_beside(need, self.asked.run_id, round)
        workspace = self.agents.workspace
        if (known := self.asked.steps.recall(one.occasion.id, one.text)) is not None:
            workspace.stand_at(str(known["tree"]))
            return _EXECUTED.validate_python(known["came"])
        before = workspace.tree
        self.asked.watching.asked(one.who, one.about)
        came = self.agents.execute(one, need.subtask, need.blocked_tools)
        if came.fault is not None:
            stop_for(came.fault, one.occasion.agent)
        executed = self._what_came(need.subtask, came)
        if not only_looks(need.subtask):
            executed = self._with_files(executed, before)
        recorded = {
            "agent": one.occasion.agent,
            "came": _EXECUTED.dump_python(executed, mode="json"),
            "tree": workspace.tree,
        }
        self.asked.steps.keep(one.occasion.id, one.text, recorded)
        crashed = executed.result.crashed
        self.asked.watching.answered(one.who, crashed or executed.result.status, failed=bool(crashed))
        return executed

    def _what_came(self, subtask: SubTask, came: Dispatched) -> Executed:
        """What a program does with tools of its own is not seen: it counts as having used what its subtask names."""
        calls = self.agents.calls(came)
        unseen = "executor" in self.agents.own_tools
        called, touched = (call.call.name for call in calls), (call.target for call in calls if call.target)
        tools = tuple(dict.fromkeys((*(subtask.tools if unseen else ()), *called)))
        targets = tuple(dict.fromkeys((*(subtask.files if unseen else ()), *touched)))
        obstacles = tuple(dict.fromkeys(call.target for call in calls if call.target and not call.ok))
        output = came.output if isinstance(came.output, SolveExecutionOutput) else None
        fault = came.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer")
        result = ExecutionResult(
            subtask_id=subtask.subtask_id,
            status=ExecutionStatus(output.status) if output else ExecutionStatus.FAILED,
            output=output.output if output else None,
            tool_calls=tuple(in_short(call.call) for call in calls[:_SHOWN]),
            crashed="" if output else f"{fault.kind}: {fault.why}",
        )
        return Executed(result, tools, targets, output is not None, obstacles)

    def _with_files(self, executed: Executed, before: str) -> Executed:
        """What it changed counts among what it worked on. A work tree that cannot be frozen is as good as none."""
        workspace = self.agents.workspace
        try:
            workspace.frozen()
        except RepositoryError as error:
            spoilt = executed.result.model_copy(update={"crashed": error.message, "status": ExecutionStatus.FAILED})
            return replace(executed, result=spoilt, may_correct=False)
        changed = (item.path for item in workspace.changed(before))
        return replace(executed, targets=tuple(dict.fromkeys((*executed.targets, *changed))))
