"""The journal of a run of the plan gate: its steps, its iterations, the person's answers, its report.

The module also reads the reports of all runs from the ledger, at any time and from any process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proofstone.agents.roles.models.plan_gate_records import ConvergenceStatus, IterationState, LookupResult
from proofstone.common.models import FrozenModel
from proofstone.errors import InputError
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, EventRow
from proofstone.plan_gate.models import FalseClaim, PlanGateSetup, PlanReport
from proofstone.plan_gate.rules.admission import (
    AdmissionRefusal,
    MitigatedPlan,
    PlanJudgement,
    explain_not_admitted,
    select_mitigations,
)
from proofstone.plan_gate.rules.effects import PlanAgentFailure, PlanAgentReply
from proofstone.runtime.journal import Journal
from proofstone.runtime.run_index import read_run_configs

STEP, ITERATION, AGAINST, REPORT, MITIGATED = (
    "plan.step",
    "plan.iteration",
    "plan.held-against",
    "plan.report",
    "plan.mitigated",
)
GATE = "plan"
"""The value of `gate` in the rows of a person's answers."""


@dataclass
class PlanJournal:
    """Records a run of the plan gate, and looks up what is recorded."""

    ledger: Ledger
    run_id: str
    steps: Journal
    _iterations: set[int] = field(default_factory=set)

    @classmethod
    def open(cls, ledger: Ledger, run_id: str) -> PlanJournal:
        """Open the journal of a run."""
        journal = cls(ledger, run_id, Journal.load(ledger, run_id, STEP, "verify-plan"))
        for stored in ledger.read(EventRow, run_id=run_id, type=ITERATION):
            journal._iterations.add(IterationState.model_validate(stored.row.payload["state"]).iteration)
        return journal

    def build_false_claims(
        self, step: str, result: PlanAgentReply | PlanAgentFailure, agent: str, iteration: int
    ) -> tuple[EventRow, ...]:
        """Return a row for each claim in an answer that is false; it counts against the agent."""
        lookups = result.lookups if isinstance(result, PlanAgentReply) else ()
        return tuple(
            self._event(
                AGAINST,
                FalseClaim(agent=agent, iteration=iteration, about=step, looked=lookup).model_dump(mode="json"),
            )
            for lookup in lookups
            if lookup.holds is False
        )

    def record_iteration(self, state: IterationState) -> None:
        """Record an iteration, once."""
        if state.iteration not in self._iterations:
            self.ledger.append(self._event(ITERATION, {"state": state.model_dump(mode="json")}))
            self._iterations.add(state.iteration)

    def read_answers(self, iteration: int) -> dict[str, str]:
        """Return the person's answers after that iteration, by challenge."""
        rows = self.ledger.read(ApprovalRow, run_id=self.run_id, gate=GATE)
        return {
            stored.row.option: stored.row.reason for stored in rows if stored.row.payload.get("iteration") == iteration
        }

    def record_answers(self, answers: Mapping[str, str], iteration: int, by: str) -> None:
        """Record the person's answers."""
        payload: dict[str, JsonValue] = {"iteration": iteration}
        self.ledger.append(
            *(
                ApprovalRow(run_id=self.run_id, gate=GATE, option=id, decided_by=by, reason=text, payload=payload)
                for id, text in answers.items()
            )
        )

    def record_report(self, report: PlanReport, outcome: str) -> None:
        """Record the report and the end of the run."""
        reason = f"{report.verdict or report.status}: {report.reason}"
        self.ledger.append(
            self._event(REPORT, {"report": report.model_dump(mode="json")}),
            self._event("run.finished", {"outcome": outcome, "reason": reason}),
        )

    def note(self, type: str, **payload: JsonValue) -> None:
        """Record an event of the run."""
        self.ledger.append(self._event(type, payload))

    def _event(self, type: str, payload: Mapping[str, JsonValue]) -> EventRow:
        return EventRow(run_id=self.run_id, type=type, payload=payload)


def encode_answer(result: PlanAgentReply | PlanAgentFailure, agent: str) -> dict[str, JsonValue]:
    """Return the journal entry of an agent's answer."""
    if isinstance(result, PlanAgentFailure):
        return {"agent": agent, "why": result.reason, "unreadable": result.is_unreadable}
    return {
        "agent": agent,
        "output": result.output.model_dump(mode="json"),
        "looked": [lookup.model_dump(mode="json") for lookup in result.lookups],
        "refusals": list(result.refusals),
    }


def decode_answer(payload: Mapping[str, JsonValue], output: type[FrozenModel]) -> PlanAgentReply | PlanAgentFailure:
    """Return the answer of a journal entry."""
    if "why" in payload:
        return PlanAgentFailure(str(payload["why"]), is_unreadable=bool(payload["unreadable"]))
    lookups, refusals = payload["looked"], payload["refusals"]
    return PlanAgentReply(
        output.model_validate(payload["output"]),
        tuple(LookupResult.model_validate(lookup) for lookup in lookups) if isinstance(lookups, list) else (),
        tuple(map(str, refusals)) if isinstance(refusals, list) else (),
    )


def find_last_report(ledger: Ledger, run_id: str) -> PlanReport | None:
    """Return the last report of a run, if any. It is out of date if a question was answered since."""
    for stored in ledger.read(EventRow, run_id=run_id, type=REPORT, newest=True, limit=1):
        answered = ledger.read(ApprovalRow, run_id=run_id, gate=GATE, after=stored.seq, limit=1)
        return None if answered else PlanReport.model_validate(stored.row.payload["report"])
    return None


def read_plan_report(ledger: Ledger, run_id: str) -> PlanReport:
    """Return the last report of a run, or raise InputError."""
    report = find_last_report(ledger, run_id)
    if report is None:
        raise InputError(
            f"{run_id}: has no verdict yet, and asks nothing",
            hint=f"`proofstone verify-plan --resume {run_id}` continues it",
        )
    return report


def explain_not_verified(ledger: Ledger, digest: str, repository: str) -> AdmissionRefusal | None:
    """Explain why the plan with this digest may not be implemented in this repository; None if it may.

    A verdict about the same text in another repository is about other files.
    """
    run_ids = {
        run_id for run_id, setup in read_run_configs(ledger, PlanGateSetup).items() if setup.repository == repository
    }
    judgements = []
    for stored in ledger.read(EventRow, type=REPORT):
        if stored.row.run_id not in run_ids:
            continue
        report = PlanReport.model_validate(stored.row.payload["report"])
        judgements.append(
            PlanJudgement(
                run_id=report.run_id,
                digest=report.plan_digest,
                verdict=report.verdict,
                has_mitigations=bool(select_mitigations(report.challenges)),
                is_by_rules_alone=not report.agents,
                is_forced=report.status is ConvergenceStatus.FORCED_EXIT,
            )
        )
    mitigations = [
        MitigatedPlan(row.row.run_id, str(row.row.payload["digest"])) for row in ledger.read(EventRow, type=MITIGATED)
    ]
    return explain_not_admitted(digest, judgements, mitigations)
