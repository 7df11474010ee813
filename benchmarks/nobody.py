"""Nobody, who looks on while the pipeline runs."""

from __future__ import annotations

from proofstone.check.context import NullProgress, Progress
from proofstone.common.models import BudgetUsage
from proofstone.gate.request import GateObserver as GateWatching
from proofstone.pipeline.models.run import ApprovalEntry, FinalChecks, PipelineRunConfig
from proofstone.plan_gate.run import PlanGateObserver as PlanGateWatching


class Nobody:
    """Implements `pipeline.journal.Watching`. No part is begun."""

    def on_run_started(self, run_id: str, setup: PipelineRunConfig, *, resumed: bool) -> None:
        return None

    def on_agent_started(self, agent: str, about: str) -> None:
        return None

    def on_activity(self, agent: str, line: str) -> None:
        return None

    def on_message(self, agent: str, line: str) -> None:
        return None

    def on_agent_ended(self, agent: str, said: str, *, failed: bool) -> None:
        return None

    def on_note(self, kind: str, text: str) -> None:
        return None

    def on_approval(self, entry: ApprovalEntry) -> None:
        return None

    def on_checks_ended(self, checks: FinalChecks) -> None:
        return None

    def on_commit(self, commit: str, branch: str) -> None:
        return None

    def on_spending(self, spent: BudgetUsage) -> None:
        return None

    def on_checks_started(self) -> Progress:
        return NullProgress()

    def on_plan_gate_started(self, iteration: int) -> PlanGateWatching:
        raise NotImplementedError

    def on_task_gate_started(self, iteration: int) -> GateWatching:
        raise NotImplementedError
