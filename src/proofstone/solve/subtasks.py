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

from proofstone.agents.dispatch import summarize_call
from proofstone.agents.models import DispatchResult, Fault, FaultKind
from proofstone.agents.roles.models.solve import SolveExecutionOutput
from proofstone.agents.roles.models.solve_messages import ExecutionResult, ExecutionStatus, SubTask, SubTaskOutcome
from proofstone.agents.spending import raise_if_fatal
from proofstone.errors import RepositoryError
from proofstone.runtime.parallel import run_parallel
from proofstone.solve.agents import RecordedAgents, SolveAgents, is_read_only
from proofstone.solve.journal import verify_criterion
from proofstone.solve.requests import build_subtask_dispatch
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskValidator,
    CheckCriteria,
    CriteriaVerdicts,
    ExecutionRecord,
    PublishMessage,
    PursueSubtasks,
    SolveAcknowledgement,
    SolveAgentFailure,
    SolveAgentReply,
    SubtaskEffect,
    SubtaskEffectResult,
)
from proofstone.solve.rules.subtask import pursue_subtask

_EXECUTED_ADAPTER: Final = TypeAdapter(ExecutionRecord)
_LOOKED_ADAPTER: Final = TypeAdapter(CriteriaVerdicts)
_MAX_CALLS: Final = 20
"""The number of tool calls in a result."""


@dataclass(frozen=True)
class SubtaskRunner:
    agents: SolveAgents
    agents_on_record: RecordedAgents
    publish: Callable[[str, PublishMessage], None]
    """Publish a message on the bus; the first argument names the message and is the same after a crash."""
    on_outcome: Callable[[SubTaskOutcome], None]
    jobs: int

    def pursue(self, effect: PursueSubtasks) -> tuple[SubTaskOutcome, ...]:
        """Pursue all subtasks; return their outcomes in order."""
        jobs = {subtask.subtask_id: partial(self._pursue_subtask, effect, subtask) for subtask in effect.subtasks}
        read_only_ids = [subtask.subtask_id for subtask in effect.subtasks if is_read_only(subtask)]
        cancel = self.agents.workspace.context.cancel
        outcomes = dict(
            zip(read_only_ids, run_parallel([jobs[id] for id in read_only_ids], self.jobs, cancel), strict=True)
        )
        for id, job in jobs.items():
            if id not in outcomes:
                (outcomes[id],) = run_parallel([job], 1, cancel)
        return tuple(outcomes[subtask.subtask_id] for subtask in effect.subtasks)

    def _pursue_subtask(self, effect: PursueSubtasks, subtask: SubTask) -> SubTaskOutcome:
        loop = pursue_subtask(effect.spec, subtask, effect.before, effect.blocked_tools, effect.blocked_targets)
        step_effect = next(loop)
        message_count = 0
        while True:
            if isinstance(step_effect, PublishMessage):
                message_count += 1
                self.publish(f"{subtask.subtask_id}/{message_count}", step_effect)
            result = self._perform(step_effect, effect.round)
            try:
                step_effect = loop.send(result)
            except StopIteration as stop:
                outcome: SubTaskOutcome = stop.value
                self.on_outcome(outcome)
                return outcome

    def _perform(self, effect: SubtaskEffect, round: int) -> SubtaskEffectResult:
        match effect:
            case PublishMessage():
                return SolveAcknowledgement()
            case AskExecutor():
                return self._execute(effect, round)
            case AskValidator():
                answer = self.agents_on_record.ask_once(
                    build_subtask_dispatch(effect, self.agents_on_record.run_id, round)
                )
                return SolveAgentFailure(answer.why) if isinstance(answer, Fault) else SolveAgentReply(answer)
            case CheckCriteria():
                return self.verify_criteria(effect)

    def verify_criteria(self, effect: CheckCriteria) -> CriteriaVerdicts:
        """Verify criteria by the engine itself, also for the task as a whole."""
        step = f"look/{effect.where}/a{effect.attempt}"
        input = "\n".join((*(criterion.model_dump_json() for criterion in effect.criteria), effect.output))
        recorded = self.agents_on_record.journal.lookup(step, input)
        if recorded is not None:
            return _LOOKED_ADAPTER.validate_python(recorded["came"])
        agents = self.agents
        seconds = agents.workspace.context.settings.limits.check_seconds
        verdicts = CriteriaVerdicts(
            tuple(
                verify_criterion(criterion, agents.workspace, effect.output, seconds) for criterion in effect.criteria
            )
        )
        self.agents_on_record.journal.record(step, input, {"came": _LOOKED_ADAPTER.dump_python(verdicts, mode="json")})
        return verdicts

    # Executors.

    def _execute(self, effect: AskExecutor, round: int) -> ExecutionRecord:
        request = build_subtask_dispatch(effect, self.agents_on_record.run_id, round)
        workspace = self.agents.workspace
        if (recorded := self.agents_on_record.journal.lookup(request.occasion.id, request.text)) is not None:
            workspace.restore(str(recorded["tree"]))
            return _EXECUTED_ADAPTER.validate_python(recorded["came"])
        before = workspace.tree
        self.agents_on_record.observer.on_agent_started(request.agent_label, request.subject)
        dispatched = self.agents.execute(request, effect.subtask, effect.blocked_tools)
        if dispatched.fault is not None:
            raise_if_fatal(dispatched.fault, request.occasion.agent)
        executed = self._build_result(effect.subtask, dispatched)
        if not is_read_only(effect.subtask):
            executed = self._add_changed_files(executed, before)
        payload = {
            "agent": request.occasion.agent,
            "came": _EXECUTED_ADAPTER.dump_python(executed, mode="json"),
            "tree": workspace.tree,
        }
        self.agents_on_record.journal.record(request.occasion.id, request.text, payload)
        error = executed.result.crashed
        self.agents_on_record.observer.on_agent_ended(
            request.agent_label, error or executed.result.status, failed=bool(error)
        )
        return executed

    def _build_result(self, subtask: SubTask, dispatched: DispatchResult) -> ExecutionRecord:
        """Build the result. The tool calls of a program with its own tools are not visible: they count as what its
        subtask names.
        """
        calls = self.agents.read_calls(dispatched)
        has_own_tools = "executor" in self.agents.roles_with_own_tools
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
            tool_calls=tuple(summarize_call(call.call) for call in calls[:_MAX_CALLS]),
            crashed="" if output else f"{fault.kind}: {fault.why}",
        )
        return ExecutionRecord(result, tools, targets, output is not None, obstacles)

    def _add_changed_files(self, executed: ExecutionRecord, before: str) -> ExecutionRecord:
        """Add the changed files to the targets. A work tree that cannot be frozen fails the execution."""
        workspace = self.agents.workspace
        try:
            workspace.freeze()
        except RepositoryError as error:
            failed = executed.result.model_copy(update={"crashed": error.message, "status": ExecutionStatus.FAILED})
            return replace(executed, result=failed, may_correct=False)
        paths = (change.path for change in workspace.list_changes(before))
        return replace(executed, targets=tuple(dict.fromkeys((*executed.targets, *paths))))
