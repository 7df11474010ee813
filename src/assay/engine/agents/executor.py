"""An agent as an executor of the gate: `api:` and `script:`. What it may change is what the task declares."""

from __future__ import annotations

import time
from dataclasses import dataclass

from assay.adapters.backends import Backend
from assay.adapters.executors.site import Ran, Site
from assay.adapters.git.program import Git
from assay.adapters.tools import Ground, Toolbox
from assay.contracts.agent import Dispatched, Fault, FaultKind, Occasion
from assay.contracts.gate import Assignment, ExecutorResult, ExecutorStatus
from assay.engine.agents.dispatch import Dispatcher, Errand
from assay.errors import BackendError
from assay.roles.executor import ROLE


@dataclass(frozen=True)
class AgentExecutor:
    """Implements `adapters.executors.Executor`."""

    spec: str
    backend: Backend
    dispatcher: Dispatcher
    git: Git | None = None

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
        ground = Ground(
            files=site.work_tree,
            scope=assignment.files,
            run=site.run,
            git=self.git,
            commit=assignment.base_commit,
            cancel=site.cancel,
        )
        errand = Errand(
            request=assignment,
            backend=self.backend,
            toolbox=Toolbox(ground, ROLE.tools),
            site=site,
            seconds=assignment.deadline_seconds,
        )
        # Once: the gate itself counts attempts.
        dispatched = self.dispatcher.once(ROLE, occasion, errand)
        return ran(dispatched, round((time.monotonic() - began) * 1000))


def ran(dispatched: Dispatched, milliseconds: int) -> Ran:
    """What came of a dispatch, as the gate sees it."""
    if isinstance(dispatched.output, ExecutorResult):
        return Ran(dispatched.output, duration_ms=milliseconds)
    fault = dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer")
    match fault.kind:
        case FaultKind.MALFORMED:
            return Ran(None, malformed=f"the result is malformed: {fault.why}", duration_ms=milliseconds)
        case FaultKind.TIMEOUT:
            return Ran(None, timed_out=True, ended=fault.why, duration_ms=milliseconds)
        case FaultKind.CANCELLED | FaultKind.BUDGET:
            return Ran(None, cancelled=True, ended=fault.why, duration_ms=milliseconds)
        case FaultKind.FAILED:
            claim = ExecutorResult(status=ExecutorStatus.FAILURE, error=fault.why)
            return Ran(claim, duration_ms=milliseconds)
        case FaultKind.DENIED:
            raise denied(fault)
    return Ran(None, crashed=fault.why, ended=fault.why, duration_ms=milliseconds)


def denied(fault: Fault) -> BackendError:
    """Another attempt would be denied like this one: the run stops, and goes on when the person has put it right."""
    return BackendError(fault.why, hint="put that right (`assay backends --probe` tries it), then `assay resume last`")
