"""The agents of the pipeline: which role is dispatched for an effect, with which request, and how its answer is
recorded.

The agents read the tree of their step and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends import Backend
from proofstone.agents.dispatch import Dispatcher, dump_json, format_now
from proofstone.agents.models import (
    Completion,
    CompletionStatus,
    DispatchKey,
    DispatchResult,
    Fault,
    OutputHeader,
    RoleOutput,
)
from proofstone.agents.read_only_agents import ReadOnlyAgents, ReadOnlyRequest, get_answer
from proofstone.agents.roles.models.gate import CheckSummary
from proofstone.agents.roles.models.pipeline import (
    DesignRequest,
    KnowledgeRequest,
    PanelOutput,
    PanelRequest,
    PlanRequest,
    ResearchOutput,
    ResearchRequest,
    SpecRequest,
)
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.rules.conversation import AnswerCheck
from proofstone.agents.spending import raise_if_fatal, raise_if_unreachable
from proofstone.check.context import RunContext
from proofstone.common.models import FrozenModel, Phase, ReviewVerdict, Severity, Verdict
from proofstone.ledger.models import CheckRow, StepStatus, TelemetryRow, cut_snippet
from proofstone.pipeline.journal import PipelineObserver
from proofstone.pipeline.merged_tree import review_task_id
from proofstone.pipeline.rules.effects import (
    AgentFailure,
    AgentReply,
    AskAgent,
    AskDesign,
    AskKnowledge,
    AskPlan,
    AskResearch,
    AskReview,
    AskSpec,
)
from proofstone.pipeline.rules.plan_pointers import PointerCheck
from proofstone.pipeline.run_folder import RunFolder
from proofstone.pipeline.supervision_hooks import PipelineSupervision
from proofstone.runtime.journal import Journal, RowWriter
from proofstone.runtime.workflow import Operation
from proofstone.supervision.supervisor import AgentSupervisor


@dataclass(frozen=True)
class RequestContext:
    """What the engine knows and the loop does not: it is added to the request of an agent."""

    run_id: str
    request: str
    """The user's own words."""
    diff: str = ""
    """The diff for a code review, and for the knowledge keeper."""
    checks: tuple[CheckSummary, ...] = ()
    events: Sequence[str] = ()
    """The engine's decisions in this run, for the knowledge keeper."""
    learnt: tuple[str, ...] = ()
    """Lessons of earlier runs, for the planner."""
    added: tuple[str, ...] = ()
    """Requirements that the user added, for the planner."""


def build_agent_request(effect: AskAgent, context: RequestContext) -> ReadOnlyRequest:
    """Return the request of the agent that an effect asks for."""
    match effect:
        case AskResearch():
            request: FrozenModel = ResearchRequest(
                request=context.request, focus=effect.focus, questions=effect.questions
            )
            step = f"research/r{effect.round}" + (f"a{effect.attempt}" if effect.attempt > 1 else "")
            details = {"focus": effect.focus, "round": effect.round, "attempt": effect.attempt}
            return _make_request("researcher", request, context, step, **details)
        case AskSpec():
            request = SpecRequest(request=context.request, research=effect.research, answers=effect.answers)
            return _make_request("specifier", request, context, f"spec/r{effect.round}", round=effect.round)
        case AskDesign():
            request = DesignRequest(
                request=context.request,
                spec=effect.spec,
                research=effect.research,
                reviews=effect.reviews,
                revise=effect.revise,
            )
            return _make_request("designer", request, context, f"design/r{effect.round}", round=effect.round)
        case AskPlan():
            request = PlanRequest(
                request=context.request,
                spec=effect.spec,
                design=effect.design,
                reviews=effect.reviews,
                directive=effect.directive,
                failures=effect.failures,
                learnt=context.learnt,
                added=context.added,
            )
            step = f"plan/i{effect.iteration}p{effect.attempt}"
            return _make_request("planner", request, context, step, iteration=effect.iteration, attempt=effect.attempt)
        case AskReview():
            request = PanelRequest(
                request=context.request,
                scope=effect.scope,
                focus=effect.focus,
                round=effect.round,
                criteria=effect.criteria,
                subject=effect.design.model_dump_json(indent=1, exclude_defaults=True)
                if effect.design
                else context.diff,
                checks=context.checks,
                earlier=effect.earlier,
                risk=effect.risk,
                results=effect.results,
                reports=effect.reports,
                open_findings=effect.open_findings,
            )
            step = f"{effect.scope}-review/r{effect.round}"
            return _make_request("reviewer", request, context, step, focus=effect.focus, round=effect.round)
        case AskKnowledge():
            request = KnowledgeRequest(
                request=context.request,
                outcome=effect.outcome,
                events=tuple(context.events),
                findings=effect.findings,
                failures=effect.failures,
                change=context.diff,
            )
            step = "knowledge" + (f"/r{effect.number}" if effect.number > 1 else "")
            return _make_request("knowledge", request, context, step)


