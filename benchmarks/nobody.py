"""Nobody, who looks on while the pipeline runs."""

from __future__ import annotations

from proofstone.check.context import Progress, Silent
from proofstone.common.models import Spent
from proofstone.gate.request import Watching as GateWatching
from proofstone.pipeline.models.run import ApprovalEntry, FinalChecks, RunSetup
from proofstone.plan_gate.run import Watching as PlanGateWatching


class Nobody:
    """Implements `pipeline.journal.Watching`. No part is begun."""

    def began(self, run_id: str, setup: RunSetup, *, resumed: bool) -> None:
        return None

    def asked(self, agent: str, about: str) -> None:
        return None

    def doing(self, agent: str, line: str) -> None:
        return None

    def said(self, agent: str, line: str) -> None:
        return None

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        return None

    def noted(self, kind: str, text: str) -> None:
        return None

    def approved(self, entry: ApprovalEntry) -> None:
        return None

    def checked(self, checks: FinalChecks) -> None:
        return None

    def committed(self, commit: str, branch: str) -> None:
        return None

    def spending(self, spent: Spent) -> None:
        return None

    def checking(self) -> Progress:
        return Silent()

    def plan_gate(self, iteration: int) -> PlanGateWatching:
        raise NotImplementedError

    def gate(self, iteration: int) -> GateWatching:
        raise NotImplementedError
