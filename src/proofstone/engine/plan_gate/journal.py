"""The record of a run of the plan gate: its steps, its iterations, what the person said, its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proofstone.adapters.ledger import Ledger
from proofstone.contracts.base import Contract
from proofstone.contracts.plan_gate.evidence import LookedUp
from proofstone.contracts.plan_gate.record import IterationState
from proofstone.contracts.plan_gate.report import HeldAgainst, PlanReport
from proofstone.contracts.rows import ApprovalRow, EventRow
from proofstone.core.plan_gate.needs import Failed, Heard
from proofstone.engine.steps import Steps

STEP, ITERATION, AGAINST, REPORT, MITIGATED = (
    "plan.step",
    "plan.iteration",
    "plan.held-against",
    "plan.report",
    "plan.mitigated",
)
GATE = "plan"
"""Of the rows in which a person answers."""


@dataclass
class PlanJournal:
    ledger: Ledger
    run_id: str
    _steps: Steps
    _iterations: set[int] = field(default_factory=set)

    @classmethod
    def opened(cls, ledger: Ledger, run_id: str) -> PlanJournal:
        journal = cls(ledger, run_id, Steps.opened(ledger, run_id, STEP, "verify-plan"))
        for stored in ledger.read(EventRow, run_id=run_id, type=ITERATION):
            journal._iterations.add(IterationState.model_validate(stored.row.payload["state"]).iteration)
        return journal

    def recall(self, step: str, asked: str, output: type[Contract]) -> Heard | Failed | None:
        """What came of a step, if it is on record."""
        payload = self._steps.recall(step, asked)
        if payload is None:
            return None
        if "why" in payload:
            return Failed(str(payload["why"]), unreadable=bool(payload["unreadable"]))
        looked, refusals = payload["looked"], payload["refusals"]
        return Heard(
            output.model_validate(payload["output"]),
            tuple(LookedUp.model_validate(one) for one in looked) if isinstance(looked, list) else (),
            tuple(map(str, refusals)) if isinstance(refusals, list) else (),
        )

    def keep(self, step: str, asked: str, came: Heard | Failed, agent: str, iteration: int) -> None:
        """What came of a step, and what it shows against its author, in one."""
        payload: dict[str, JsonValue] = {"agent": agent}
        rows: list[EventRow] = []
        if isinstance(came, Failed):
            payload |= {"why": came.why, "unreadable": came.unreadable}
        else:
            payload |= {
                "output": came.output.model_dump(mode="json"),
                "looked": [one.model_dump(mode="json") for one in came.looked],
                "refusals": list(came.refusals),
            }
            rows = [
                self._event(
                    AGAINST,
                    HeldAgainst(agent=agent, iteration=iteration, about=step, looked=one).model_dump(mode="json"),
                )
                for one in came.looked
                if one.holds is False
            ]
        self._steps.keep(step, asked, payload, *rows)

    def iterated(self, state: IterationState) -> None:
        """An iteration is recorded once."""
        if state.iteration not in self._iterations:
            self.ledger.append(self._event(ITERATION, {"state": state.model_dump(mode="json")}))
            self._iterations.add(state.iteration)

    def answers(self, iteration: int) -> dict[str, str]:
        """What the person has said when that iteration had ended, by challenge."""
        said = self.ledger.read(ApprovalRow, run_id=self.run_id, gate=GATE)
        return {one.row.option: one.row.reason for one in said if one.row.payload.get("iteration") == iteration}

    def answered(self, answers: Mapping[str, str], iteration: int, by: str) -> None:
        said: dict[str, JsonValue] = {"iteration": iteration}
        self.ledger.append(
            *(
                ApprovalRow(run_id=self.run_id, gate=GATE, option=id, decided_by=by, reason=text, payload=said)
                for id, text in answers.items()
            )
        )

    def reported(self, report: PlanReport, outcome: str) -> None:
        """The report, and that the run has ended with it."""
        reason = f"{report.verdict or report.status}: {report.reason}"
        self.ledger.append(
            self._event(REPORT, {"report": report.model_dump(mode="json")}),
            self._event("run.finished", {"outcome": outcome, "reason": reason}),
        )

    def note(self, type: str, **payload: JsonValue) -> None:
        self.ledger.append(self._event(type, payload))

    def _event(self, type: str, payload: Mapping[str, JsonValue]) -> EventRow:
        return EventRow(run_id=self.run_id, type=type, payload=payload)
