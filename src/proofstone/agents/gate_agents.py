"""Agents as executors and architects of the gate.

An executor is an agent (`api:`, `cli:`, `acp:` or `script:`), with `cmd:` and `human` as possible fallbacks; it may
change the files that the task declares. An architect is an `api:` or `script:` agent; it looks at the candidate and can
change nothing. `Casting` chooses between agents, which run in the engine's own loop, and programs and people, who have
their own tools.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from proofstone.agents.attendant import Attendant
from proofstone.agents.backends import Backend
from proofstone.agents.dispatch import Dispatcher, Errand
from proofstone.agents.executors.choosing import architect_from, executor_from
from proofstone.agents.executors.context import Architect, Executor, Ran, Reviewed, Site
from proofstone.agents.executors.people import Listen
from proofstone.agents.models import Dispatched, Fault, FaultKind, Occasion
from proofstone.agents.roles.gate import ARCHITECT, EXECUTOR, JUDGE
from proofstone.agents.roles.models.gate import (
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    ExecutorStatus,
    JudgeRequest,
    NoVerdict,
    ReviewRequest,
)
from proofstone.agents.roles.role import Role, request_text
from proofstone.agents.spending import unreached
from proofstone.agents.tools.tool_context import Ground
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.common.models import Finding
from proofstone.config.backends import works_alone
from proofstone.errors import BackendError, ProofstoneError
from proofstone.git.program import Git


@dataclass(frozen=True)
class PlacedAgent:
    spec: str
    backend: Backend
    dispatcher: Dispatcher
    git: Git | None = None
    secret: tuple[str, ...] = ()
    """Further patterns of files that the agent is not shown."""

    def errand(
        self, role: Role, request: Assignment | ReviewRequest | JudgeRequest, site: Site, scope: tuple[str, ...] = ()
    ) -> Errand:
        """Build the request with the agent's tools at the site. `scope` lists the files that it may change."""
        ground = Ground(
            files=site.work_tree,
            scope=scope,
            run=site.run,
            git=self.git,
            commit=request.base_commit,
            secret=self.secret,
            cancel=site.cancel,
            mask=site.mask,
        )
        return Errand(
            text=request_text(role, request),
            backend=self.backend,
            toolbox=Toolbox(ground, role.tools),
            site=site,
            seconds=request.deadline_seconds,
        )


class FindingAttendant(Attendant, Protocol):
    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the agent's behaviour while it worked."""
        ...


Attends = Callable[[Assignment, Site, Occasion], FindingAttendant | None]
"""Creates the attendant of an assignment, or None if the agent is not supervised."""


@dataclass(frozen=True)
class AgentExecutor(PlacedAgent):
    """Implements `agents.executors.Executor`."""

    attends: Attends = lambda _assignment, _site, _occasion: None

    def execute(self, assignment: Assignment, site: Site) -> Ran:
        began = time.monotonic()
        occasion = Occasion(
            run_id=assignment.run_id,
            role=EXECUTOR.name,
            step=f"{assignment.task_id}/a{assignment.attempt}",
            task=assignment.task_id,
            task_name=assignment.task_name,
            attempt=assignment.attempt,
        )
        attendants: list[FindingAttendant] = []

        def attends(occasion: Occasion) -> FindingAttendant | None:
            attendant = self.attends(assignment, site, occasion)
            attendants[:] = [attendant] if attendant else []
            return attendant

        errand = replace(self.errand(EXECUTOR, assignment, site, assignment.files), attends=attends)
        # Dispatch once, because the gate itself counts attempts.
        dispatched = self.dispatcher.once(EXECUTOR, occasion, errand)
        outcome = ran(dispatched, round((time.monotonic() - began) * 1000), self.spec)
        return replace(outcome, findings=tuple(finding for attendant in attendants for finding in attendant.findings))


