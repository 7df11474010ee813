"""The journal of a run of the pipeline, and the observer of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from proofstone.agents.roles.models.pipeline import Lesson
from proofstone.check.context import Progress
from proofstone.common.models import FrozenModel
from proofstone.gate.request import GateObserver
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, EventRow
from proofstone.pipeline.models.run import (
    ApprovalEntry,
    ApprovalRequest,
    FinalChecks,
    PipelineRunConfig,
    RunMode,
    RunReport,
)
from proofstone.plan_gate.run import PlanGateObserver
from proofstone.runtime.journal import Journal, read_work_ms
from proofstone.runtime.run_index import CHILD_RUN_EVENT
from proofstone.runtime.workflow import AgentObserver

PIPELINE_STEP_EVENT, PIPELINE_NOTE_EVENT, PIPELINE_REPORT_EVENT = "pipeline.step", "pipeline.note", "pipeline.report"

FIX_ORDER_EVENT = "pipeline.fix-ordered"
DECISION_EVENT, PROPOSAL_EVENT = "decision.logged", "instructions.proposed"
PROPOSAL_GATE = "instructions"
"""The gate at which a person decides about a proposal, followed by the id of the proposal."""


@dataclass
class PipelineJournal:
    ledger: Ledger
    run_id: str
    steps: Journal
    _note_count: int = 0
    _recorded_notes: int = 0

    @classmethod
    def load(cls, ledger: Ledger, run_id: str) -> PipelineJournal:
        recorded = len(ledger.read(EventRow, run_id=run_id, type=PIPELINE_NOTE_EVENT))
        return cls(ledger, run_id, Journal.load(ledger, run_id, PIPELINE_STEP_EVENT, "run"), 0, recorded)

    def record_note(self, kind: str, text: str, data: FrozenModel | None) -> bool:
        """Record a decision of the loop, once: a resumed run makes the same notes in the same order. Return whether it
        is new.
        """
        self._note_count += 1
        if self._note_count <= self._recorded_notes:
            return False
        payload = data.model_dump(mode="json") if data else None
        self.record_event(PIPELINE_NOTE_EVENT, kind=kind, text=text, data=payload)
        return True

    def read_notes(self) -> tuple[str, ...]:
        """Return the decisions of the loop so far. A resumed run gets the same ones at the same point."""
        rows = self.ledger.read(EventRow, run_id=self.run_id, type=PIPELINE_NOTE_EVENT, limit=self._note_count)
        return tuple(f"{stored.row.payload['kind']}: {stored.row.payload['text']}" for stored in rows)

    def order_fix(self, by: str) -> None:
        """Record that a person has resumed the run although a blocker had halted it."""
        self.record_event(FIX_ORDER_EVENT, by=by)

    def count_fix_orders(self) -> int:
        return len(self.ledger.read(EventRow, run_id=self.run_id, type=FIX_ORDER_EVENT))

    def record_decisions(self, decisions: Sequence[Mapping[str, JsonValue]], repository: str) -> None:
        """Add the decisions of the run to the log of all runs, each once: a resumed run has the same first ones."""
        self._record_new(DECISION_EVENT, [{**decision, "repository": repository} for decision in decisions])

    def record_proposals(self, proposals: Sequence[Lesson], repository: str) -> None:
        """Record what the knowledge role proposes for files that instruct agents, each proposal once."""
        payloads: list[dict[str, JsonValue]] = [
            {
                "id": f"{self.run_id}-p{number}",
                "repository": repository,
                "path": proposal.path,
                "content": proposal.content,
                "reason": proposal.reason,
            }
            for number, proposal in enumerate(proposals, start=1)
        ]
        self._record_new(PROPOSAL_EVENT, payloads)

    def _record_new(self, type: str, payloads: Sequence[Mapping[str, JsonValue]]) -> None:
        recorded = len(self.ledger.read(EventRow, run_id=self.run_id, type=type))
        if new := [self._build_event(type, payload) for payload in payloads[recorded:]]:
            self.ledger.append(*new)

    def record_child(self, run_id: str, kind: str, iteration: int) -> None:
        self.record_event(CHILD_RUN_EVENT, run_id=run_id, kind=kind, iteration=iteration)

    def list_children(self) -> list[str]:
        return [
            str(row.row.payload["run_id"])
            for row in self.ledger.read(EventRow, run_id=self.run_id, type=CHILD_RUN_EVENT)
        ]

    def read_decision(self, gate_id: str) -> tuple[str, str] | None:
        """Return the option chosen at an approval gate, and the user's comment."""
        for stored in self.ledger.read(ApprovalRow, run_id=self.run_id, gate=gate_id, newest=True, limit=1):
            return stored.row.option, stored.row.reason
        return None

    def record_decision(
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

    def list_approvals(self) -> tuple[ApprovalEntry, ...]:
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

    def read_work_ms(self) -> int:
        """Return how long processes have worked on the run; the time between processes does not count."""
        return read_work_ms(self.ledger, self.run_id)

    def record_report(self, report: RunReport) -> None:
        """Record the report and the end of the run."""
        self.ledger.append(
            self._build_event(PIPELINE_REPORT_EVENT, {"report": report.model_dump(mode="json")}),
            self._build_event("run.finished", {"outcome": report.outcome.value, "reason": report.reason}),
        )

    def record_event(self, type: str, **payload: JsonValue) -> None:
        self.ledger.append(self._build_event(type, payload))

    def _build_event(self, type: str, payload: Mapping[str, JsonValue]) -> EventRow:
        return EventRow(run_id=self.run_id, type=type, payload=payload)


class PipelineObserver(AgentObserver, Protocol):
    """The observer of a run. Agents work in parallel, so it is called from several threads."""

    def on_run_started(self, run_id: str, setup: PipelineRunConfig, *, resumed: bool) -> None: ...

    def on_note(self, kind: str, text: str) -> None:
        """The engine has made a decision: a lane, a gate, a direction."""
        ...

    def on_approval(self, entry: ApprovalEntry) -> None:
        """The user, or the default, has passed an approval gate."""
        ...

    def on_checks_started(self) -> Progress:
        """The checks of the merged tree start. Return the receiver of their progress."""
        ...

    def on_checks_ended(self, checks: FinalChecks) -> None: ...

    def on_plan_gate_started(self, iteration: int) -> PlanGateObserver:
        """The plan gate starts. Return its observer."""
        ...

    def on_task_gate_started(self, iteration: int) -> GateObserver:
        """The task gate starts. Return its observer."""
        ...

    def on_commit(self, commit: str, branch: str) -> None: ...
