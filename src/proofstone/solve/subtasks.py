"""Pursue the subtasks of a plan: perform the effects of `solve.rules.subtask`, one loop for each subtask.

Subtasks that only read run in parallel. Subtasks that may change something have the work tree for themselves, one after
the other in the order of the plan, so that every change has one author.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pydantic import JsonValue

from proofstone.agents.dispatch import summarize_call
from proofstone.agents.models import DispatchResult, Fault, FaultKind
from proofstone.agents.roles.models.solve import SolveExecutionOutput
from proofstone.agents.roles.models.solve_messages import ExecutionResult, ExecutionStatus, SubTask, SubTaskOutcome
from proofstone.agents.spending import raise_if_fatal
from proofstone.errors import RepositoryError
from proofstone.runtime.journal import Journal
from proofstone.runtime.rules import EffectDone
from proofstone.runtime.workflow import Handlers, Operation, decode_result, drive, encode_result, run_parallel
from proofstone.solve.agents import SolveAgents, SolveObserver, build_reader_operation, is_read_only
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
)
from proofstone.solve.rules.subtask import pursue_subtask

_MAX_CALLS: Final = 20
"""The number of tool calls in a result."""


@dataclass(frozen=True)
class SubtaskRunner:
    run_id: str
    agents: SolveAgents
    journal: Journal
    observer: SolveObserver
    publish: Callable[[str, PublishMessage], EffectDone]
    """Publish a message on the bus; the first argument names the message and is the same after a crash."""
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
        numbers = itertools.count(1)
        handlers: Handlers = {
            PublishMessage: lambda message: Operation(
                partial(self.publish, f"{subtask.subtask_id}/{next(numbers)}", message)
            ),
            AskExecutor: partial(self._execute, effect.round),
            AskValidator: lambda question: build_reader_operation(
                self.agents, build_subtask_dispatch(question, self.run_id, effect.round)
            ),
            CheckCriteria: self.check_criteria,
        }
        loop = pursue_subtask(effect.spec, subtask, effect.before, effect.blocked_tools, effect.blocked_targets)
        outcome = drive(loop, handlers, self.journal, self.observer)
        self.observer.on_subtask_ended(outcome)
        return outcome

    def check_criteria(self, effect: CheckCriteria) -> Operation[CriteriaVerdicts]:
        """Return the operation that checks criteria by the engine itself, also for the task as a whole."""
        workspace = self.agents.workspace
        seconds = workspace.context.settings.limits.check_seconds
        return Operation(
            perform=lambda: CriteriaVerdicts(
                tuple(verify_criterion(criterion, workspace, effect.output, seconds) for criterion in effect.criteria)
            ),
            step=f"look/{effect.where}/a{effect.attempt}",
            input="\n".join((*(criterion.model_dump_json() for criterion in effect.criteria), effect.output)),
            in_thread=True,
        )

    # Executors.

    def _execute(self, round: int, effect: AskExecutor) -> Operation[ExecutionRecord]:
        request = build_subtask_dispatch(effect, self.run_id, round)
        workspace = self.agents.workspace

        def execute() -> ExecutionRecord:
            before = workspace.tree
            dispatched = self.agents.execute(request, effect.subtask, effect.blocked_tools)
            if dispatched.fault is not None:
                raise_if_fatal(dispatched.fault, request.occasion.agent)
            executed = self._build_result(effect.subtask, dispatched)
            return executed if is_read_only(effect.subtask) else self._add_changed_files(executed, before)

        def decode(payload: Mapping[str, JsonValue]) -> ExecutionRecord:
            workspace.restore(str(payload["tree"]))
            executed: ExecutionRecord = decode_result(payload)
            return executed

        return Operation(
            perform=execute,
            step=request.occasion.id,
            input=request.text,
            encode=lambda executed: {
                "agent": request.occasion.agent,
                **encode_result(executed),
                "tree": workspace.tree,
            },
            decode=decode,
            agent=request.agent_label,
            about=request.subject,
            describe=lambda executed: (
                executed.result.crashed or executed.result.status,
                bool(executed.result.crashed),
            ),
        )

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
