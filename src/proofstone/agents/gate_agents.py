"""Agents as executors and architects of the gate.

An executor is an agent (`api:`, `cli:`, `acp:` or `script:`), with `cmd:` and `human` as possible fallbacks; it may
change the files that the task declares. An architect looks at the candidate and can change nothing. `GateAgentFactory`
builds either: agents run in the engine's own loop; programs and people bring their own tools.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from proofstone.agents.backends import Backend
from proofstone.agents.dispatch import Dispatcher, DispatchRequest
from proofstone.agents.executors.context import Architect, ExecutionContext, ExecutionOutcome, Executor, ReviewOutcome
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.executors.selection import build_architect, build_executor
from proofstone.agents.models import DispatchKey, DispatchResult, Fault, FaultKind
from proofstone.agents.roles.gate import ARCHITECT, BLOCK_EXECUTOR, EXECUTOR, JUDGE
from proofstone.agents.roles.models.gate import (
    ArchitectVerdict,
    Assignment,
    ClaimedDispute,
    ExecutorResult,
    ExecutorStatus,
    JudgeRequest,
    NoVerdict,
    ReviewRequest,
)
from proofstone.agents.roles.role import Role, format_request
from proofstone.agents.spending import unreachable_error
from proofstone.agents.supervisor import Supervisor
from proofstone.agents.tools.corrections import CorrectionCount, CountedTools
from proofstone.agents.tools.current_files import render_current_files
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.common.models import Confidence, Finding
from proofstone.config.backends import is_coding_agent
from proofstone.errors import BackendError, ProofstoneError
from proofstone.git.program import Git


@dataclass(frozen=True)
class GateAgent:
    spec: str
    backend: Backend
    dispatcher: Dispatcher
    git: Git | None = None
    secret: tuple[str, ...] = ()
    """Further patterns of files that the agent is not shown."""

    def build_request(
        self,
        role: Role,
        request: Assignment | ReviewRequest | JudgeRequest,
        site: ExecutionContext,
        scope: tuple[str, ...] = (),
        disputes: list[ClaimedDispute] | None = None,
    ) -> DispatchRequest:
        """Build the request with the agent's tools at the site. `scope` lists the files that it may change; `disputes`
        receives what it disputes."""
        ground = ToolContext(
            files=site.work_tree,
            scope=scope,
            run=site.run,
            git=self.git,
            commit=request.base_commit,
            secret=self.secret,
            disputes=disputes,
            cancel=site.cancel,
            mask=site.mask,
        )
        return DispatchRequest(
            text=format_request(role, request),
            backend=self.backend,
            toolbox=Toolbox(ground, role.tools),
            site=site,
            seconds=request.deadline_seconds,
        )


class GateSupervisor(Supervisor, Protocol):
    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the agent's behaviour while it worked."""
        ...


CreateGateSupervisor = Callable[[Assignment, ExecutionContext, DispatchKey], GateSupervisor | None]
"""Creates the supervisor of an assignment, or None if the agent is not supervised."""


@dataclass(frozen=True)
class AgentExecutor(GateAgent):
    """Implements `agents.executors.context.Executor`."""

    create_supervisor: CreateGateSupervisor = lambda _assignment, _site, _occasion: None

    def execute(self, assignment: Assignment, site: ExecutionContext) -> ExecutionOutcome:
        began = time.monotonic()
        occasion = DispatchKey(
            run_id=assignment.run_id,
            role=EXECUTOR.name,
            step=f"{assignment.task_id}/a{assignment.attempt}",
            task=assignment.task_id,
            task_name=assignment.task_name,
            attempt=assignment.attempt,
        )
        supervisors: list[GateSupervisor] = []

        def create_supervisor(occasion: DispatchKey) -> GateSupervisor | None:
            supervisor = self.create_supervisor(assignment, site, occasion)
            supervisors[:] = [supervisor] if supervisor else []
            return supervisor

        disputes: list[ClaimedDispute] = []
        count = CorrectionCount.of(assignment.verify)
        role = BLOCK_EXECUTOR if self.backend.identity.edits == "blocks" else EXECUTOR
        request = self.build_request(role, assignment, site, assignment.files, disputes)
        request = replace(request, toolbox=CountedTools(request.toolbox, count), create_supervisor=create_supervisor)
        if role.edits == "blocks":
            shown = render_current_files(site.work_tree, assignment.files, self.secret, site.mask)
            request = replace(request, text=f"{request.text.rstrip()}\n\n{shown}")
        # Dispatch once, because the gate itself counts attempts.
        dispatched = self.dispatcher.dispatch_once(role, occasion, request)
        outcome = build_execution_outcome(dispatched, round((time.monotonic() - began) * 1000), self.spec)
        return replace(
            _add_disputes(outcome, disputes),
            findings=tuple(finding for supervisor in supervisors for finding in supervisor.findings),
            corrections=None if is_coding_agent(self.spec) else count.made,
        )


