"""An agent as an architect of the gate: `api:` and `script:`. It looks at the candidate and can change nothing."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.adapters.architects import Reviewed
from proofstone.adapters.executors.site import Site
from proofstone.contracts.agent import Fault, FaultKind, Occasion
from proofstone.contracts.gate import ArchitectVerdict, NoVerdict, ReviewRequest
from proofstone.engine.agents.executor import not_served
from proofstone.engine.agents.placed import PlacedAgent
from proofstone.roles.architect import ROLE


@dataclass(frozen=True)
class AgentArchitect(PlacedAgent):
    """Implements `adapters.architects.Architect`."""

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        occasion = Occasion(
            run_id=request.run_id,
            role=ROLE.name,
            step=_step(request),
            task=request.task_id,
            task_name=request.task_name,
            attempt=request.attempt,
            round=request.round,
        )
        dispatched = self.dispatcher.dispatch(ROLE, occasion, self.errand(ROLE, request, site))
        if isinstance(dispatched.output, ArchitectVerdict):
            return dispatched.output.model_copy(update={"by": self.spec})
        return no_verdict(dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer"), self.spec)


def no_verdict(fault: Fault, spec: str) -> NoVerdict:
    """A fault approves nothing."""
    if fault.kind in (FaultKind.DENIED, FaultKind.UNAVAILABLE):
        raise not_served(fault, spec)
    cancelled = fault.kind in (FaultKind.CANCELLED, FaultKind.BUDGET)
    why = f"the verdict is malformed: {fault.why}" if fault.kind is FaultKind.MALFORMED else fault.why
    return NoVerdict(why=why, timed_out=fault.kind is FaultKind.TIMEOUT, cancelled=cancelled)


def _step(request: ReviewRequest) -> str:
    """Another look at the same attempt is another dispatch."""
    step = f"{request.task_id}/a{request.attempt}"
    return step if request.round == 1 else f"{step}/r{request.round}"
