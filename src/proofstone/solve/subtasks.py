"""Pursue the subtasks of a plan: perform the effects of `solve.rules.subtask`, one loop for each subtask.

Subtasks that only read run in parallel. Subtasks that may change something have the work tree for themselves, one after
the other in the order of the plan, so that every change has one author.
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

_EXECUTED_ADAPTER: Final = TypeAdapter(Executed)
_LOOKED_ADAPTER: Final = TypeAdapter(Looked)
_MAX_CALLS: Final = 20
"""The number of tool calls in a result."""


@dataclass(frozen=True)
class Subtasks:
    agents: SolveAgents
    asked: Asked
    say: Callable[[str, Say], None]
    """Publish a message on the bus; the first argument names the message and is the same after a crash."""
    pursued: Callable[[SubTaskOutcome], None]
    at_once: int

    def pursue(self, effect: Pursue) -> tuple[SubTaskOutcome, ...]:
        """Pursue all subtasks; return their outcomes in order."""
        jobs = {subtask.subtask_id: partial(self._pursue_subtask, effect, subtask) for subtask in effect.subtasks}
        read_only_ids = [subtask.subtask_id for subtask in effect.subtasks if only_looks(subtask)]
        cancel = self.agents.workspace.world.cancel
        outcomes = dict(
            zip(read_only_ids, side_by_side([jobs[id] for id in read_only_ids], self.at_once, cancel), strict=True)
        )
        for id, job in jobs.items():
            if id not in outcomes:
                (outcomes[id],) = side_by_side([job], 1, cancel)
        return tuple(outcomes[subtask.subtask_id] for subtask in effect.subtasks)

    def _pursue_subtask(self, effect: Pursue, subtask: SubTask) -> SubTaskOutcome:
        loop = pursue(effect.spec, subtask, effect.before, effect.blocked_tools, effect.blocked_targets)
        step_effect = next(loop)
        message_count = 0
        while True:
            if isinstance(step_effect, Say):
                message_count += 1
                self.say(f"{subtask.subtask_id}/{message_count}", step_effect)
            result = self._perform(step_effect, effect.round)
            try:
                step_effect = loop.send(result)
            except StopIteration as stop:
                outcome: SubTaskOutcome = stop.value
                self.pursued(outcome)
                return outcome

    def _perform(self, effect: FastNeed, round: int) -> FastSent:
        match effect:
            case Say():
                return Noted()
            case AskExecutor():
                return self._execute(effect, round)
            case AskValidator():
                answer = self.asked.once(asking_beside(effect, self.asked.run_id, round))
                return Failed(answer.why) if isinstance(answer, Fault) else Heard(answer)
            case Look():
                return self.looked(effect)

    def looked(self, effect: Look) -> Looked:
        """Verify criteria by the engine itself, also for the task as a whole."""
        step = f"look/{effect.where}/a{effect.attempt}"
        input = "\n".join((*(criterion.model_dump_json() for criterion in effect.criteria), effect.output))
        recorded = self.asked.steps.recall(step, input)
        if recorded is not None:
            return _LOOKED_ADAPTER.validate_python(recorded["came"])
        agents = self.agents
        seconds = agents.workspace.world.settings.limits.check_seconds
        verdicts = Looked(
            tuple(look(criterion, agents.workspace, effect.output, seconds) for criterion in effect.criteria)
        )
        self.asked.steps.keep(step, input, {"came": _LOOKED_ADAPTER.dump_python(verdicts, mode="json")})
        return verdicts

    # Executors.

    def _execute(self, effect: AskExecutor, round: int) -> Executed:
        request = asking_beside(effect, self.asked.run_id, round)
        workspace = self.agents.workspace
        if (recorded := self.asked.steps.recall(request.occasion.id, request.text)) is not None:
            workspace.stand_at(str(recorded["tree"]))
            return _EXECUTED_ADAPTER.validate_python(recorded["came"])
        before = workspace.tree
        self.asked.watching.asked(request.who, request.about)
        dispatched = self.agents.execute(request, effect.subtask, effect.blocked_tools)
        if dispatched.fault is not None:
            stop_for(dispatched.fault, request.occasion.agent)
        executed = self._build_result(effect.subtask, dispatched)
        if not only_looks(effect.subtask):
            executed = self._add_changed_files(executed, before)
        payload = {
            "agent": request.occasion.agent,
            "came": _EXECUTED_ADAPTER.dump_python(executed, mode="json"),
            "tree": workspace.tree,
        }
        self.asked.steps.keep(request.occasion.id, request.text, payload)
        error = executed.result.crashed
        self.asked.watching.answered(request.who, error or executed.result.status, failed=bool(error))
        return executed

    def _build_result(self, subtask: SubTask, dispatched: Dispatched) -> Executed:
        """Build the result. The tool calls of a program with its own tools are not visible: they count as what its
        subtask names.
        """
        calls = self.agents.calls(dispatched)
        has_own_tools = "executor" in self.agents.own_tools
        names, paths = (call.call.name for call in calls), (call.target for call in calls if call.target)
        tools = tuple(dict.fromkeys((*(subtask.tools if has_own_tools else ()), *names)))
        targets = tuple(dict.fromkeys((*(subtask.files if has_own_tools else ()), *paths)))
        obstacles = tuple(dict.fromkeys(call.target for call in calls if call.target and not call.ok))
        output = dispatched.output if isinstance(dispatched.output, SolveExecutionOutput) else None
        fault = dispatched.fault or Fault(kind=FaultKind.CRASHED, why="the agent gave no answer")
        result = ExecutionResult(
            subtask_id=subtask.subtask_id,
            status=ExecutionStatus(output.status) if output else ExecutionStatus.FAILED,
            output=output.output if output else None,
            tool_calls=tuple(in_short(call.call) for call in calls[:_MAX_CALLS]),
            crashed="" if output else f"{fault.kind}: {fault.why}",
        )
        return Executed(result, tools, targets, output is not None, obstacles)

    def _add_changed_files(self, executed: Executed, before: str) -> Executed:
        """Add the changed files to the targets. A work tree that cannot be frozen fails the execution."""
        workspace = self.agents.workspace
        try:
            workspace.frozen()
        except RepositoryError as error:
            failed = executed.result.model_copy(update={"crashed": error.message, "status": ExecutionStatus.FAILED})
            return replace(executed, result=failed, may_correct=False)
        paths = (change.path for change in workspace.changed(before))
        return replace(executed, targets=tuple(dict.fromkeys((*executed.targets, *paths))))