def _add_disputes(outcome: ExecutionOutcome, disputes: Sequence[ClaimedDispute]) -> ExecutionOutcome:
    """Return the outcome with what the agent disputed by its tool, besides what its answer disputes."""
    if outcome.claim is None or not disputes:
        return outcome
    named = {dispute.subject for dispute in outcome.claim.disputes}
    added = tuple(dispute for dispute in disputes if dispute.subject not in named)
    claim = outcome.claim.model_copy(update={"disputes": (*outcome.claim.disputes, *added)})
    return replace(outcome, claim=claim)


def build_execution_outcome(dispatched: DispatchResult, milliseconds: int, spec: str) -> ExecutionOutcome:
    """Convert the result of a dispatch to the outcome of an execution."""
    if isinstance(dispatched.output, ExecutorResult):
        return ExecutionOutcome(dispatched.output, duration_ms=milliseconds)
    fault = dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer")
    match fault.kind:
        case FaultKind.DRIFTED:
            return ExecutionOutcome(None, drifted=True, end_reason=fault.why, duration_ms=milliseconds)
        case FaultKind.MALFORMED:
            return ExecutionOutcome(None, malformed=f"the result is malformed: {fault.why}", duration_ms=milliseconds)
        case FaultKind.TIMEOUT:
            return ExecutionOutcome(None, timed_out=True, end_reason=fault.why, duration_ms=milliseconds)
        case FaultKind.CANCELLED | FaultKind.BUDGET:
            return ExecutionOutcome(None, cancelled=True, end_reason=fault.why, duration_ms=milliseconds)
        case FaultKind.FAILED:
            claim = ExecutorResult(status=ExecutorStatus.FAILURE, error=fault.why)
            return ExecutionOutcome(claim, duration_ms=milliseconds)
        case FaultKind.DENIED | FaultKind.UNAVAILABLE:
            raise build_service_error(fault, spec)
    return ExecutionOutcome(None, crashed=fault.why, end_reason=fault.why, duration_ms=milliseconds)


def build_service_error(fault: Fault, spec: str) -> ProofstoneError:
    """Return the error for a provider that denies access or cannot be reached. Another attempt would fail too, so the
    run stops and resumes from here when the provider answers again or the person has fixed the cause."""
    why = f"{spec}: {fault.why}" if is_coding_agent(spec) else fault.why  # messages of providers already name them
    if fault.kind is FaultKind.DENIED:
        hint = "fix this (`proofstone backends --probe` tests it), then run `proofstone resume last`"
        return BackendError(why, hint=hint)
    return unreachable_error(why)


@dataclass(frozen=True)
class AgentArchitect(GateAgent):
    """Implements `agents.executors.context.Architect`."""

    def review(self, request: ReviewRequest, site: ExecutionContext) -> ReviewOutcome:
        occasion = DispatchKey(
            run_id=request.run_id,
            role=ARCHITECT.name,
            step=_format_step(request),
            task=request.task_id,
            task_name=request.task_name,
            attempt=request.attempt,
            round=request.round,
        )
        dispatched = self.dispatcher.dispatch(ARCHITECT, occasion, self.build_request(ARCHITECT, request, site))
        if isinstance(dispatched.output, ArchitectVerdict):
            return _add_budget_concern(dispatched.output, dispatched).model_copy(update={"by": self.spec})
        return build_no_verdict(dispatched.fault or Fault(kind=FaultKind.CRASHED, why="it gave no answer"), self.spec)


