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
from proofstone.agents.dispatch import Dispatcher, dumped, now
from proofstone.agents.models import CompletionStatus, Dispatched, Fault, Occasion, OutputHeader
from proofstone.agents.read_only_agents import Asking, Onlookers, answer_of
from proofstone.agents.roles.models.gate import ReviewedCheck
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
from proofstone.agents.spending import stop_for, stop_if_unreached
from proofstone.check.context import World
from proofstone.common.models import Contract, Phase, ReviewVerdict, Severity, Verdict
from proofstone.ledger.models import CheckRow, StepStatus, TelemetryRow, snippet
from proofstone.pipeline.attending import Attending
from proofstone.pipeline.documenting import Documenting
from proofstone.pipeline.journal import Watching
from proofstone.pipeline.merged import review_task
from proofstone.pipeline.rules.effects import (
    AskAgent,
    AskDesign,
    AskKnowledge,
    AskPlan,
    AskResearch,
    AskReview,
    AskSpec,
    Failed,
    Heard,
)
from proofstone.runtime.journal import Steps, Write
from proofstone.supervision.attendant import Continuity


@dataclass(frozen=True)
class Shown:
    """What the engine adds to the request of the loop."""

    run_id: str
    request: str
    """The user's own words."""
    diff: str = ""
    """The diff for a code review, and for the knowledge keeper."""
    checks: tuple[ReviewedCheck, ...] = ()
    events: Sequence[str] = ()
    learnt: tuple[str, ...] = ()
    """Lessons of earlier runs, for the planner."""
    added: tuple[str, ...] = ()
    """Requirements that the user added, for the planner."""


def asking(effect: AskAgent, context: Shown) -> Asking:
    match effect:
        case AskResearch():
            request: Contract = ResearchRequest(request=context.request, focus=effect.focus, questions=effect.questions)
            step = f"research/r{effect.round}" + (f"a{effect.attempt}" if effect.attempt > 1 else "")
            details = {"focus": effect.focus, "round": effect.round, "attempt": effect.attempt}
            return _make_request("researcher", request, context, step, **details)
        case AskSpec():
            request = SpecRequest(request=context.request, research=effect.research, answers=effect.answers)
            return _make_request("specifier", request, context, f"spec/r{effect.round}", round=effect.round)
        case AskDesign():
            request = DesignRequest(
                request=context.request, spec=effect.spec, research=effect.research, reviews=effect.reviews
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
            )
            step = f"{effect.scope}-review/r{effect.round}"
            return _make_request("reviewer", request, context, step, focus=effect.focus, round=effect.round)
        case AskKnowledge():
            request = KnowledgeRequest(
                request=context.request,
                outcome=effect.outcome,
                events=tuple(context.events),
                findings=effect.findings,
                change=context.diff,
            )
            return _make_request("knowledge", request, context, "knowledge")


def as_asked(request: Contract, answer: Contract) -> Contract:
    """Return the answer with the focus, scope and round of its request, which the agent does not decide."""
    match request, answer:
        case PanelRequest(), PanelOutput():
            details = {"scope": request.scope, "review_focus": request.focus, "round": request.round}
            return answer.model_copy(update=details)
        case ResearchRequest(), ResearchOutput():
            return answer.model_copy(update={"focus": request.focus})
    return answer


def _make_request(role: str, request: Contract, context: Shown, step: str, **more: object) -> Asking:
    occasion = Occasion.model_validate({"run_id": context.run_id, "role": role, "step": step, **more})
    return Asking(ROLES[role], request, occasion)


_OPTIONAL_ROLES: Final = ("knowledge",)
"""Roles that never stop a run, whatever the reason for a missing answer."""


@dataclass
class _PendingDispatch:
    """A dispatch until its answer is recorded."""

    one: Asking
    tree: str
    begun: TelemetryRow
    attendant: Continuity | None = None

    @property
    def unsure(self) -> list[JsonValue]:
        return [self.attendant.unsure] if self.attendant and self.attendant.unsure else []