def ran(dispatched: Dispatched, milliseconds: int, spec: str) -> Ran:
    """Convert the result of a dispatch to the outcome of an execution."""
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
    """Return the error for a provider that denies access or cannot be reached. Another attempt would fail too, so the
    run stops and resumes from here when the provider answers again or the person has fixed the cause."""
    why = f"{spec}: {fault.why}" if works_alone(spec) else fault.why  # messages of providers already name them
    if fault.kind is FaultKind.DENIED:
        hint = "fix this (`proofstone backends --probe` tests it), then run `proofstone resume last`"
        return BackendError(why, hint=hint)
    return unreached(why)


@dataclass(frozen=True)
class AgentArchitect(PlacedAgent):
    """Implements `agents.executors.Architect`."""

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        occasion = Occasion(
            run_id=request.run_id,
            role=ARCHITECT.name,
            step=_format_step(request),
            task=request.task_id,
            task_name=request.task_name,
            attempt=request.attempt,
            round=request.round,
        )
        dispatched = self.dispatcher.dispatch(ARCHITECT, occasion, self.errand(ARCHITECT, request, site))
        if isinstance(dispatched.output, ArchitectVerdict):
            return dispatched.output.model_copy(update={"by": self.spec})
        return no_verdict(dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer"), self.spec)


def no_verdict(fault: Fault, spec: str) -> NoVerdict:
    """Return the outcome of a review that ended in a fault. It approves nothing."""
    if fault.kind in (FaultKind.DENIED, FaultKind.UNAVAILABLE):
        raise not_served(fault, spec)
    is_cancelled = fault.kind in (FaultKind.CANCELLED, FaultKind.BUDGET)
    why = f"the verdict is malformed: {fault.why}" if fault.kind is FaultKind.MALFORMED else fault.why
    return NoVerdict(why=why, timed_out=fault.kind is FaultKind.TIMEOUT, cancelled=is_cancelled)


def _format_step(request: ReviewRequest) -> str:
    """Return the step of a review. A second review of the same attempt is another dispatch."""
    step = f"{request.task_id}/a{request.attempt}"
    return step if request.round == 1 else f"{step}/r{request.round}"


JudgeAt = Callable[[JudgeRequest, Occasion, Site], Dispatched]
"""Asks the judge, at the site of the agent that is judged."""
AGENTS: Final = ("api", "acp", "cli", "script")
"""The kinds of specs whose backends add turns to a conversation of the engine."""


@dataclass(frozen=True)
class Casting:
    backend: Callable[[Sequence[str]], Backend]
    """Builds a backend from specs. The later ones are fallbacks."""
    dispatcher: Dispatcher
    listen: Listen | None = None
    git: Git | None = None
    secret: tuple[str, ...] = ()

    def executor(self, specs: Sequence[str]) -> Executor:
        if not is_agent(specs[0]):
            return executor_from(specs[0], self.listen)
        return AgentExecutor(specs[0], self.backend(specs), self.dispatcher, self.git, self.secret)

    @staticmethod
    def judge(architect: Architect | None) -> JudgeAt | None:
        """Return the architect as a judge of understanding, or None if it cannot judge."""
        if not isinstance(architect, AgentArchitect) or not can_judge(architect.backend):
            return None

        def judge(request: JudgeRequest, occasion: Occasion, site: Site) -> Dispatched:
            return architect.dispatcher.dispatch(JUDGE, occasion, architect.errand(JUDGE, request, site))

        return judge

    def architect(self, specs: Sequence[str]) -> Architect | None:
        if not is_agent(specs[0]):
            return architect_from(specs[0], self.listen)
        return AgentArchitect(specs[0], self.backend(specs), self.dispatcher, self.git, self.secret)


def can_judge(backend: Backend) -> bool:
    """Return whether the backend can judge how well another agent has understood its task."""
    return backend.identity.answers(JUDGE.name, JUDGE.foci[0])


def thinks(spec: str) -> bool:
    """Return whether the spec names a model, which takes time to answer."""
    return spec.startswith("api:") or works_alone(spec)


def is_agent(spec: str) -> bool:
    return spec.partition(":")[0] in AGENTS