def _add_budget_concern(verdict: ArchitectVerdict, dispatched: DispatchResult) -> ArchitectVerdict:
    """Return the verdict, with a concern if the architect could not look at everything that it wanted to."""
    if not (concern := dispatched.describe_spent_tools(ARCHITECT.tool_calls)):
        return verdict
    confidence = Confidence.weakest((verdict.confidence, Confidence.MEDIUM))
    return verdict.model_copy(update={"concerns": (*verdict.concerns, concern), "confidence": confidence})


def build_no_verdict(fault: Fault, spec: str) -> NoVerdict:
    """Return the outcome of a review that ended in a fault. It approves nothing."""
    if fault.kind in (FaultKind.DENIED, FaultKind.UNAVAILABLE):
        raise build_service_error(fault, spec)
    is_cancelled = fault.kind in (FaultKind.CANCELLED, FaultKind.BUDGET)
    why = f"the verdict is malformed: {fault.why}" if fault.kind is FaultKind.MALFORMED else fault.why
    return NoVerdict(why=why, timed_out=fault.kind is FaultKind.TIMEOUT, cancelled=is_cancelled)


def _format_step(request: ReviewRequest) -> str:
    """Return the step of a review. A second review of the same attempt is another dispatch."""
    step = f"{request.task_id}/a{request.attempt}"
    return step if request.round == 1 else f"{step}/r{request.round}"


AskJudge = Callable[[JudgeRequest, DispatchKey, ExecutionContext], DispatchResult]
"""Asks the judge in the work tree of the judged agent."""
AGENT_SPEC_KINDS: Final = ("api", "acp", "cli", "script")
"""The kinds of specs that name an agent, not a program (`cmd`) or a person (`human`)."""


@dataclass(frozen=True)
class GateAgentFactory:
    build_backend: Callable[[Sequence[str]], Backend]
    """Builds a backend from specs. The later ones are fallbacks."""
    dispatcher: Dispatcher
    listen: ReadLine | None = None
    git: Git | None = None
    secret: tuple[str, ...] = ()

    def build_executor(self, specs: Sequence[str]) -> Executor:
        if not is_agent_spec(specs[0]):
            return build_executor(specs[0], self.listen)
        return AgentExecutor(specs[0], self.build_backend(specs), self.dispatcher, self.git, self.secret)

    @staticmethod
    def build_judge(architect: Architect | None) -> AskJudge | None:
        """Return the architect as a judge of understanding, or None if it cannot judge."""
        if not isinstance(architect, AgentArchitect) or not can_judge(architect.backend):
            return None

        def judge(request: JudgeRequest, occasion: DispatchKey, site: ExecutionContext) -> DispatchResult:
            return architect.dispatcher.dispatch(JUDGE, occasion, architect.build_request(JUDGE, request, site))

        return judge

    def build_architect(self, specs: Sequence[str]) -> Architect | None:
        if not is_agent_spec(specs[0]):
            return build_architect(specs[0], self.listen)
        return AgentArchitect(specs[0], self.build_backend(specs), self.dispatcher, self.git, self.secret)


def can_judge(backend: Backend) -> bool:
    """Return whether the backend can judge how well another agent has understood its task."""
    return backend.identity.can_answer(JUDGE.name, JUDGE.foci[0])


def uses_model(spec: str) -> bool:
    """Return whether the spec names a model, which takes time to answer."""
    return spec.startswith("api:") or is_coding_agent(spec)


def is_agent_spec(spec: str) -> bool:
    return spec.partition(":")[0] in AGENT_SPEC_KINDS
