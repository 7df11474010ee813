"""The record of a run of the plan gate: its steps, its iterations, what the person said, its report.

Runs of the plan gate as the ledger tells them, at any time and from any process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proofstone.agents.roles.models.plan_gate_records import ConvergenceStatus, IterationState, LookedUp
from proofstone.common.models import Contract
from proofstone.errors import InputError
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, EventRow
from proofstone.plan_gate.models import HeldAgainst, PlanGateSetup, PlanReport
from proofstone.plan_gate.rules.admission import Judged, Mitigated, NotAdmitted, to_take_in, why_not_admitted
from proofstone.plan_gate.rules.effects import Failed, Heard
from proofstone.runtime.journal import Steps
from proofstone.runtime.run_index import setups_of

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
            tuple(LookedUp.model_validate(item) for item in looked) if isinstance(looked, list) else (),
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
                "looked": [item.model_dump(mode="json") for item in came.looked],
                "refusals": list(came.refusals),
            }
            rows = [
                self._event(
                    AGAINST,
                    HeldAgainst(agent=agent, iteration=iteration, about=step, looked=item).model_dump(mode="json"),
                )
                for item in came.looked
                if item.holds is False
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
        return {item.row.option: item.row.reason for item in said if item.row.payload.get("iteration") == iteration}

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


def last_report(ledger: Ledger, run_id: str) -> PlanReport | None:
    """What came of a run, as far as it came to that. A question that was answered since is none any more."""
    for stored in ledger.read(EventRow, run_id=run_id, type=REPORT, newest=True, limit=1):
        answered = ledger.read(ApprovalRow, run_id=run_id, gate=GATE, after=stored.seq, limit=1)
        return None if answered else PlanReport.model_validate(stored.row.payload["report"])
    return None


def report_of_run(ledger: Ledger, run_id: str) -> PlanReport:
    report = last_report(ledger, run_id)
    if report is None:
        raise InputError(
            f"{run_id}: has no verdict yet, and asks nothing",
            hint=f"`proofstone verify-plan --resume {run_id}` goes on",
        )
    return report


def why_not_verified(ledger: Ledger, digest: str, repository: str) -> NotAdmitted | None:
    """Why the plan with that digest may not be implemented in that repository; None if it may. What was said of the
    same words in another repository is about other files."""
    here = {run_id for run_id, setup in setups_of(ledger, PlanGateSetup).items() if setup.repository == repository}
    judged = []
    for stored in ledger.read(EventRow, type=REPORT):
        if stored.row.run_id not in here:
            continue
        report = PlanReport.model_validate(stored.row.payload["report"])
        judged.append(
            Judged(
                run_id=report.run_id,
                digest=report.plan_digest,
                verdict=report.verdict,
                mitigations=bool(to_take_in(report.challenges)),
                alone=not report.agents,
                forced=report.status is ConvergenceStatus.FORCED_EXIT,
            )
        )
    mitigated = [
        Mitigated(row.row.run_id, str(row.row.payload["digest"])) for row in ledger.read(EventRow, type=MITIGATED)
    ]
    return why_not_admitted(digest, judged, mitigated)