def restore_request_fields(request: FrozenModel, answer: FrozenModel) -> FrozenModel:
    """Return the answer with the focus, scope and round of its request, which the agent does not decide."""
    match request, answer:
        case PanelRequest(), PanelOutput():
            details = {"scope": request.scope, "review_focus": request.focus, "round": request.round}
            return answer.model_copy(update=details)
        case ResearchRequest(), ResearchOutput():
            return answer.model_copy(update={"focus": request.focus})
    return answer


def build_answer_check(request: FrozenModel) -> AnswerCheck:
    """Return what is checked in an answer besides its schema, while the agent can still correct it."""
    return PointerCheck(request.spec, request.design) if isinstance(request, PlanRequest) else lambda _: ""


def _make_request(
    role: str, request: FrozenModel, context: RequestContext, step: str, **more: object
) -> ReadOnlyRequest:
    occasion = DispatchKey.model_validate({"run_id": context.run_id, "role": role, "step": step, **more})
    return ReadOnlyRequest(ROLES[role], request, occasion)


_OPTIONAL_ROLES: Final = ("knowledge",)
"""Roles whose unreachable backend does not stop a run."""


@dataclass
class _PendingDispatch:
    """A dispatch until its answer is recorded."""

    request: ReadOnlyRequest
    tree: str
    started_row: TelemetryRow
    supervisor: AgentSupervisor | None = None

    @property
    def uncertainties(self) -> list[JsonValue]:
        return [self.supervisor.unjudged_summary] if self.supervisor and self.supervisor.unjudged_summary else []


