"""An agent with a place at the gate: whoever executes or reviews there is dispatched in the same way.

An agent as an executor of the gate: `api:`, `cli:`, `acp:` and `script:`; as a fallback of one of these, `cmd:` and
`human` too. What it may change is what the task declares.

An agent as an architect of the gate: `api:` and `script:`. It looks at the candidate and can change nothing.

Who executes and who reviews: agents in the engine's own loop, or programs and people that bring their own tools.
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
    """Further patterns of files that it is not shown."""

    def errand(
        self, role: Role, request: Assignment | ReviewRequest | JudgeRequest, site: Site, scope: tuple[str, ...] = ()
    ) -> Errand:
        """What it is asked, with its tools where it stands. `scope`: what it may change."""
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
        """What was found out about the agent while it worked."""
        ...


Attends = Callable[[Assignment, Site, Occasion], FindingAttendant | None]
"""Who attends to whoever does this; None: nobody."""


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
        attending: list[FindingAttendant] = []

        def attends(occasion: Occasion) -> FindingAttendant | None:
            attendant = self.attends(assignment, site, occasion)
            attending[:] = [attendant] if attendant else []
            return attendant

        errand = replace(self.errand(EXECUTOR, assignment, site, assignment.files), attends=attends)
        # Once: the gate itself counts attempts.
        dispatched = self.dispatcher.once(EXECUTOR, occasion, errand)
        came = ran(dispatched, round((time.monotonic() - began) * 1000), self.spec)
        return replace(came, findings=tuple(finding for attendant in attending for finding in attendant.findings))


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


@dataclass(frozen=True)
class AgentArchitect(PlacedAgent):
    """Implements `agents.executors.Architect`."""

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        occasion = Occasion(
            run_id=request.run_id,
            role=ARCHITECT.name,
            step=_step(request),
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


JudgeAt = Callable[[JudgeRequest, Occasion, Site], Dispatched]
"""Asks whoever judges, where the agent stands that is judged."""
AGENTS: Final = ("api", "acp", "cli", "script")
"""Kinds of specs that add turns to a conversation of the engine's."""


@dataclass(frozen=True)
class Casting:
    backend: Callable[[Sequence[str]], Backend]
    """From specs, the later ones as fallbacks."""
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
        """Whoever reviews judges understanding, too, if it can; None: nobody does."""
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
    """Whether whoever reviews can be asked how somebody else has understood their task."""
    return backend.identity.answers(JUDGE.name, JUDGE.foci[0])


def thinks(spec: str) -> bool:
    """Whether a model is behind it, which takes its time."""
    return spec.startswith("api:") or works_alone(spec)


def is_agent(spec: str) -> bool:
    return spec.partition(":")[0] in AGENTS
