"""An agent as an executor of the gate: `api:`, `cli:`, `acp:` and `script:`; as a fallback of one of these, `cmd:` and
`human` too. What it may change is what the task declares."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from proofstone.adapters.executors.site import Ran, Site
from proofstone.config.backends import works_alone
from proofstone.contracts.agent import Dispatched, Fault, FaultKind, Occasion
from proofstone.contracts.finding import Finding
from proofstone.contracts.gate import Assignment, ExecutorResult, ExecutorStatus
from proofstone.engine.agents.attending import Attendant
from proofstone.engine.agents.placed import PlacedAgent
from proofstone.engine.agents.stopping import unreached
from proofstone.errors import BackendError, ProofstoneError
from proofstone.roles.executor import ROLE


class FindingAttendant(Attendant, Protocol):
    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found out about the agent while it worked."""
        ...


Attends = Callable[[Assignment, Site, Occasion], FindingAttendant | None]
"""Who attends to whoever does this; None: nobody."""


@dataclass(frozen=True)
class AgentExecutor(PlacedAgent):
    """Implements `adapters.executors.Executor`."""

    attends: Attends = lambda _assignment, _site, _occasion: None

    def execute(self, assignment: Assignment, site: Site) -> Ran:
        began = time.monotonic()
        occasion = Occasion(
            run_id=assignment.run_id,
            role=ROLE.name,
            step=f"{assignment.task_id}/a{assignment.attempt}",
            task=assignment.task_id,
            task_name=assignment.task_name,
            attempt=assignment.attempt,
        )
        attending: list[FindingAttendant] = []

        def attends(occasion: Occasion) -> FindingAttendant | None:
            attendant = self.attends(assignment, site, occasion)
            attending[:] = [attendant] if attendant else []
            return attendant

        errand = replace(self.errand(ROLE, assignment, site, assignment.files), attends=attends)
        # Once: the gate itself counts attempts.
        dispatched = self.dispatcher.once(ROLE, occasion, errand)
        came = ran(dispatched, round((time.monotonic() - began) * 1000), self.spec)
        return replace(came, findings=tuple(one for attendant in attending for one in attendant.findings))


def ran(dispatched: Dispatched, milliseconds: int, spec: str) -> Ran:
    """What came of a dispatch, as the gate sees it."""
    if isinstance(dispatched.output, ExecutorResult):
        return Ran(dispatched.output, duration_ms=milliseconds)
    fault = dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer")
    match fault.kind:
        case FaultKind.DRIFTED:
            return Ran(None, drifted=True, ended=fault.why, duration_ms=milliseconds)
        case FaultKind.MALFORMED:
            return Ran(None, malformed=f"the result is malformed: {fault.why}", duration_ms=milliseconds)
        case FaultKind.TIMEOUT:
            return Ran(None, timed_out=True, ended=fault.why, duration_ms=milliseconds)
        case FaultKind.CANCELLED | FaultKind.BUDGET:
            return Ran(None, cancelled=True, ended=fault.why, duration_ms=milliseconds)
        case FaultKind.FAILED:
            claim = ExecutorResult(status=ExecutorStatus.FAILURE, error=fault.why)
            return Ran(claim, duration_ms=milliseconds)
        case FaultKind.DENIED | FaultKind.UNAVAILABLE:
            raise not_served(fault, spec)
    return Ran(None, crashed=fault.why, ended=fault.why, duration_ms=milliseconds)


def not_served(fault: Fault, spec: str) -> ProofstoneError:
    """It is no fault of the work, and another attempt would fare no better: the run stops, and goes on from here when
    the provider answers again, or the person has put it right."""
    why = f"{spec}: {fault.why}" if works_alone(spec) else fault.why  # a provider names itself
    if fault.kind is FaultKind.DENIED:
        hint = "put that right (`proofstone backends --probe` tries it), then `proofstone resume last`"
        return BackendError(why, hint=hint)
    return unreached(why)
