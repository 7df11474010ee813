"""From what the pipeline needs to whom it is asked, and how: role, request, occasion.

Those who are asked in the pipeline: agents who look at the tree as it is at their step, each answer on record.
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
    """What the engine adds to what the loop asks."""

    run_id: str
    request: str
    """The person's words."""
    diff: str = ""
    """Of a review of code, and for whoever keeps knowledge."""
    checks: tuple[ReviewedCheck, ...] = ()
    events: Sequence[str] = ()
    learnt: tuple[str, ...] = ()
    """For whoever plans."""
    added: tuple[str, ...] = ()
    """Likewise."""


def asking(need: AskAgent, it: Shown) -> Asking:
    match need:
        case AskResearch():
            request: Contract = ResearchRequest(request=it.request, focus=need.focus, questions=need.questions)
            step = f"research/r{need.round}" + (f"a{need.attempt}" if need.attempt > 1 else "")
            place = {"focus": need.focus, "round": need.round, "attempt": need.attempt}
            return _asking("researcher", request, it, step, **place)
        case AskSpec():
            request = SpecRequest(request=it.request, research=need.research, answers=need.answers)
            return _asking("specifier", request, it, f"spec/r{need.round}", round=need.round)
        case AskDesign():
            request = DesignRequest(request=it.request, spec=need.spec, research=need.research, reviews=need.reviews)
            return _asking("designer", request, it, f"design/r{need.round}", round=need.round)
        case AskPlan():
            request = PlanRequest(
                request=it.request,
                spec=need.spec,
                design=need.design,
                reviews=need.reviews,
                directive=need.directive,
                failures=need.failures,
                learnt=it.learnt,
                added=it.added,
            )
            step = f"plan/i{need.iteration}p{need.attempt}"
            return _asking("planner", request, it, step, iteration=need.iteration, attempt=need.attempt)
        case AskReview():
            request = PanelRequest(
                request=it.request,
                scope=need.scope,
                focus=need.focus,
                round=need.round,
                criteria=need.criteria,
                subject=need.design.model_dump_json(indent=1, exclude_defaults=True) if need.design else it.diff,
                checks=it.checks,
                earlier=need.earlier,
            )
            step = f"{need.scope}-review/r{need.round}"
            return _asking("reviewer", request, it, step, focus=need.focus, round=need.round)
        case AskKnowledge():
            request = KnowledgeRequest(
                request=it.request,
                outcome=need.outcome,
                events=tuple(it.events),
                findings=need.findings,
                change=it.diff,
            )
            return _asking("knowledge", request, it, "knowledge")


def as_asked(asked: Contract, answer: Contract) -> Contract:
    """The answer, with what is not the agent's to say: of which focus, scope and round it is."""
    match asked, answer:
        case PanelRequest(), PanelOutput():
            place = {"scope": asked.scope, "review_focus": asked.focus, "round": asked.round}
            return answer.model_copy(update=place)
        case ResearchRequest(), ResearchOutput():
            return answer.model_copy(update={"focus": asked.focus})
    return answer


def _asking(role: str, request: Contract, it: Shown, step: str, **more: object) -> Asking:
    occasion = Occasion.model_validate({"run_id": it.run_id, "role": role, "step": step, **more})
    return Asking(ROLES[role], request, occasion)


_HOLDS_NOTHING_UP: Final = ("knowledge",)
"""Roles without whom a run goes on, whyever they do not answer."""


