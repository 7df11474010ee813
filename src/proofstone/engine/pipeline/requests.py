"""From what the pipeline needs to whom it is asked, and how: role, request, occasion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofstone.contracts.agent import Occasion
from proofstone.contracts.base import Contract
from proofstone.contracts.gate import ReviewedCheck
from proofstone.contracts.pipeline.design import DesignRequest
from proofstone.contracts.pipeline.knowledge import KnowledgeRequest
from proofstone.contracts.pipeline.plan import PlanRequest
from proofstone.contracts.pipeline.research import ResearchOutput, ResearchRequest
from proofstone.contracts.pipeline.review import PanelOutput, PanelRequest
from proofstone.contracts.pipeline.spec import SpecRequest
from proofstone.core.pipeline.needs import (
    AskAgent,
    AskDesign,
    AskKnowledge,
    AskPlan,
    AskResearch,
    AskReview,
    AskSpec,
)
from proofstone.engine.agents.onlookers import Asking
from proofstone.roles import ROLES


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