@dataclass
class PipelineAgents:
    world: World
    slug: str
    backends: Mapping[str, Backend]
    dispatcher: Dispatcher
    steps: Steps
    watching: Watching
    seconds: Callable[[str], float | None]
    documents: Documenting
    attending: Attending | None = None
    """None if no agent is asked whether it understands its task."""
    _readers: dict[str, Onlookers] = field(default_factory=dict)
    """The read-only agents by tree."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def prepare(self, tree: str, commit: str) -> None:
        """Prepare a tree before several agents read it."""
        self._readers_of(tree, commit).prepare()

    def heard(self, request: Asking, tree: str, commit: str) -> Heard | Failed:
        """Return the answer of an agent, from the journal or from a new dispatch. Each dispatch is a telemetry step."""
        agent = request.occasion.agent
        recorded = self.steps.recall(request.occasion.id, request.text)
        if recorded is not None:
            if "why" in recorded:
                return Failed(str(recorded["why"]), once=bool(recorded.get("once")))
            output = request.role.output.model_validate(recorded["output"])
            self._write_document(request, output, recorded)
            return _to_heard(output, recorded)
        self.watching.asked(agent, request.role.title)
        started = TelemetryRow(
            run_id=self.world.run_id,
            step=request.occasion.step,
            agent=request.role.name,
            instance=request.occasion.focus,
            started_at=now(),
        )
        pending, readers, attending = (
            _PendingDispatch(request, tree, started),
            self._readers_of(tree, commit),
            self.attending,
        )

        def attends(occasion: Occasion) -> Continuity | None:
            pending.attendant = attending.to(request, readers, occasion) if attending else None
            return pending.attendant

        record = partial(self._record_answer, pending)
        dispatched = readers.dispatch(request, beginning=(started,), ending=record, attends=attends)
        answer = _read_answer(request, dispatched)
        if isinstance(answer, Fault):
            stop_for(answer, agent)
            if request.role.name not in _OPTIONAL_ROLES:
                stop_if_unreached(answer, agent)
        # The dispatch has recorded the step together with the answer, if there is one.
        payload = self.steps.recall(request.occasion.id, request.text) or record(dispatched)
        summary = answer.why if isinstance(answer, Fault) else dispatched.completion.summary
        self.watching.answered(agent, summary, failed=isinstance(answer, Fault))
        if isinstance(answer, Fault):
            return Failed(answer.why, once=_was_dispatched_once(dispatched))
        self._write_document(request, answer, payload)
        return _to_heard(answer, payload)

    def _record_answer(
        self, pending: _PendingDispatch, dispatched: Dispatched, write: Write | None = None
    ) -> Mapping[str, JsonValue]:
        """Record the answer as a step of the run and of the telemetry."""
        request, started = pending.one, pending.begun
        answer = _read_answer(request, dispatched)
        is_fault = isinstance(answer, Fault)
        ended = started.model_copy(
            update={
                "completed_at": now(),
                "status": StepStatus.ERROR if is_fault else StepStatus.DONE,
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
            payload |= {"output": answer.model_dump(mode="json"), "unsure": pending.unsure}
        verdict = self._verdict_rows(request, answer, pending.tree)
        return self.steps.keep(request.occasion.id, request.text, payload, ended, *verdict, write=write)

    def _write_document(self, request: Asking, output: Contract, payload: Mapping[str, JsonValue]) -> None:
        if isinstance(output, PanelOutput):  # the engine knows the model better than the reviewer does
            output = output.model_copy(update={"reviewer_model": str(payload["model"])})
        header = OutputHeader.model_construct(
            agent=request.role.name,
            instance=request.occasion.agent,
            step=request.occasion.step,
            started_at=str(payload["started_at"]),
            completed_at=str(payload["completed_at"]),
            schema_version=request.role.schema_version,
            payload=dumped(output),
        )
        self.documents.answered(request.role.name, header, output)

    def close(self) -> None:
        self._stack.close()

    def _verdict_rows(self, request: Asking, answer: Contract | Fault, tree: str) -> tuple[CheckRow, ...]:
        """Return the verdict of a reviewer as evidence of its own: by run, scope, round and focus."""
        if not isinstance(answer, PanelOutput) or answer.completion.status is CompletionStatus.ERROR:
            return ()  # a reviewer that reports an error gives no verdict
        worst = [severity for severity in Severity if answer.findings_count[severity]]
        return (
            CheckRow(
                run_id=self.world.run_id,
                task_id=review_task(self.slug, answer.scope),
                phase=Phase.REVIEW,
                check_name=f"review-{answer.scope}-{request.occasion.focus}",
                tool="review",
                output_snippet=snippet(answer.summary),
                state=Verdict.PASS if answer.verdict is ReviewVerdict.APPROVE else Verdict.FAIL,
                verdict=answer.verdict,
                severity=worst[0] if worst else None,
                round=request.occasion.round or 1,
                tree=tree,
            ),
        )

    def _readers_of(self, tree: str, commit: str) -> Onlookers:
        if tree not in self._readers:
            readers = Onlookers(
                world=self.world,
                backends=self.backends,
                dispatcher=self.dispatcher,
                doing=self.watching.doing,
                said=self.watching.said,
                seconds=self.seconds,
                tree=tree,
                commit=commit,
            )
            self._stack.callback(readers.close)
            self._readers[tree] = readers
        return self._readers[tree]


def _to_heard(output: Contract, payload: Mapping[str, JsonValue]) -> Heard:
    unsure = payload.get("unsure") or []
    return Heard(output, str(payload["model"]), tuple(map(str, unsure)) if isinstance(unsure, list) else ())


def _was_dispatched_once(dispatched: Dispatched) -> bool:
    """Return whether the agent was dispatched once. After a possibly random fault, the engine dispatches again by
    itself.
    """
    return dispatched.occasion.dispatch == 1


def _read_answer(request: Asking, dispatched: Dispatched) -> Contract | Fault:
    answer = answer_of(dispatched)
    return answer if isinstance(answer, Fault) else as_asked(request.request, answer)
