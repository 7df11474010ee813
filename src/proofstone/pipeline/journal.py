"""The journal of a run of the pipeline, and the observer of a run."""

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
    _note_count: int = 0
    _recorded_notes: int = 0

    @classmethod
    def opened(cls, ledger: Ledger, run_id: str) -> PipelineJournal:
        recorded = len(ledger.read(EventRow, run_id=run_id, type=NOTE))
        return cls(ledger, run_id, Steps.opened(ledger, run_id, STEP, "run"), 0, recorded)

    def note(self, kind: str, text: str, data: Contract | None) -> bool:
        """Record a decision of the loop, once: a resumed run makes the same notes in the same order. Return whether it
        is new.
        """
        self._note_count += 1
        if self._note_count <= self._recorded_notes:
            return False
        payload = data.model_dump(mode="json") if data else None
        self.event(NOTE, kind=kind, text=text, data=payload)
        return True

    def child(self, run_id: str, kind: str, iteration: int) -> None:
        self.event(CHILD, run_id=run_id, kind=kind, iteration=iteration)

    def children(self) -> list[str]:
        return [str(row.row.payload["run_id"]) for row in self.ledger.read(EventRow, run_id=self.run_id, type=CHILD)]

    def decided(self, gate_id: str) -> tuple[str, str] | None:
        """Return the option chosen at an approval gate, and the user's comment."""
        for stored in self.ledger.read(ApprovalRow, run_id=self.run_id, gate=gate_id, newest=True, limit=1):
            return stored.row.option, stored.row.reason
        return None

    def decide(
        self, request: ApprovalRequest, option: str, comment: str, by: str, mode: RunMode, *, auto: bool
    ) -> None:
        payload = {
            "mode": mode.value,
            "auto_selected": auto,
            "request": request.model_dump(mode="json"),
        }
        self.ledger.append(
            ApprovalRow(
                run_id=self.run_id, gate=request.gate_id, option=option, decided_by=by, reason=comment, payload=payload
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
        """Return how long processes have worked on the run; the time between processes does not count."""
        return worked_on(self.ledger, self.run_id)

    def reported(self, report: RunReport) -> None:
        """Record the report and the end of the run."""
        self.ledger.append(
            self._build_event(REPORT, {"report": report.model_dump(mode="json")}),
            self._build_event("run.finished", {"outcome": report.outcome.value, "reason": report.reason}),
        )

    def event(self, type: str, **payload: JsonValue) -> None:
        self.ledger.append(self._build_event(type, payload))

    def _build_event(self, type: str, payload: Mapping[str, JsonValue]) -> EventRow:
        return EventRow(run_id=self.run_id, type=type, payload=payload)


class Watching(Protocol):
    """The observer of a run. Agents work in parallel, so it is called from several threads."""

    def began(self, run_id: str, setup: RunSetup, *, resumed: bool) -> None: ...

    def asked(self, agent: str, about: str) -> None:
        """An agent starts: `researcher:impact`, `planner`."""
        ...

    def doing(self, agent: str, line: str) -> None:
        """The current activity of the agent, in one line that replaces the previous one."""
        ...

    def said(self, agent: str, line: str) -> None:
        """A message for the user: a question, a pause, a warning."""
        ...

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        """The result in one line, or why there is no answer."""
        ...

    def noted(self, kind: str, text: str) -> None:
        """The engine has made a decision: a lane, a gate, a direction."""
        ...

    def approved(self, entry: ApprovalEntry) -> None:
        """The user, or the default, has passed an approval gate."""
        ...

    def checking(self) -> Progress:
        """The checks of the merged tree start. Return the receiver of their progress."""
        ...

    def checked(self, checks: FinalChecks) -> None: ...

    def plan_gate(self, iteration: int) -> PlanGateWatching:
        """The plan gate starts. Return its observer."""
        ...

    def gate(self, iteration: int) -> GateWatching:
        """The task gate starts. Return its observer."""
        ...

    def committed(self, commit: str, branch: str) -> None: ...

    def spending(self, spent: Spent) -> None: ...
