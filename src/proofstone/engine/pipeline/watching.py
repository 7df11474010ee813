"""Who looks on while a feature goes through the pipeline."""

from __future__ import annotations

from typing import Protocol

from proofstone.contracts.budget import Spent
from proofstone.contracts.pipeline.approval import ApprovalEntry
from proofstone.contracts.pipeline.run import FinalChecks, RunSetup
from proofstone.engine.gate.request import Watching as GateWatching
from proofstone.engine.plan_gate.watching import Watching as PlanGateWatching
from proofstone.engine.progress import Progress


class Watching(Protocol):
    """Told from several threads at once while agents work beside each other."""

    def began(self, run_id: str, setup: RunSetup, *, resumed: bool) -> None: ...

    def asked(self, agent: str, about: str) -> None:
        """An agent begins: `researcher:impact`, `planner`."""
        ...

    def doing(self, agent: str, line: str) -> None:
        """What it does, in a line, in the place of what it did before."""
        ...

    def said(self, agent: str, line: str) -> None:
        """For the person who looks on: a question to them, a pause, a warning."""
        ...

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        """In one line what came of it, or why there is no answer."""
        ...

    def noted(self, kind: str, text: str) -> None:
        """What the engine has decided: a lane, a gate, a direction."""
        ...

    def approved(self, entry: ApprovalEntry) -> None:
        """An approval gate was passed, by the person or by default."""
        ...

    def checking(self) -> Progress:
        """The whole cascade begins on the merged tree."""
        ...

    def checked(self, checks: FinalChecks) -> None: ...

    def plan_gate(self, iteration: int) -> PlanGateWatching:
        """The plan gate begins; whoever looks on at it."""
        ...

    def gate(self, iteration: int) -> GateWatching:
        """The task gate begins; whoever looks on at it."""
        ...

    def committed(self, commit: str, branch: str) -> None: ...

    def spending(self, spent: Spent) -> None: ...
