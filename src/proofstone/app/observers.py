"""Observers that ignore everything, for programs that run Proofstone without showing its progress."""

from __future__ import annotations

from collections.abc import Sequence

from proofstone.agents.roles.models.plan_gate_records import Challenge, IterationState
from proofstone.agents.roles.models.solve_messages import SubTask, SubTaskOutcome
from proofstone.check.context import NullProgress, Progress
from proofstone.common.models import BudgetUsage
from proofstone.gate.models import RunView
from proofstone.gate.request import GateObserver
from proofstone.pipeline.models.run import ApprovalEntry, FinalChecks, PipelineRunConfig
from proofstone.plan_gate.models import PlanEvent
from proofstone.plan_gate.run import PlanGateObserver, PlanGateStart
from proofstone.solve.agents import SolveStart
from proofstone.solve.models import SolveRound


class _NullAgentObserver:
    """Ignores what the agents of a run do."""

    def on_agent_started(self, agent: str, about: str) -> None:
        return None

    def on_activity(self, agent: str, line: str) -> None:
        return None

    def on_message(self, agent: str, line: str) -> None:
        return None

    def on_agent_ended(self, agent: str, said: str, *, failed: bool) -> None:
        return None

    def on_spending(self, spent: BudgetUsage) -> None:
        return None


class NullGateObserver:
    """Ignores the progress of the task gate."""

    def on_run_started(self, view: RunView) -> None:
        return None

    def on_task_changed(self, view: RunView, task: str) -> None:
        return None

    def on_message(self, task: str, line: str) -> None:
        return None

    def on_output(self, task: str, data: bytes) -> None:
        return None

    def on_activity(self, task: str, line: str) -> None:
        return None

    def on_checks_started(self, task: str) -> Progress:
        return NullProgress()

    def on_spending(self, spent: BudgetUsage) -> None:
        return None


class NullPlanGateObserver(_NullAgentObserver):
    """Ignores the progress of the plan gate."""

    def on_run_started(self, beginning: PlanGateStart) -> None:
        return None

    def on_iteration_started(self, iteration: int) -> None:
        return None

    def on_iteration_ended(
        self, state: IterationState, challenges: Sequence[Challenge], events: Sequence[PlanEvent]
    ) -> None:
        return None


class NullSolveObserver(_NullAgentObserver):
    """Ignores the progress of the control loop."""

    def on_run_started(self, beginning: SolveStart) -> None:
        return None

    def on_plan_rejected(self, round: int, why: str) -> None:
        return None

    def on_plan_accepted(self, round: int, subtasks: Sequence[SubTask]) -> None:
        return None

    def on_subtask_ended(self, outcome: SubTaskOutcome) -> None:
        return None

    def on_round_ended(self, round: SolveRound) -> None:
        return None


class NullPipelineObserver(_NullAgentObserver):
    """Ignores the progress of the pipeline."""

    def on_run_started(self, run_id: str, setup: PipelineRunConfig, *, resumed: bool) -> None:
        return None

    def on_note(self, kind: str, text: str) -> None:
        return None

    def on_approval(self, entry: ApprovalEntry) -> None:
        return None

    def on_checks_started(self) -> Progress:
        return NullProgress()

    def on_checks_ended(self, checks: FinalChecks) -> None:
        return None

    def on_plan_gate_started(self, iteration: int) -> PlanGateObserver:
        return NullPlanGateObserver()

    def on_task_gate_started(self, iteration: int) -> GateObserver:
        return NullGateObserver()

    def on_commit(self, commit: str, branch: str) -> None:
        return None
