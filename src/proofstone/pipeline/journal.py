"""The record of a run of the pipeline: its steps, what was decided and approved, its parts, its report.

Who looks on while a feature goes through the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from proofstone.check.context import Progress
from proofstone.common.models import Contract, Spent
from proofstone.gate.request import Watching as GateWatching
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, EventRow
from proofstone.pipeline.models.run import ApprovalEntry, ApprovalRequest, FinalChecks, RunMode, RunReport, RunSetup
from proofstone.plan_gate.run import Watching as PlanGateWatching
from proofstone.runtime.journal import Steps, worked_on
from proofstone.runtime.run_index import CHILD

STEP, NOTE, REPORT = "pipeline.step", "pipeline.note", "pipeline.report"


@dataclass
class PipelineJournal:
    ledger: Ledger
    run_id: str
    steps: Steps
    _notes: int = 0
    _noted: int = 0

    @classmethod
    def opened(cls, ledger: Ledger, run_id: str) -> PipelineJournal:
        noted = len(ledger.read(EventRow, run_id=run_id, type=NOTE))
        return cls(ledger, run_id, Steps.opened(ledger, run_id, STEP, "run"), 0, noted)

    def note(self, kind: str, text: str, data: Contract | None) -> bool:
        """What the loop has decided, once: a resumed run goes by the same notes in the same order. Whether it is
        new."""
        self._notes += 1
        if self._notes <= self._noted:
            return False
        shown = data.model_dump(mode="json") if data else None
        self.event(NOTE, kind=kind, text=text, data=shown)
        return True

    def child(self, run_id: str, kind: str, iteration: int) -> None:
        self.event(CHILD, run_id=run_id, kind=kind, iteration=iteration)

    def children(self) -> list[str]:
        return [str(row.row.payload["run_id"]) for row in self.ledger.read(EventRow, run_id=self.run_id, type=CHILD)]

    def decided(self, gate_id: str) -> tuple[str, str] | None:
        """Which option was taken at an approval gate, and what the person said beside it."""
        for stored in self.ledger.read(ApprovalRow, run_id=self.run_id, gate=gate_id, newest=True, limit=1):
            return stored.row.option, stored.row.reason
        return None

    def decide(self, request: ApprovalRequest, option: str, said: str, by: str, mode: RunMode, *, auto: bool) -> None:
        payload = {
            "mode": mode.value,
            "auto_selected": auto,
            "request": request.model_dump(mode="json"),
        }
        self.ledger.append(
            ApprovalRow(
                run_id=self.run_id, gate=request.gate_id, option=option, decided_by=by, reason=said, payload=payload
            )
        )

    def approvals(self) -> tuple[ApprovalEntry, ...]:
        return tuple(
            ApprovalEntry(
                gate_id=row.row.gate,
                timestamp=row.ts,
                mode=RunMode(str(row.row.payload.get("mode", RunMode.INTERACTIVE))),
                selected_option=row.row.option,
                auto_selected=bool(row.row.payload.get("auto_selected")),
                user_response_raw=row.row.reason,
            )
            for row in self.ledger.read(ApprovalRow, run_id=self.run_id)
        )

    def milliseconds(self) -> int:
        """How long processes were at work on it, up to this one; the time between them does not count."""
        return worked_on(self.ledger, self.run_id)

    def reported(self, report: RunReport) -> None:
        """The report, and that the run has ended with it."""
        self.ledger.append(
            self._event(REPORT, {"report": report.model_dump(mode="json")}),
            self._event("run.finished", {"outcome": report.outcome.value, "reason": report.reason}),
        )

    def event(self, type: str, **payload: JsonValue) -> None:
        self.ledger.append(self._event(type, payload))

    def _event(self, type: str, payload: Mapping[str, JsonValue]) -> EventRow:
        return EventRow(run_id=self.run_id, type=type, payload=payload)


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