@dataclass
class PipelineAgents:
    world: RunContext
    slug: str
    backends: Mapping[str, Backend]
    dispatcher: Dispatcher
    journal: Journal
    observer: PipelineObserver
    time_limit_of: Callable[[str], float | None]
    documents: RunFolder
    supervision: PipelineSupervision | None = None
    """None if no agent is asked whether it understands its task."""
    _readers: dict[str, ReadOnlyAgents] = field(default_factory=dict)
    """The read-only agents by tree."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def prepare(self, tree: str, commit: str) -> None:
        """Create the shared shell of a tree before several agents use it in parallel."""
        self._readers_of(tree, commit).prepare()

    def build_operation(self, request: ReadOnlyRequest, tree: str, commit: str) -> Operation[AgentReply | AgentFailure]:
        """Return the operation of an agent. Each dispatch is a telemetry step."""

        def decode(recorded: Mapping[str, JsonValue]) -> AgentReply | AgentFailure:
            if "why" in recorded:
                return AgentFailure(str(recorded["why"]), was_asked_once=bool(recorded.get("once")))
            output = request.role.output.model_validate(recorded["output"])
            self._write_document(request, output, recorded)
            return _to_reply(output, recorded)

        def describe(result: AgentReply | AgentFailure) -> tuple[str, bool]:
            if isinstance(result, AgentFailure):
                return result.why, True
            return _describe_answer(request.role.completion(result.output))

        return Operation(
            perform=partial(self._dispatch, request, tree, commit),
            step=request.occasion.id,
            input=request.text,
            decode=decode,
            in_thread=True,
            agent=request.occasion.agent,
            about=request.role.title,
            describe=describe,
        )

    def _dispatch(self, request: ReadOnlyRequest, tree: str, commit: str) -> AgentReply | AgentFailure:
        started = TelemetryRow(
            run_id=self.world.run_id,
            step=request.occasion.step,
            agent=request.role.name,
            instance=request.occasion.focus,
            started_at=format_now(),
        )
        pending, readers, supervision = (
            _PendingDispatch(request, tree, started),
            self._readers_of(tree, commit),
            self.supervision,
        )

        def create_supervisor(occasion: DispatchKey) -> AgentSupervisor | None:
            pending.supervisor = supervision.supervisor_for(request, readers, occasion) if supervision else None
            return pending.supervisor

        record = partial(self._record_answer, pending)
        dispatched = readers.dispatch(
            request,
            check=build_answer_check(request.request),
            beginning=(started,),
            ending=record,
            attends=create_supervisor,
        )
        answer = _read_answer(request, dispatched)
        if isinstance(answer, Fault):
            raise_if_fatal(answer, request.occasion.agent)
            if request.role.name not in _OPTIONAL_ROLES:
                raise_if_unreachable(answer, request.occasion.agent)
        # The dispatch has recorded the step together with the answer, if there is one.
        payload = self.journal.lookup(request.occasion.id, request.text) or record(dispatched)
        if isinstance(answer, Fault):
            return AgentFailure(answer.why, was_asked_once=_was_dispatched_once(dispatched))
        self._write_document(request, answer, payload)
        return _to_reply(answer, payload)

    def _record_answer(
        self, pending: _PendingDispatch, dispatched: DispatchResult, write: RowWriter | None = None
    ) -> Mapping[str, JsonValue]:
        """Record the answer as a step of the run and of the telemetry."""
        request, started = pending.request, pending.started_row
        answer = _read_answer(request, dispatched)
        is_fault = isinstance(answer, Fault)
        ended = started.model_copy(
            update={
                "completed_at": format_now(),
                "status": StepStatus.ERROR if is_fault else _read_status(answer),
                "retry_count": dispatched.occasion.dispatch - 1,
            }
        )
        payload: dict[str, JsonValue] = {
            "agent": request.occasion.agent,
            "model": dispatched.model,
            "started_at": started.started_at,
            "completed_at": ended.completed_at,
        }
        if isinstance(answer, Fault):
            payload |= {"why": answer.why, "once": _was_dispatched_once(dispatched)}
        else:
            spent = dispatched.describe_spent_tools(request.role.tool_calls)
            unsure: list[JsonValue] = [*pending.uncertainties, *([spent] if spent else [])]
            payload |= {"output": answer.model_dump(mode="json"), "unsure": unsure}
        verdict = self._verdict_rows(request, answer, pending.tree)
        return self.journal.record(request.occasion.id, request.text, payload, ended, *verdict, write=write)

    def _write_document(self, request: ReadOnlyRequest, output: FrozenModel, payload: Mapping[str, JsonValue]) -> None:
        if isinstance(output, PanelOutput):  # the engine knows the model better than the reviewer does
            output = output.model_copy(update={"reviewer_model": str(payload["model"])})
        header = OutputHeader.model_construct(
            agent=request.role.name,
            instance=request.occasion.agent,
            step=request.occasion.step,
            started_at=str(payload["started_at"]),
            completed_at=str(payload["completed_at"]),
            schema_version=request.role.schema_version,
            payload=dump_json(output),
        )
        self.documents.write_answer(request.role.name, header, output)

    def close(self) -> None:
        self._stack.close()

    def _verdict_rows(self, request: ReadOnlyRequest, answer: FrozenModel | Fault, tree: str) -> tuple[CheckRow, ...]:
        """Return the ledger row of a reviewer's verdict, or no row for other roles."""
        if not isinstance(answer, PanelOutput) or answer.completion.status is CompletionStatus.ERROR:
            return ()  # a reviewer that reports an error gives no verdict
        worst = [severity for severity in Severity if answer.findings_count[severity]]
        return (
            CheckRow(
                run_id=self.world.run_id,
                task_id=review_task_id(self.slug, answer.scope),
                phase=Phase.REVIEW,
                check_name=f"review-{answer.scope}-{request.occasion.focus}",
                tool="review",
                output_snippet=cut_snippet(answer.summary),
                state=Verdict.PASS if answer.verdict is ReviewVerdict.APPROVE else Verdict.FAIL,
                verdict=answer.verdict,
                severity=worst[0] if worst else None,
                round=request.occasion.round or 1,
                tree=tree,
            ),
        )

    def _readers_of(self, tree: str, commit: str) -> ReadOnlyAgents:
        if tree not in self._readers:
            readers = ReadOnlyAgents(
                world=self.world,
                backends=self.backends,
                dispatcher=self.dispatcher,
                on_progress=self.observer.on_activity,
                on_message=self.observer.on_message,
                seconds=self.time_limit_of,
                tree=tree,
                commit=commit,
            )
            self._stack.callback(readers.close)
            self._readers[tree] = readers
        return self._readers[tree]


def _read_status(answer: FrozenModel | Fault) -> StepStatus:
    """Return how the agent says that its work ended."""
    return StepStatus(answer.completion.status.value) if isinstance(answer, RoleOutput) else StepStatus.DONE


def _describe_answer(completion: Completion) -> tuple[str, bool]:
    """Return what the agent said in one line, and whether it says that it is not done."""
    if completion.status is CompletionStatus.DONE:
        return completion.summary, False
    return f"{completion.status}: {completion.summary}", True


def _to_reply(output: FrozenModel, payload: Mapping[str, JsonValue]) -> AgentReply:
    unsure = payload.get("unsure") or []
    return AgentReply(output, str(payload["model"]), tuple(map(str, unsure)) if isinstance(unsure, list) else ())


def _was_dispatched_once(dispatched: DispatchResult) -> bool:
    """Return whether the agent was dispatched once. False if the dispatcher has already repeated it."""
    return dispatched.occasion.dispatch == 1


def _read_answer(request: ReadOnlyRequest, dispatched: DispatchResult) -> FrozenModel | Fault:
    answer = get_answer(dispatched)
    return answer if isinstance(answer, Fault) else restore_request_fields(request.request, answer)