@dataclass
class _Asked:
    """Somebody who is asked, until they are heard."""

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
    """None: nobody is asked whether they understand."""
    _places: dict[str, Onlookers] = field(default_factory=dict)
    """By tree: those who look at it."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def prepare(self, tree: str, commit: str) -> None:
        """Before several stand on the same ground."""
        self._at(tree, commit).prepare()

    def heard(self, one: Asking, tree: str, commit: str) -> Heard | Failed:
        """Their answer, now or on record. Each is a step of the telemetry."""
        agent = one.occasion.agent
        known = self.steps.recall(one.occasion.id, one.text)
        if known is not None:
            if "why" in known:
                return Failed(str(known["why"]), once=bool(known.get("once")))
            output = one.role.output.model_validate(known["output"])
            self._document(one, output, known)
            return _heard(output, known)
        self.watching.asked(agent, one.role.title)
        begun = TelemetryRow(
            run_id=self.world.run_id,
            step=one.occasion.step,
            agent=one.role.name,
            instance=one.occasion.focus,
            started_at=now(),
        )
        asked, place, attending = _Asked(one, tree, begun), self._at(tree, commit), self.attending

        def attends(occasion: Occasion) -> Continuity | None:
            asked.attendant = attending.to(one, place, occasion) if attending else None
            return asked.attendant

        keep = partial(self._keep, asked)
        dispatched = place.dispatch(one, beginning=(begun,), ending=keep, attends=attends)
        answer = _answer(one, dispatched)
        if isinstance(answer, Fault):
            stop_for(answer, agent)
            if one.role.name not in _HOLDS_NOTHING_UP:
                stop_if_unreached(answer, agent)
        came = self.steps.recall(one.occasion.id, one.text) or keep(dispatched)  # with the answer, if there is one
        said = answer.why if isinstance(answer, Fault) else dispatched.completion.summary
        self.watching.answered(agent, said, failed=isinstance(answer, Fault))
        if isinstance(answer, Fault):
            return Failed(answer.why, once=_was_asked_once(dispatched))
        self._document(one, answer, came)
        return _heard(answer, came)

    def _keep(self, asked: _Asked, dispatched: Dispatched, write: Write | None = None) -> Mapping[str, JsonValue]:
        """What came of it, as a step of the run and of the telemetry."""
        one, begun = asked.one, asked.begun
        answer = _answer(one, dispatched)
        failed = isinstance(answer, Fault)
        ended = begun.model_copy(
            update={
                "completed_at": now(),
                "status": StepStatus.ERROR if failed else StepStatus.DONE,
                "retry_count": dispatched.occasion.dispatch - 1,
            }
        )
        came: dict[str, JsonValue] = {
            "agent": one.occasion.agent,
            "model": dispatched.model,
            "started_at": begun.started_at,
            "completed_at": ended.completed_at,
        }
        if isinstance(answer, Fault):
            came |= {"why": answer.why, "once": _was_asked_once(dispatched)}
        else:
            came |= {"output": answer.model_dump(mode="json"), "unsure": asked.unsure}
        verdict = self._verdict(one, answer, asked.tree)
        return self.steps.keep(one.occasion.id, one.text, came, ended, *verdict, write=write)

    def _document(self, one: Asking, output: Contract, came: Mapping[str, JsonValue]) -> None:
        if isinstance(output, PanelOutput):  # who has reviewed, the engine knows better than the reviewer
            output = output.model_copy(update={"reviewer_model": str(came["model"])})
        header = OutputHeader.model_construct(
            agent=one.role.name,
            instance=one.occasion.agent,
            step=one.occasion.step,
            started_at=str(came["started_at"]),
            completed_at=str(came["completed_at"]),
            schema_version=one.role.schema_version,
            payload=dumped(output),
        )
        self.documents.answered(one.role.name, header, output)

    def close(self) -> None:
        self._stack.close()

    def _verdict(self, one: Asking, answer: Contract | Fault, tree: str) -> tuple[CheckRow, ...]:
        """A reviewer's word is evidence of its own: by run, scope, round and focus."""
        if not isinstance(answer, PanelOutput) or answer.completion.status is CompletionStatus.ERROR:
            return ()  # whoever says that they could not do it has given no word
        worst = [severity for severity in Severity if answer.findings_count[severity]]
        return (
            CheckRow(
                run_id=self.world.run_id,
                task_id=review_task(self.slug, answer.scope),
                phase=Phase.REVIEW,
                check_name=f"review-{answer.scope}-{one.occasion.focus}",
                tool="review",
                output_snippet=snippet(answer.summary),
                state=Verdict.PASS if answer.verdict is ReviewVerdict.APPROVE else Verdict.FAIL,
                verdict=answer.verdict,
                severity=worst[0] if worst else None,
                round=one.occasion.round or 1,
                tree=tree,
            ),
        )

    def _at(self, tree: str, commit: str) -> Onlookers:
        if tree not in self._places:
            place = Onlookers(
                world=self.world,
                backends=self.backends,
                dispatcher=self.dispatcher,
                doing=self.watching.doing,
                said=self.watching.said,
                seconds=self.seconds,
                tree=tree,
                commit=commit,
            )
            self._stack.callback(place.close)
            self._places[tree] = place
        return self._places[tree]


def _heard(output: Contract, came: Mapping[str, JsonValue]) -> Heard:
    unsure = came.get("unsure") or []
    return Heard(output, str(came["model"]), tuple(map(str, unsure)) if isinstance(unsure, list) else ())


def _was_asked_once(dispatched: Dispatched) -> bool:
    """Where a fault may have been chance, the engine has asked again by itself."""
    return dispatched.occasion.dispatch == 1


def _answer(one: Asking, dispatched: Dispatched) -> Contract | Fault:
    answer = answer_of(dispatched)
    return answer if isinstance(answer, Fault) else as_asked(one.request, answer)
