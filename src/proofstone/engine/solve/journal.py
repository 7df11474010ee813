"""The record of a run of the control loop: its steps, its rounds, its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proofstone.adapters.ledger import Ledger
from proofstone.contracts.rows import EventRow
from proofstone.contracts.solve.report import SolveReport, SolveRound
from proofstone.engine.steps import Steps, worked_on

STEP, ROUND, REPORT = "solve.step", "solve.round", "solve.report"


@dataclass
class SolveJournal:
    ledger: Ledger
    run_id: str
    steps: Steps
    _rounds: set[int] = field(default_factory=set)

    @classmethod
    def opened(cls, ledger: Ledger, run_id: str) -> SolveJournal:
        journal = cls(ledger, run_id, Steps.opened(ledger, run_id, STEP, "solve"))
        for stored in ledger.read(EventRow, run_id=run_id, type=ROUND):
            journal._rounds.add(SolveRound.model_validate(stored.row.payload["round"]).number)
        return journal

    def milliseconds(self) -> int:
        """How long processes were at work on it, up to this one; the time between them does not count."""
        return worked_on(self.ledger, self.run_id)

    def ended(self, round: SolveRound) -> None:
        """A round is recorded once."""
        if round.number not in self._rounds:
            self._append(ROUND, {"round": round.model_dump(mode="json")})
            self._rounds.add(round.number)

    def reported(self, report: SolveReport, outcome: str) -> None:
        """The report, and that the run has ended with it."""
        reason = report.result.summary if report.result else f"asks: {report.question}"
        self.ledger.append(
            self._event(REPORT, {"report": report.model_dump(mode="json")}),
            self._event("run.finished", {"outcome": outcome, "reason": reason}),
        )

    def note(self, type: str, **payload: JsonValue) -> None:
        self._append(type, payload)

    def _append(self, type: str, payload: Mapping[str, JsonValue]) -> None:
        self.ledger.append(self._event(type, payload))

    def _event(self, type: str, payload: Mapping[str, JsonValue]) -> EventRow:
        return EventRow(run_id=self.run_id, type=type, payload=payload)
